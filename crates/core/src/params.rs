//! Parameters of a run.

mod timeouts;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use timeouts::Timeouts;

use crate::setters::setters;
use crate::{Image, McpDelivery, McpServer, PermissionPolicy, SubAgent};

/// Parameters of one run.
///
/// A run with a parameter that its provider does not support fails before anything is started, with
/// [`ErrorCode::InvalidParams`](crate::ErrorCode::InvalidParams) and the parameter's name. Callers can check
/// this in advance with [`Capabilities`](crate::Capabilities).
///
/// ```
/// use teamster_core::{ExecuteParams, PermissionMode};
///
/// let params = ExecuteParams::new("What does this crate do?")
///     .model("sonnet")
///     .permission(PermissionMode::ReadOnly)
///     .working_directory("crates/core");
/// ```
///
/// With the feature `config`, they can be deserialized, with names in camelCase and times such as `"90s"`. MCP
/// servers are not part of that: `teamster_mcp_config::config` reads them from the JSON of configuration files.
///
/// ```
/// # #[cfg(feature = "config")] {
/// # use teamster_core::ExecuteParams;
/// let json = r#"{"prompt": "hi", "permission": "read-only", "timeouts": {"idle": "90s"}}"#;
/// let params: ExecuteParams = serde_json::from_str(json)?;
/// assert_eq!(params.timeouts.idle, Some(std::time::Duration::from_secs(90)));
/// # }
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Default)]
#[cfg_attr(
    feature = "config",
    derive(Deserialize),
    serde(default, rename_all = "camelCase", deny_unknown_fields)
)]
#[non_exhaustive]
pub struct ExecuteParams {
    /// The prompt.
    pub prompt: String,
    /// Lets the CLI interpret a prompt that begins with `/` as one of its commands.
    pub slash_commands: bool,
    /// The session to resume. Unset, a new session begins.
    pub session_id: Option<String>,
    /// The id of a new session or fork: a UUID, for CLIs that accept one.
    pub new_session_id: Option<String>,
    /// Resumes into a new session and leaves the old one unchanged.
    pub fork: bool,
    /// Working directory of the agent. Default: the caller's current directory.
    pub working_directory: Option<PathBuf>,
    /// Further directories that the agent may use. They must exist. Relative paths are resolved against the
    /// working directory.
    pub add_dirs: Vec<PathBuf>,
    /// Skills for this run, in addition to the user's: directories with a `SKILL.md`. Relative paths are resolved
    /// against the caller's current directory.
    pub skills: Vec<PathBuf>,
    /// Sub-agents for this run, in addition to the user's.
    pub sub_agents: Vec<SubAgent>,
    /// Hooks for this run, in addition to the user's: programs that the CLI calls, such as before a tool. An object in the
    /// CLI's own words, as its settings have it.
    pub hooks: Option<Value>,
    /// Environment variables. They override the inherited ones and the provider's.
    pub env: BTreeMap<String, String>,
    /// Instructions for the agent.
    pub system_prompt: Option<SystemPrompt>,
    /// The title under which the CLI lists its session. A resumed session gets it in place of its own.
    pub title: Option<String>,
    /// The model, in the CLI's own names.
    pub model: Option<String>,
    /// Reasoning effort of the model, in the CLI's own words.
    pub effort: Option<String>,
    /// The model to which the CLI changes while its own is overloaded or not available, within the run.
    pub fallback_model: Option<String>,
    /// Permission mode.
    pub permission: PermissionMode,
    /// Policy for the permission requests of this run, which is then a session of one turn: only an agent whose
    /// sessions ask can have it. Unset, a run does not ask. A session has
    /// [`SessionOptions::permissions`](crate::SessionOptions).
    pub permissions: Option<PermissionPolicy>,
    /// Tools that are allowed without a permission request, in the CLI's own syntax.
    pub allowed_tools: Vec<String>,
    /// Tools that are denied, in the CLI's own syntax.
    pub denied_tools: Vec<String>,
    /// Limit of turns, after which the run ends.
    pub max_turns: Option<u32>,
    /// Limit of the cost in USD, at which the run ends.
    pub max_budget_usd: Option<f64>,
    /// JSON Schema of the answer.
    pub output_schema: Option<Value>,
    /// Images that go with the prompt.
    pub images: Vec<Image>,
    /// MCP servers for this run, in addition to the user's.
    #[cfg_attr(feature = "config", serde(skip))]
    pub mcp_servers: Vec<McpServer>,
    /// Delivery of the MCP servers to the CLI.
    pub mcp_delivery: McpDelivery,
    /// Leaves out the user's own MCP servers.
    pub mcp_strict: bool,
    /// Number of times that the CLI itself retries a failed request.
    pub cli_retries: Option<u32>,
    /// Arguments passed to the CLI unchanged, after the provider's.
    pub extra_args: Vec<String>,
    /// Attaches to every event the native line that it came from.
    pub include_native: bool,
    /// Reports usage during the run even if the CLI does not print it, by reading the files in which the CLI records
    /// its sessions.
    pub usage_updates: bool,
    /// Keeps the background processes of the agent's tools running after the run.
    pub keep_background: bool,
    /// Time limits of this run; unset ones default to the runtime's.
    pub timeouts: Timeouts,
    /// Cancelling this stops the run.
    #[cfg_attr(feature = "config", serde(skip))]
    pub cancel: CancellationToken,
}

