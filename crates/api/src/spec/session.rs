//! The description of a session.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use teamster_core::PermissionMode;

use crate::schema;
use crate::{AgentDepth, Placement, Trusted, Workspace, Worktree};

/// A session to start.
#[serde_with::skip_serializing_none]
#[derive(Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(extend("not" = schema::excluded_in_session()))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct SessionSpec {
    /// The agent, such as `claude`.
    #[schemars(length(min = 1), regex(pattern = r"[^\s\u0085]"))]
    pub provider: String,
    /// The title of the session, under which the agent's CLI lists it, too. Default: the first line of the first prompt, here
    /// alone.
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
    /// Work in a new git worktree: `true`, or the name of its branch.
    pub worktree: Option<Worktree>,
    /// Where the agent works, in the long form. Excludes `workingDirectory` and `worktree`.
    pub workspace: Option<Workspace>,
    /// The agent's session to resume.
    #[schemars(length(min = 1), regex(pattern = r"[^\s\u0085]"))]
    pub session_id: Option<String>,
    /// The conversation, such as `slack:U42`: its session is resumed, or started by the first run or session with this
    /// key.
    #[schemars(length(max = 500), regex(pattern = schema::SESSION_KEY_PATTERN))]
    pub session_key: Option<String>,
    /// The id of the session whose log has the beginning of this conversation. It is shown with the session, and the workspace
    /// `continued` is that of it: `sessionId` is the session that the agent resumes.
    #[schemars(length(min = 1), regex(pattern = r"[^\s\u0085]"))]
    pub continues: Option<String>,
    /// With `sessionId`: continue in a new session and leave that one unchanged.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub fork: bool,
    /// Replaces the CLI's system prompt.
    pub system_prompt: Option<String>,
    /// Text that is appended to the CLI's system prompt.
    pub append_system_prompt: Option<String>,
    /// The maximum cost of all turns together, in US dollars.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_budget_usd: Option<f64>,
    /// The maximum number of tokens of all turns together.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    /// The maximum duration of all turns together, in milliseconds. 0: no limit.
    pub max_time_ms: Option<u64>,
    /// The number of retries of a turn after transient failures.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub retries: u32,
    /// The maximum wait for a limit to reset, in milliseconds. Beyond it the next agent takes over, or the run or turn
    /// fails. 0 is no limit. Default: 5 minutes with `retries`, else no wait.
    pub max_wait_ms: Option<u64>,
    /// Agents that take over when the previous ones fail in the first turn, such as `codex` or `codex:gpt-5.1`.
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
    /// Files that are collected from the working directory at the end of the session: paths in it with `*`, `**` and `?`, or
    /// directories. Symbolic links are not followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(length(min = 1)))]
    pub artifacts: Vec<String>,
    /// End the session after this time without a turn, in milliseconds. 0: never.
    pub end_idle_ms: Option<u64>,
    /// A URL that receives a request when the session ends or needs an answer.
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
    /// The part that no stranger may choose.
    #[serde(default, skip_serializing_if = "Trusted::is_empty")]
    #[schemars(skip)]
    pub trusted: Trusted,
}

// Omits texts that may be private.
teamster_core::debug_fields!(SessionSpec {
    provider,
    model,
    permission,
    trusted
});

impl SessionSpec {
    /// Creates the spec of a session of this agent, with the default for everything else.
    pub fn new(provider: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            ..Self::default()
        }
    }
}
