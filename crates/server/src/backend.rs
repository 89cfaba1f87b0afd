//! What the program does for the server.

use futures_core::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use teamster_store::{RunFilter, RunRecord};
use teamster_usage::{LimitList, UsageSummary};

use crate::StartRun;

/// What only the program can do. All of it is done for requests that were authorized.
pub trait Backend: Send + Sync + 'static {
    /// Starts a detached run with this id. Resolves once its runner has accepted it.
    fn start(
        &self,
        run_id: String,
        request: StartRun,
    ) -> BoxFuture<'static, Result<(), BackendError>>;

    /// The agents of this machine: the report of each, as `teamster doctor --json` has it, with its `capabilities`.
    fn providers(&self) -> BoxFuture<'static, Result<Value, BackendError>>;

    /// What agents have used, as `teamster usage --json` has it.
    fn usage(&self, query: UsageQuery) -> BoxFuture<'static, Result<UsageSummary, BackendError>>;

    /// The limits of subscriptions, as `teamster usage --limits --json` has them.
    fn limits(&self) -> BoxFuture<'static, Result<LimitList, BackendError>>;

    /// Runs of the history; none if there is no store.
    fn history(
        &self,
        filter: RunFilter,
    ) -> BoxFuture<'static, Result<Vec<RunRecord>, BackendError>>;

    /// The run of the history with this id, or the only one that begins so.
    fn history_of(&self, id: String) -> BoxFuture<'static, Result<RunRecord, BackendError>>;
}

/// Why the program did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The request cannot be fulfilled as it is.
    #[error("{0}")]
    Invalid(String),
    /// No run of the history has this id.
    #[error("there is no run `{0}` in the history")]
    NotFound(String),
    /// Several runs of the history begin with this id.
    #[error("{0}")]
    Ambiguous(String),
    /// A run has this id already.
    #[error("a run `{0}` exists already: give every run an id of its own")]
    Exists(String),
    /// It failed.
    #[error("{0}")]
    Failed(String),
}

/// What of the usage is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct UsageQuery {
    /// `day` (the default), `week`, `month`, `session`, `model`, `agent`, `project`, `provider` or `key`.
    pub by: Option<String>,
    /// From when on: a date such as `2026-11-01`, a time, or a length of time back from now such as `7d`.
    pub since: Option<String>,
    /// Until when, in the same forms.
    pub until: Option<String>,
    /// Only these CLIs, with commas between them.
    pub provider: Option<String>,
    /// Whether each group has its models.
    #[serde(default)]
    pub models: bool,
}
