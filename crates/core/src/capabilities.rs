//! Capabilities of a provider.

use serde::{Deserialize, Serialize};

use crate::{McpSupport, PermissionMode, constants};

/// The [`ExecuteParams`](crate::ExecuteParams) that a provider supports, and the contents of its stream.
///
/// A value of `false` means that requesting it is an
/// [`InvalidParams`](crate::ErrorCode::InvalidParams) error.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Capabilities {
    /// Resuming a session (`session_id`).
    pub resume: bool,
    /// Resuming into a new session (`fork`).
    pub fork: bool,
    /// A chosen id of a new session (`new_session_id`).
    pub new_session_id: bool,
    /// Directories beside the working directory (`add_dirs`).
    pub add_dirs: bool,
    /// Skills for a run (`skills`).
    #[serde(default)]
    pub skills: bool,
    /// Sub-agents for a run (`sub_agents`).
    #[serde(default)]
    pub sub_agents: bool,
    /// Hooks for a run (`hooks`).
    #[serde(default)]
    pub hooks: bool,
    /// Instructions (`system_prompt`).
    pub system_prompt: SystemPromptSupport,
    /// Title of the session in the CLI's lists (`title`).
    #[serde(default)]
    pub title: bool,
    /// Model (`model`).
    pub model: bool,
    /// How hard the model thinks (`effort`).
    pub effort: bool,
    /// Another model while the first is overloaded (`fallback_model`).
    #[serde(default)]
    pub fallback_model: bool,
    /// Permission modes (`permission`).
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    #[serde(deserialize_with = "constants::modes")]
    pub permission_modes: &'static [PermissionMode],
    /// Permission mode `plan` in sessions, of a CLI whose plain runs have none.
    #[serde(default)]
    pub session_plan: bool,
    /// Tools that are allowed without a request (`allowed_tools`).
    pub allowed_tools: bool,
    /// Tools that are denied (`denied_tools`).
    pub denied_tools: bool,
    /// Limit of turns (`max_turns`).
    pub max_turns: bool,
    /// Limit of the cost (`max_budget_usd`).
    pub max_budget_usd: bool,
    /// Answer by a JSON Schema (`output_schema`).
    pub output_schema: bool,
    /// Images with the prompt (`images`).
    pub images: bool,
    /// MCP servers for a run (`mcp_servers`).
    pub mcp: McpSupport,
    /// The CLI's own retries (`cli_retries`).
    pub cli_retries: bool,
    /// Prompts of any size, on stdin.
    pub prompt_on_stdin: bool,
    /// Text as it is written, not only whole messages.
    pub text_deltas: bool,
    /// Text is final when it is in the stream.
    ///
    /// The CLI's own retries never [retract](crate::AgentEvent::Retract) it.
    pub final_text: bool,
    /// The model's reasoning.
    pub thinking: bool,
    /// Token figures.
    pub usage: bool,
    /// Cost, reported by the CLI.
    pub cost: bool,
    /// Token figures during the run (`usage_updates`).
    ///
    /// With them a token limit can be enforced.
    pub live_usage: bool,
    /// Cost during the run.
    ///
    /// With it a cost limit can be enforced.
    pub live_cost: bool,
    /// Tools whose tokens are not counted, denied in a run with a limit of tokens or cost.
    ///
    /// They have the CLI's own names. The orchestrator allows them if `allowed_tools` names them.
    #[serde(deserialize_with = "constants::texts")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub uncounted_tools: &'static [&'static str],
    /// Every tool that can change things is announced before it runs.
    ///
    /// If true, a run that was cut short (a crash, the watchdog, a kill) without a `tool_use` whose
    /// [kind has side effects](crate::ToolKind::has_side_effects) has changed nothing and may be started over.
    /// This holds only if all of its output was understood: a lost line
    /// ([`Diagnostics`](crate::Diagnostics)), such as the last line of a killed process, may have been a
    /// `tool_use`. It does not hold with `slash_commands`: their text may contain commands that are not tools.
    ///
    /// If false, it is unknown. One mutating tool that is announced late or never makes it `false`;
    /// `docs/providers/` names these tools.
    pub announces_tools: bool,
    /// A call runs only after its whole answer has arrived.
    ///
    /// If true, a run that the CLI itself ends because a request failed has not run the calls since the last
    /// `tool_result`: they were in the incomplete answer.
    pub runs_calls_after_answer: bool,
    /// The CLI's slash commands (`slash_commands`).
    ///
    /// Unless requested, a prompt is never interpreted as a command.
    pub slash_commands: bool,
    /// The CLI's slash commands and skills in sessions (`slash_commands`).
    ///
    /// Some CLIs have them in a process that is kept only.
    #[serde(default)]
    pub session_commands: bool,
    /// `@file` in a prompt is expanded, and this cannot be disabled.
    ///
    /// This includes files outside the working directory. Do not pass it untrusted prompts.
    pub file_mentions: bool,
}

impl Capabilities {
    /// Creates the capabilities of a provider without any, as a base for struct update syntax.
    pub const fn none() -> Self {
        Self {
            resume: false,
            fork: false,
            new_session_id: false,
            add_dirs: false,
            skills: false,
            sub_agents: false,
            hooks: false,
            system_prompt: SystemPromptSupport::None,
            title: false,
            model: false,
            effort: false,
            fallback_model: false,
            permission_modes: &[PermissionMode::Default],
            session_plan: false,
            allowed_tools: false,
            denied_tools: false,
            max_turns: false,
            max_budget_usd: false,
            output_schema: false,
            images: false,
            mcp: McpSupport::none(),
            cli_retries: false,
            prompt_on_stdin: false,
            text_deltas: false,
            final_text: false,
            thinking: false,
            usage: false,
            cost: false,
            live_usage: false,
            live_cost: false,
            uncounted_tools: &[],
            announces_tools: false,
            runs_calls_after_answer: false,
            slash_commands: false,
            session_commands: false,
            file_mentions: false,
        }
    }

    /// Returns whether a session can be in this permission mode.
    pub fn has_session_mode(&self, mode: PermissionMode) -> bool {
        self.permission_modes.contains(&mode) || (mode == PermissionMode::Plan && self.session_plan)
    }
}

/// The kinds of system prompt that a provider supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SystemPromptSupport {
    /// No system prompt.
    None,
    /// Only one that is appended to the CLI's own.
    Append,
    /// Only one that replaces the CLI's own.
    Replace,
    /// Both kinds.
    AppendAndReplace,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_may_plan_where_a_run_cannot() {
        let mut can = Capabilities::none();
        let has = |can: &Capabilities| {
            PermissionMode::ALL
                .iter()
                .copied()
                .filter(|mode| can.has_session_mode(*mode))
                .collect::<Vec<_>>()
        };
        assert_eq!(has(&can), [PermissionMode::Default]);
        can.session_plan = true;
        assert_eq!(has(&can), [PermissionMode::Default, PermissionMode::Plan]);
        can.session_plan = false;
        can.permission_modes = &[PermissionMode::Plan];
        assert_eq!(has(&can), [PermissionMode::Plan]);
    }
}
