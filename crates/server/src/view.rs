//! JSON views of runs and agents.

use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use teamster_core::{AgentError, Capabilities, RunResult, RunStatus, Usage};
use teamster_runner::protocol::PendingRequest;
use teamster_runner::{LiveStatus, RunInfo};

/// What a run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ViewState {
    /// It runs.
    Running,
    /// It runs, and a request of it waits for an answer.
    Waiting,
    /// It has ended; `status` has the outcome.
    Ended,
}

/// A run, without its events.
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
    /// What it is doing, where that is requested; absent once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveStatus>,
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

/// An agent of this machine, and what it can do.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderReport {
    /// What `teamster doctor` found out.
    #[serde(flatten)]
    pub facts: ProviderFacts,
    /// What it can do.
    pub capabilities: Capabilities,
}

/// What `teamster doctor` found out about an agent: the JSON of its `--json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProviderFacts {
    /// Its id, such as `claude`.
    pub id: String,
    /// The CLI's own name.
    pub name: String,
    /// It was found and reported its version; of one without a program: there is a key for a model's service.
    pub usable: bool,
    /// It has no program and runs in the process of the run.
    pub in_process: bool,
    /// Its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The program that a run starts, if that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_path: Option<PathBuf>,
    /// The version that it reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The decoder is tested with real output of this very version.
    pub tested: bool,
    /// The versions with whose real output the decoder is tested.
    pub tested_versions: Vec<String>,
    /// The oldest version that works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_version: Option<String>,
    /// The version is older than that.
    pub too_old: bool,
    /// Why it cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The command that installs it.
    pub install: String,
    /// Whether it is logged in.
    pub login: ProviderLogin,
}

/// The login of an agent, as far as its files and the environment show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ProviderLogin {
    /// `yes`, `no`, or `unknown` where it cannot be seen, as in a keychain.
    pub state: String,
    /// The variable or file that shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}
