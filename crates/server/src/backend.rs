//! The interface between the server and the program that hosts it.

use futures_core::future::BoxFuture;
use teamster_api::history::{ForgetRuns, Forgotten, RunFilter, RunRecord};
use teamster_api::usage::{LimitList, UsageQuery, UsageSummary};
use teamster_api::{ProviderReport, RunSpec, SessionSpec};
use teamster_core::AgentError;

/// Operations that the host program performs for the server. They are called for authorized requests only.
pub trait Backend: Send + Sync + 'static {
    /// Starts a detached run with this id. Resolves once the runner has accepted it.
    fn start(
        &self,
        run_id: String,
        request: RunSpec,
    ) -> BoxFuture<'static, Result<(), BackendError>>;

    /// Starts a detached session with this id. Resolves once the runner has accepted it.
    fn start_session(
        &self,
        session_id: String,
        request: SessionSpec,
    ) -> BoxFuture<'static, Result<(), BackendError>>;

    /// Returns a report for each agent of this machine: the JSON of `teamster doctor --json` plus `capabilities`.
    fn providers(&self) -> BoxFuture<'static, Result<Vec<ProviderReport>, BackendError>>;

    /// Returns the usage of all agents, as in `teamster usage --json`.
    fn usage(&self, query: UsageQuery) -> BoxFuture<'static, Result<UsageSummary, BackendError>>;

    /// Returns the limits of subscriptions, as in `teamster usage --limits --json`.
    fn limits(&self) -> BoxFuture<'static, Result<LimitList, BackendError>>;

    /// Returns runs of the history; an empty list if there is no store.
    fn history(
        &self,
        filter: RunFilter,
    ) -> BoxFuture<'static, Result<Vec<RunRecord>, BackendError>>;

    /// Deletes runs of the history and logs, as `teamster runs forget` does.
    fn forget(&self, request: ForgetRuns) -> BoxFuture<'static, Result<Forgotten, BackendError>>;

    /// Returns the run of the history with this id or unique id prefix.
    fn history_of(&self, id: String) -> BoxFuture<'static, Result<RunRecord, BackendError>>;
}

/// An error of a backend operation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The request is not valid.
    #[error("{0}")]
    Invalid(String),
    /// No run of the history has this id.
    #[error("no run `{0}` in the history")]
    NotFound(String),
    /// The id prefix matches several runs of the history.
    #[error("{0}")]
    Ambiguous(String),
    /// The run or session was refused.
    #[error(transparent)]
    Refused(#[from] AgentError),
    /// A run with this id exists.
    #[error("a run `{0}` exists already: give every run an id of its own")]
    Exists(String),
    /// A run that has not ended cannot be deleted.
    #[error("{0}")]
    Live(String),
    /// The operation failed.
    #[error("{0}")]
    Failed(String),
}