setters! {
    ExecuteParams {
        into prompt: String,
        set slash_commands: bool,
        some_into session_id as resume: String,
        some_into new_session_id: String,
        set fork: bool,
        some_into working_directory: PathBuf,
        some system_prompt: SystemPrompt,
        some_into title: String,
        some_into model: String,
        some_into effort: String,
        some_into fallback_model: String,
        set permission: PermissionMode,
        some permissions: PermissionPolicy,
        some max_turns: u32,
        some max_budget_usd: f64,
        some hooks: Value,
        some output_schema: Value,
        set mcp_delivery: McpDelivery,
        set mcp_strict: bool,
        some cli_retries: u32,
        set include_native: bool,
        set usage_updates: bool,
        set keep_background: bool,
        set timeouts: Timeouts,
        set cancel: CancellationToken,
    }
}

/// Omits values that may be secret or private: shows the length of texts and the names of variables.
impl fmt::Debug for ExecuteParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecuteParams")
            .field("prompt_bytes", &self.prompt.len())
            .field("session_id", &self.session_id)
            .field("new_session_id", &self.new_session_id)
            .field("fork", &self.fork)
            .field("working_directory", &self.working_directory)
            .field("skills", &self.skills)
            .field("sub_agents", &self.sub_agents.len())
            .field("hooks", &self.hooks.is_some())
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("title", &self.title)
            .field("model", &self.model)
            .field("effort", &self.effort)
            .field("fallback_model", &self.fallback_model)
            .field("permission", &self.permission)
            .field("permissions", &self.permissions)
            .field("allowed_tools", &self.allowed_tools)
            .field("denied_tools", &self.denied_tools)
            .field("max_turns", &self.max_turns)
            .field("max_budget_usd", &self.max_budget_usd)
            .field("mcp_servers", &self.mcp_servers)
            .field("mcp_delivery", &self.mcp_delivery)
            .field("mcp_strict", &self.mcp_strict)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

impl ExecuteParams {
    /// Returns whether the CLI takes the prompt as one of its commands. Such a run may end without any output.
    pub fn is_command(&self) -> bool {
        self.commands()(&self.prompt)
    }

    /// Returns a function that decides whether the CLI takes a prompt as one of its commands, for the turns of a session.
    pub fn commands(&self) -> fn(&str) -> bool {
        if self.slash_commands {
            |prompt| prompt.trim_start().starts_with('/')
        } else {
            |_| false
        }
    }

    /// Creates the parameters of a run of `prompt`, with the default for everything else.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self {
            prompt: prompt.into(),
            ..Self::default()
        }
    }

    /// Adds an environment variable. It overrides an inherited one and the provider's.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }
}

/// Lists the names of the fields. Does not compile if one is missing.
macro_rules! names {
    ($($name:ident),* $(,)?) => {
        impl ExecuteParams {
            /// Names of all parameters, as in [`ErrorDetail::Parameter`](crate::ErrorDetail).
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];
        }

        const _: fn(ExecuteParams) = |ExecuteParams { $($name: _),* }| ();
    };
}

names! {
    prompt, slash_commands, session_id, new_session_id, fork, working_directory, add_dirs,
    skills, sub_agents, hooks, env, system_prompt, title, model, effort, fallback_model,
    permission, permissions, allowed_tools, denied_tools, max_turns, max_budget_usd,
    output_schema, images, mcp_servers, mcp_delivery, mcp_strict, cli_retries, extra_args,
    include_native, usage_updates, keep_background, timeouts, cancel,
}

/// Setters of lists, which accept any iterator of convertible items.
macro_rules! lists {
    ($($name:ident: $item:ty,)*) => {
        impl ExecuteParams {
            $(
                #[doc = concat!(
                    "Sets the [`", stringify!($name), "`](#structfield.", stringify!($name),
                    ") field of this struct."
                )]
                #[must_use]
                pub fn $name(mut self, items: impl IntoIterator<Item = impl Into<$item>>) -> Self {
                    self.$name = items.into_iter().map(Into::into).collect();
                    self
                }
            )*
        }
    };
}

lists! {
    add_dirs: PathBuf,
    skills: PathBuf,
    sub_agents: SubAgent,
    allowed_tools: String,
    denied_tools: String,
    images: Image,
    mcp_servers: McpServer,
    extra_args: String,
}

/// Instructions for the agent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum SystemPrompt {
    /// Appended to the CLI's own.
    Append(String),
    /// Replaces the CLI's own.
    Replace(String),
}

/// Actions that the agent may perform without a permission request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum PermissionMode {
    /// Follows the CLI's own settings. A tool that would need confirmation is denied.
    #[default]
    Default,
    /// Denies all tools of the CLI that change anything. MCP tools are not affected.
    ReadOnly,
    /// Also allows edits of files.
    AcceptEdits,
    /// Allows everything. Use it only in a sandbox.
    Bypass,
    /// The CLI's own plan mode: the agent reads, and answers with a plan, before anything is changed. What is denied, and
    /// what needs permission, is the CLI's.
    Plan,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let mut params = ExecuteParams::new("my diary");
        params.env.insert("API_KEY".into(), "sk-123".into());
        params.system_prompt = Some(SystemPrompt::Append("my rules".into()));
        let shown = format!("{params:?}");
        assert!(shown.contains("API_KEY"), "{shown}");
        for secret in ["diary", "sk-123", "rules"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}
