//! JSON views of runs and agents.

use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use teamster_core::{AgentError, Capabilities, CostSource, RunResult, RunStatus, Usage};
use teamster_runner::protocol::PendingRequest;
use teamster_runner::{LiveStatus, RunInfo};

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ViewState {
    /// The run is live.
    Running,
    /// The run is live, and one of its requests waits for an answer.
    Waiting,
    /// The run has ended; `status` has the outcome.
    Ended,
}

/// A run, without its events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunSummary {
    /// The run's id, agent and parameters.
    #[serde(flatten)]
    pub info: RunInfo,
    /// The run's state.
    pub state: ViewState,
    /// The outcome; absent while the run is live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
    /// The `seq` of the newest log entry.
    pub seq: u64,
    /// The time of the last write to the log, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<u64>,
    /// The agent's session, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The tokens used so far, if the agent reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The cost so far in US dollars, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The source of the cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_source: Option<CostSource>,
    /// The duration in milliseconds; absent while the run is live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The error of a failed run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AgentError>,
    /// The requests that wait for an answer.
    pub requests: Vec<PendingRequest>,
    /// The live status, if it was requested; absent once the run has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveStatus>,
}

/// A run and its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunView {
    /// The run's summary.
    #[serde(flatten)]
    pub summary: Arc<RunSummary>,
    /// The prompt of a detached run; absent for sessions, and where prompts are not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The result; absent while the run is live.
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

/// An agent of this machine and its capabilities.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderReport {
    /// The report of `teamster doctor`.
    #[serde(flatten)]
    pub facts: ProviderFacts,
    /// The agent's capabilities.
    pub capabilities: Capabilities,
}

/// The report of `teamster doctor --json` about an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProviderFacts {
    /// The agent's id, such as `claude`.
    pub id: String,
    /// The CLI's own name.
    pub name: String,
    /// The agent can be used: its program reported a version or, without a program, a key for a model service exists.
    pub usable: bool,
    /// The agent has no program and runs in the process of the run.
    pub in_process: bool,
    /// The path of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The path of the program that a run starts, if it differs from `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_path: Option<PathBuf>,
    /// The version that the program reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The decoder is tested with recordings of this version.
    pub tested: bool,
    /// The versions whose recordings the decoder is tested with.
    pub tested_versions: Vec<String>,
    /// The oldest supported version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_version: Option<String>,
    /// The version is older than `oldestVersion`.
    pub too_old: bool,
    /// The reason why the agent cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The command that installs it.
    pub install: String,
    /// The login state.
    pub login: ProviderLogin,
}

/// The login state of an agent, from its files and the environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ProviderLogin {
    /// `yes`, `no`, or `unknown` where it cannot be seen, as in a keychain.
    pub state: String,
    /// The variable or file that shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}
