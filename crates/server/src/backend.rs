//! What the program does for the server.

use futures_core::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    fn usage(&self, query: UsageQuery) -> BoxFuture<'static, Result<Value, BackendError>>;
}

/// Why the program did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The request cannot be fulfilled as it is.
    #[error("{0}")]
    Invalid(String),
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
    /// `day` (the default), `week`, `month`, `session`, `model`, `agent`, `project` or `provider`.
    pub by: Option<String>,
    /// From when on: a date such as `2026-11-01`, a time, or a length of time back from now such as `7d`.
    pub since: Option<String>,
    /// Until when, in the same forms.
    pub until: Option<String>,
}
