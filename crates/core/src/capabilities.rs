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
    /// `session_id`.
    pub resume: bool,
    /// `fork`.
    pub fork: bool,
    /// `new_session_id`.
    pub new_session_id: bool,
    /// `add_dirs`.
    pub add_dirs: bool,
    /// `system_prompt`.
    pub system_prompt: SystemPromptSupport,
    /// `title`.
    #[serde(default)]
    pub title: bool,
    /// `model`.
    pub model: bool,
    /// `effort`.
    pub effort: bool,
    /// `permission`: the supported modes.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    #[serde(deserialize_with = "constants::modes")]
    pub permission_modes: &'static [PermissionMode],
    /// `allowed_tools`.
    pub allowed_tools: bool,
    /// `denied_tools`.
    pub denied_tools: bool,
    /// `max_turns`.
    pub max_turns: bool,
    /// `max_budget_usd`.
    pub max_budget_usd: bool,
    /// `output_schema`.
    pub output_schema: bool,
    /// `images`.
    pub images: bool,
    /// `mcp_servers`.
    pub mcp: McpSupport,
    /// `cli_retries`.
    pub cli_retries: bool,
    /// The CLI reads prompts from stdin, so their size is not limited by argv.
    pub prompt_on_stdin: bool,
    /// The stream has text deltas, not only whole messages.
    pub text_deltas: bool,
    /// Text in the stream is final: the CLI's own retries never [retract](crate::AgentEvent::Retract) it.
    pub final_text: bool,
    /// The stream has the model's reasoning.
    pub thinking: bool,
    /// The result has token figures.
    pub usage: bool,
    /// The result has a cost that the CLI reports.
    pub cost: bool,
    /// `usage_updates`: the stream has token figures during the run, so that a token limit
    /// can be enforced.
    pub live_usage: bool,
    /// The stream has the cost during the run, so that a cost limit can be enforced.
    pub live_cost: bool,
    /// Tools whose tokens are not counted, by the CLI's own names. In a run with a limit of tokens or cost the
    /// orchestrator denies them, unless `allowed_tools` names them: the limit could not be enforced.
    #[serde(deserialize_with = "constants::texts")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub uncounted_tools: &'static [&'static str],
    /// The stream emits a `tool_use` before every mutating tool runs.
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
    /// The CLI runs the calls of an answer only after the whole answer has arrived.
    ///
    /// If true, a run that the CLI itself ends because a request failed has not run the calls since the last
    /// `tool_result`: they were in the incomplete answer.
    pub runs_calls_after_answer: bool,
    /// `slash_commands`. Unless requested, a prompt is never interpreted as a command.
    pub slash_commands: bool,
    /// The CLI adds files that a prompt names with `@` to the request, even outside the working directory, and
    /// this cannot be disabled. Do not pass it untrusted prompts.
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
            system_prompt: SystemPromptSupport::None,
            title: false,
            model: false,
            effort: false,
            permission_modes: &[PermissionMode::Default],
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
            file_mentions: false,
        }
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
