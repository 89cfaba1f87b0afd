//! How runs are shown.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use teamster_core::{AgentError, RunResult, RunStatus, Usage};
use teamster_runner::RunInfo;
use teamster_runner::protocol::PendingRequest;

/// What a run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ViewState {
    /// It runs.
    Running,
    /// It runs, and a request of it waits for an answer.
    Waiting,
    /// It has ended; `status` says how.
    Ended,
}

/// A run, without what it has said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunSummary {
    /// What the run is.
    #[serde(flatten)]
    pub info: RunInfo,
    /// What it does.
    pub state: ViewState,
    /// How it ended; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
    /// The number of the newest entry of its log.
    pub seq: u64,
    /// When its log was last written to, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<u64>,
    /// The session of its agent, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The tokens so far, as far as the agent reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The cost so far in US dollars, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How long it took, in milliseconds; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AgentError>,
    /// Its requests that wait for an answer.
    pub requests: Vec<PendingRequest>,
}

/// A run and its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunView {
    /// What is known of it while it runs, too.
    #[serde(flatten)]
    pub summary: Arc<RunSummary>,
    /// The result; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RunResult>>,
}

/// A page of runs, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunList {
    /// The runs.
    pub runs: Vec<Arc<RunSummary>>,
    /// The `cursor` of the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
