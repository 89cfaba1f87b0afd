//! Request bodies that start a run or a session.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use teamster_core::PermissionMode;

use crate::callbacks::check_target;
use crate::rights::{self, Demand, Right};
use crate::{Problem, ProblemCode, ServerConfig};

/// A run to start. Defaults are those of `teamster run --detach`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct StartRun {
    /// The agent, such as `claude`.
    #[schemars(length(min = 1))]
    pub provider: String,
    /// The prompt.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    pub prompt: String,
    /// The model, by the CLI's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Reasoning effort, in the CLI's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// The permission mode.
    #[serde(default)]
    pub permission: Permission,
    /// Tools that are allowed without a request, in the CLI's own syntax. Needs a token with the scopes `run` and
    /// `answer`, or `admin`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// Tools that are forbidden, in the CLI's own syntax.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_tools: Vec<String>,
    /// The agent's working directory, an absolute path. Default: the server's working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^/"))]
    pub working_directory: Option<PathBuf>,
    /// Run in a new git worktree: `true`, or the name of its branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// The session to resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The conversation, such as `slack:U42`: its session is resumed, or started by the first run with this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// With `sessionKey`: forget the session and start the conversation over.
    #[serde(default)]
    pub new_session: bool,
    /// With `sessionId`: continue in a new session and leave that one unchanged.
    #[serde(default)]
    pub fork: bool,
    /// Replaces the CLI's system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Text that is appended to the CLI's system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_system_prompt: Option<String>,
    /// The JSON Schema of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The maximum number of turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_turns: Option<u32>,
    /// The maximum cost in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_budget_usd: Option<f64>,
    /// The maximum number of tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The maximum duration in milliseconds, including waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_time_ms: Option<u64>,
    /// The number of retries after transient failures.
    #[serde(default)]
    pub retries: u32,
    /// The maximum wait for a limit to reset, in milliseconds. Beyond it the next agent takes over, or the run or turn
    /// fails. Default: 5 minutes with `retries`, else 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wait_ms: Option<u64>,
    /// Agents that take over when the previous ones fail, such as `codex` or `codex:gpt-5.1`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
    /// The time limit for an answer to a request, in milliseconds. Then the request is denied; 0 denies at once.
    /// Default: 1 hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_timeout_ms: Option<u64>,
    /// A URL that receives a request when the run ends or needs an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(url, regex(pattern = "^https?://"))]
    pub callback: Option<String>,
}

impl StartRun {
    /// Creates a request with the defaults of `teamster run --detach`.
    pub fn new(provider: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            prompt: prompt.into(),
            model: None,
            effort: None,
            permission: Permission::Default,
            allowed_tools: Vec::new(),
            denied_tools: Vec::new(),
            working_directory: None,
            worktree: None,
            session_id: None,
            session_key: None,
            new_session: false,
            fork: false,
            system_prompt: None,
            append_system_prompt: None,
            output_schema: None,
            max_turns: None,
            max_budget_usd: None,
            max_tokens: None,
            max_time_ms: None,
            retries: 0,
            max_wait_ms: None,
            fallback: Vec::new(),
            ask_timeout_ms: None,
            callback: None,
        }
    }

    pub(crate) fn common(&self) -> Common<'_> {
        Common {
            working_directory: self.working_directory.as_deref(),
            callback: self.callback.as_deref(),
            fork_without_session: self.fork && self.session_id.is_none(),
        }
    }
}

/// A session to start. Defaults are those of `teamster chat --detach`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct StartSession {
    /// The agent, such as `claude`.
    #[schemars(length(min = 1))]
    pub provider: String,
    /// The model, by the CLI's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Reasoning effort, in the CLI's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// The permission mode.
    #[serde(default)]
    pub permission: Permission,
    /// Tools that are allowed without a request, in the CLI's own syntax. Needs a token with the scopes `run` and
    /// `answer`, or `admin`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// Tools that are forbidden, in the CLI's own syntax.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_tools: Vec<String>,
    /// The agent's working directory, an absolute path. Default: the server's working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^/"))]
    pub working_directory: Option<PathBuf>,
    /// Work in a new git worktree: `true`, or the name of its branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// The agent's session to resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// With `sessionId`: continue in a new session and leave that one unchanged.
    #[serde(default)]
    pub fork: bool,
    /// Replaces the CLI's system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Text that is appended to the CLI's system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_system_prompt: Option<String>,
    /// The maximum cost of all turns together, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_budget_usd: Option<f64>,
    /// The maximum number of tokens of all turns together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The maximum duration of all turns together, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_time_ms: Option<u64>,
    /// The number of retries of a turn after transient failures.
    #[serde(default)]
    pub retries: u32,
    /// The maximum wait for a limit to reset, in milliseconds. Beyond it the next agent takes over, or the run or turn
    /// fails. Default: 5 minutes with `retries`, else 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wait_ms: Option<u64>,
    /// Agents that take over when the previous ones fail in the first turn, such as `codex` or `codex:gpt-5.1`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
    /// The time limit for an answer to a request, in milliseconds. Then the request is denied; 0 denies at once.
    /// Default: 1 hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_timeout_ms: Option<u64>,
    /// End the session after this time without a turn, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_idle_ms: Option<u64>,
    /// A URL that receives a request when the session ends or needs an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(url, regex(pattern = "^https?://"))]
    pub callback: Option<String>,
}

