//! The descriptions of a run and of a session.

mod session;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use teamster_core::{Image, PermissionMode};

use crate::schema;
use crate::{AgentDepth, Placement, Trusted, Workspace, Worktree};

pub use session::SessionSpec;

/// A run to start.
#[serde_with::skip_serializing_none]
#[derive(Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(extend("not" = schema::excluded_in_run()))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct RunSpec {
    /// The agent, such as `claude`.
    #[schemars(length(min = 1), regex(pattern = r"[^\s\u0085]"))]
    pub provider: String,
    /// The prompt.
    #[schemars(length(min = 1), regex(pattern = r"[^\s\u0085]"))]
    pub prompt: String,
    /// Images that go with the prompt.
    #[serde(default, with = "crate::image", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::Images")]
    pub images: Vec<Image>,
    /// The title of the run, under which the agent's CLI lists its session, too. Default: the first line of the prompt, for the
    /// run alone.
    #[schemars(length(min = 1), regex(pattern = r"[^\s\u0085]"))]
    pub title: Option<String>,
    /// The model, by the CLI's own name.
    #[schemars(length(min = 1), regex(pattern = r"[^\s\u0085]"))]
    pub model: Option<String>,
    /// Reasoning effort, in the CLI's own words.
    #[schemars(length(min = 1), regex(pattern = r"[^\s\u0085]"))]
    pub effort: Option<String>,
    /// The model to which the CLI itself changes while its own is overloaded.
    #[schemars(length(min = 1), regex(pattern = r"[^\s\u0085]"))]
    pub fallback_model: Option<String>,
    /// What the agent may do without approval. A server accepts `bypass` only if it allows it, and from a token with the
    /// scope `admin`.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub permission: PermissionMode,
    /// Tools that are allowed without a request, in the CLI's own syntax. Needs a token with the scopes `run` and
    /// `answer`, or `admin`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(length(min = 1), regex(pattern = r"[^\s\u0085]")))]
    pub allowed_tools: Vec<String>,
    /// Tools that are forbidden, in the CLI's own syntax.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(length(min = 1), regex(pattern = r"[^\s\u0085]")))]
    pub denied_tools: Vec<String>,
    /// The agent's working directory, an absolute path. Default: that of the server.
    #[serde(default, with = "crate::path::optional")]
    #[schemars(with = "Option<PathBuf>", regex(pattern = "^/"))]
    pub working_directory: Option<PathBuf>,
    /// Run in a new git worktree: `true`, or the name of its branch.
    pub worktree: Option<Worktree>,
    /// Where the agent works, in the long form. Excludes `workingDirectory` and `worktree`.
    pub workspace: Option<Workspace>,
    /// The session to resume.
    #[schemars(length(min = 1), regex(pattern = r"[^\s\u0085]"))]
    pub session_id: Option<String>,
    /// The conversation, such as `slack:U42`: its session is resumed, or started by the first run with this key.
    #[schemars(length(max = 500), regex(pattern = schema::SESSION_KEY_PATTERN))]
    pub session_key: Option<String>,
    /// With `sessionKey`: forget the session and start the conversation over.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub new_session: bool,
    /// With `sessionId`: continue in a new session and leave that one unchanged.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub fork: bool,
    /// Replaces the CLI's system prompt.
    pub system_prompt: Option<String>,
    /// Text that is appended to the CLI's system prompt.
    pub append_system_prompt: Option<String>,
    /// The JSON Schema of the answer.
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    pub output_schema: Option<Value>,
    /// The maximum number of turns.
    #[schemars(range(min = 1))]
    pub max_turns: Option<u32>,
    /// The maximum cost in US dollars.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_budget_usd: Option<f64>,
    /// The maximum number of tokens.
    pub max_tokens: Option<u64>,
    /// The maximum duration in milliseconds, including waits. 0: no limit.
    pub max_time_ms: Option<u64>,
    /// The number of retries after transient failures.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub retries: u32,
    /// The maximum wait for a limit to reset, in milliseconds. Beyond it the next agent takes over, or the run or turn
    /// fails. 0 is no limit. Default: 5 minutes with `retries`, else no wait.
    pub max_wait_ms: Option<u64>,
    /// Agents that take over when the previous ones fail, such as `codex` or `codex:gpt-5.1`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(length(min = 1), regex(pattern = r"[^\s\u0085]")))]
    pub fallback: Vec<String>,
    /// Accounts of the agents, by their names on the machine (`teamster accounts list`), in order of preference: the next
    /// one of an agent takes over when the limit of the previous one is reached. Of an agent without one, its own login is used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(length(min = 1), regex(pattern = r"[^\s\u0085]")))]
    pub accounts: Vec<String>,
    /// The time limit for an answer to a request, in milliseconds. Then the request is denied; 0 denies at once.
    /// Default: 1 hour.
    pub ask_timeout_ms: Option<u64>,
    /// Files that are collected from the working directory at the end: paths in it with `*`, `**` and `?`, or
    /// directories. Symbolic links are not followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(length(min = 1)))]
    pub artifacts: Vec<String>,
    /// A URL that receives a request when the run ends or needs an answer.
    #[schemars(url, regex(pattern = "^https?://"))]
    pub callback: Option<String>,
    /// The depth of the agent, if another agent starts it. It only restricts: the machine's own limit counts, too.
    pub depth: Option<AgentDepth>,
    /// The machines of a fleet that may carry it out. A server without a fleet refuses it.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub placement: Placement,
    /// Names of the secrets that the agent gets as variables, such as `NPM_TOKEN`. The values are on the machines of the
    /// fleet, each of which decides who may use them. A server without a fleet refuses it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]*$")))]
    pub secrets: Vec<String>,
    /// Start it over, as a new run that may cost twice, if its machine is lost. Requires the permission mode `read-only`
    /// without `allowedTools`. A server without a fleet refuses it.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub rerun_if_lost: bool,
    /// The part that no stranger may choose.
    #[serde(default, skip_serializing_if = "Trusted::is_empty")]
    #[schemars(skip)]
    pub trusted: Trusted,
}

