//! The limits of a server.

use std::time::Duration;

use teamster_api::AgentDepth;
use teamster_core::PermissionMode;

/// Limits of a server's runs, together and each.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// The agents that are offered. Empty: all but those that are named by a command.
    pub agents: Vec<String>,
    /// The most that a run may do without approval. With [`PermissionMode::ReadOnly`], no request can be allowed either.
    pub permission: PermissionMode,
    /// The depth of the client among agents that start agents.
    pub depth: AgentDepth,
    /// The budget of all runs together, in US dollars.
    pub max_budget_usd: Option<f64>,
    /// The budget of all runs together, in tokens.
    pub max_tokens: Option<u64>,
    /// The longest time of a run.
    pub max_time: Duration,
    /// The maximum number of live runs.
    pub max_runs: usize,
    /// Runs continue when the client has disconnected.
    pub keep_runs: bool,
}

impl Default for Limits {
    /// Read-only runs, which start no others, of at most an hour, at most 8 at the same time.
    fn default() -> Self {
        Self {
            agents: Vec::new(),
            permission: PermissionMode::ReadOnly,
            depth: AgentDepth::new(0, Some(1)),
            max_budget_usd: None,
            max_tokens: None,
            max_time: Duration::from_hours(1),
            max_runs: 8,
            keep_runs: false,
        }
    }
}

/// A limit that refuses a call, and that the user can raise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// [`Limits::depth`].
    Depth,
    /// [`Limits::permission`].
    Permission,
}

/// Returns how the user raises a limit, to append to a refusal.
pub(crate) type Hint = fn(Limit) -> Option<&'static str>;

/// Returns the id of the agent with this name or alias.
pub(crate) type IdOf = fn(&str) -> Option<String>;

/// Appends how the user raises the limit.
pub(crate) fn refusal(fact: String, hint: Option<&'static str>) -> String {
    match hint {
        Some(hint) => format!("{fact}; {hint}"),
        None => fact,
    }
}