impl StartSession {
    /// Creates a request with the defaults of `teamster chat --detach`.
    pub fn new(provider: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            model: None,
            effort: None,
            permission: Permission::Default,
            allowed_tools: Vec::new(),
            denied_tools: Vec::new(),
            working_directory: None,
            worktree: None,
            session_id: None,
            fork: false,
            system_prompt: None,
            append_system_prompt: None,
            max_budget_usd: None,
            max_tokens: None,
            max_time_ms: None,
            retries: 0,
            max_wait_ms: None,
            fallback: Vec::new(),
            ask_timeout_ms: None,
            end_idle_ms: None,
            callback: None,
        }
    }

    pub(crate) fn common(&self) -> Common<'_> {
        Common {
            working_directory: self.working_directory.as_deref(),
            callback: self.callback.as_deref(),
            fork_without_session: self.fork && self.session_id.is_none(),
        }
    }
}

impl Demand for StartRun {
    fn rights(&self) -> Vec<Right> {
        let agents = self.fallback.iter().chain([&self.provider]);
        rights::of_agent(Some(self.permission.into()), agents, &self.allowed_tools)
    }
}

impl Demand for StartSession {
    fn rights(&self) -> Vec<Right> {
        let agents = self.fallback.iter().chain([&self.provider]);
        rights::of_agent(Some(self.permission.into()), agents, &self.allowed_tools)
    }
}

/// The parameters of runs and sessions that are checked before the start.
pub(crate) struct Common<'a> {
    working_directory: Option<&'a Path>,
    callback: Option<&'a str>,
    /// A fork was requested without a session to fork.
    fork_without_session: bool,
}

impl Common<'_> {
    /// Rejects invalid parameters.
    pub(crate) async fn check(&self, config: &ServerConfig) -> Result<(), Problem> {
        let invalid = |detail: String| Err(Problem::new(ProblemCode::InvalidParams, detail));
        if let Some(path) = self.working_directory {
            if !path.is_absolute() {
                return invalid("workingDirectory: expected an absolute path".to_owned());
            }
            if !path.is_dir() {
                let path = path.display();
                return invalid(format!("workingDirectory: no such directory: {path}"));
            }
        }
        if let Some(url) = self.callback
            && let Err(error) = check_target(url, config.allow_private_callbacks).await
        {
            return invalid(format!("callback: {error}"));
        }
        if self.fork_without_session {
            return invalid("fork: requires sessionId".to_owned());
        }
        Ok(())
    }
}

/// The permission mode of an agent: what it may do without approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "PermissionMode")]
pub enum Permission {
    /// As the CLI's settings allow.
    #[default]
    Default,
    /// No changes by built-in tools.
    ReadOnly,
    /// As the CLI's settings allow, and file changes.
    AcceptEdits,
    /// Everything. Only if the server allows it, and for a token with the scope `admin`.
    Bypass,
}

impl Permission {
    /// Returns the name, as in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::ReadOnly => "read-only",
            Self::AcceptEdits => "accept-edits",
            Self::Bypass => "bypass",
        }
    }
}

impl From<Permission> for PermissionMode {
    fn from(permission: Permission) -> Self {
        match permission {
            Permission::Default => Self::Default,
            Permission::ReadOnly => Self::ReadOnly,
            Permission::AcceptEdits => Self::AcceptEdits,
            Permission::Bypass => Self::Bypass,
        }
    }
}

/// A new git worktree for a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Worktree {
    /// `true` for a worktree on a new branch that is named after the run.
    Switch(bool),
    /// A worktree on a new branch of this name.
    Branch(String),
}