// Omits texts that may be private.
teamster_core::debug_fields!(RunSpec |it| {
    provider: it.provider,
    prompt_bytes: it.prompt.len(),
    model: it.model,
    permission: it.permission,
    trusted: it.trusted,
});

impl RunSpec {
    /// Creates the spec of a run of this prompt, with the default for everything else.
    pub fn new(provider: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            prompt: prompt.into(),
            ..Self::default()
        }
    }

    /// Returns whether the run may take more than one attempt.
    pub fn allows_several_attempts(&self) -> bool {
        let others = !self.fallback.is_empty() || self.accounts.len() > 1;
        self.retries > 0 || others || self.max_wait_ms.is_some()
    }
}

/// The spec of a run or of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Spec {
    /// A run.
    Run(Box<RunSpec>),
    /// A session.
    Session(Box<SessionSpec>),
}

/// Evaluates an expression with the run or the session of a [`Spec`], many of whose fields are the same.
#[doc(hidden)]
#[macro_export]
macro_rules! either {
    ($spec:expr, $it:ident => $value:expr) => {
        match $spec {
            $crate::Spec::Run($it) => $value,
            $crate::Spec::Session($it) => $value,
        }
    };
}

impl Spec {
    /// The version of the specs of this crate, for the envelopes in which they are passed on.
    pub const VERSION: u32 = 1;

    /// Returns the first agent.
    pub fn provider(&self) -> &str {
        either!(self, spec => &spec.provider)
    }
}

impl From<RunSpec> for Spec {
    fn from(spec: RunSpec) -> Self {
        Self::Run(Box::new(spec))
    }
}

impl From<SessionSpec> for Spec {
    fn from(spec: SessionSpec) -> Self {
        Self::Session(Box::new(spec))
    }
}

#[cfg(test)]
mod tests;
