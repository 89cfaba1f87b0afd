//! The interface between the server and the program that hosts it.

use futures_core::future::BoxFuture;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use teamster_api::{RunSpec, SessionSpec};
use teamster_core::AgentError;
use teamster_store::{RunFilter, RunRecord};
use teamster_usage::{Dimension, LimitList, Provider, UsageSummary};

use crate::ProviderReport;

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

/// Runs and logs to delete. Live runs are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("not" = {"type": "object", "properties": {
    "ids": {"type": "array", "items": {"type": "string"}, "maxItems": 0},
    "olderThanMs": {"type": "null"},
    "logsOver": {"type": "null"},
}}))]
#[non_exhaustive]
pub struct ForgetRuns {
    /// Ids or unique id prefixes of runs to delete. If one of them cannot be deleted, none is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
    /// Delete runs that ended longer ago than this, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_than_ms: Option<u64>,
    /// Delete the oldest logs until the rest takes at most this many bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs_over: Option<u64>,
}

/// The number of deleted runs and logs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Forgotten {
    /// Deleted runs of the history.
    pub runs: u64,
    /// Deleted logs.
    pub logs: u64,
    /// The size of the deleted logs, in bytes.
    pub log_bytes: u64,
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

/// A query of the usage report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct UsageQuery {
    /// Grouping. Default: `day`.
    pub by: Option<Dimension>,
    /// Start of the period: a date such as `2026-11-01`, a time, `today`, `yesterday`, or a duration before now such as
    /// `7d`.
    #[schemars(schema_with = "time_of_usage")]
    pub since: Option<String>,
    /// End of the period, in the same formats, after `since`. A day is included.
    #[schemars(schema_with = "time_of_usage")]
    pub until: Option<String>,
    /// Only these CLIs, comma-separated.
    #[schemars(schema_with = "names_of_clis")]
    pub provider: Option<String>,
    /// Include the models of each group.
    #[serde(default)]
    pub models: bool,
}

fn time_of_usage(_: &mut SchemaGenerator) -> Schema {
    let date = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])";
    let time = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?";
    let age = "([1-9][0-9]{0,4}(ms|s|m|h|d)){1,3}";
    json_schema!({
        "type": "string",
        "pattern": format!("^(today|yesterday|{age}|{date}([T ]{time})?)$"),
    })
}

fn names_of_clis(_: &mut SchemaGenerator) -> Schema {
    let names = Provider::ALL.map(Provider::id).join("|");
    json_schema!({"type": "string", "pattern": format!("^({names})(,({names}))*$")})
}
