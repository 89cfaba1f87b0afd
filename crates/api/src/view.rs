//! Views of runs, as a server shows them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use teamster_core::{AgentError, CostSource, RunResult, RunStatus, Usage, WorkspaceResult};

use crate::history::RunCursor;
use crate::{LiveStatus, PendingRequest, QueueStatus, RunInfo, RunQuery, RunService, ServiceError};

/// The state of a run.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ViewState {
    /// The run waits in the queue of a fleet; `queue` has the reason.
    Queued,
    /// The run is live.
    #[default]
    Running,
    /// The run is live, and one of its requests waits for an answer.
    Waiting,
    /// The run was started, and its machine, one of a fleet, does not report. It may be going on.
    Unknown,
    /// The run has ended; `status` has the outcome.
    Ended,
}

/// A run, without its events.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunSummary {
    /// The run's id, agent and parameters.
    #[serde(flatten)]
    pub info: RunInfo,
    /// The run's state.
    pub state: ViewState,
    /// The start of the state `queued` or `unknown`, in milliseconds since the Unix epoch.
    pub since: Option<u64>,
    /// The reason for which it is `queued`.
    pub queue: Option<QueueStatus>,
    /// The machine of a fleet that has the run, or the only one that may take it.
    pub machine: Option<String>,
    /// The outcome; absent while the run is live.
    pub status: Option<RunStatus>,
    /// The `seq` of the newest log entry.
    pub seq: u64,
    /// The time of the last write to the log, in milliseconds since the Unix epoch.
    #[serde(rename = "changedAt")]
    pub changed_at_ms: Option<u64>,
    /// The agent's session, if known.
    pub session_id: Option<String>,
    /// The tokens used so far, if the agent reports them.
    pub usage: Option<Usage>,
    /// The cost so far in US dollars, if known.
    pub cost_usd: Option<f64>,
    /// The source of the cost.
    pub cost_source: Option<CostSource>,
    /// The duration in milliseconds; absent while the run is live.
    pub duration_ms: Option<u64>,
    /// The number of attempts that an ended run took, if there were several.
    pub attempts: Option<u32>,
    /// The error of a failed run.
    pub error: Option<AgentError>,
    /// What the run has left in its workspace; absent while it is live, and if it had none of its own.
    pub workspace: Option<WorkspaceResult>,
    /// The requests that wait for an answer.
    pub requests: Vec<PendingRequest>,
    /// The live status, if it was requested; absent once the run has ended.
    pub live: Option<LiveStatus>,
}

impl RunSummary {
    /// Creates the summary of a run of which only its state is known.
    pub fn new(info: RunInfo, state: ViewState) -> Self {
        Self {
            info,
            state,
            ..Self::default()
        }
    }
}

/// A run and its result.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunView {
    /// The run's summary.
    #[serde(flatten)]
    pub summary: Arc<RunSummary>,
    /// The prompt of a detached run; absent for sessions, and where prompts are not kept.
    pub prompt: Option<String>,
    /// The result; absent while the run is live.
    pub result: Option<Box<RunResult>>,
}

impl RunView {
    /// Creates the view of a run with this result, if it has ended.
    pub fn new(summary: Arc<RunSummary>, result: Option<Box<RunResult>>) -> Self {
        Self {
            summary,
            prompt: None,
            result,
        }
    }
}

/// A run that was started, or that an earlier start with the same key or id has started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StartedRun {
    /// The run.
    #[serde(flatten)]
    pub view: RunView,
    /// Warnings, such as of options without effect; absent without any. A repeated request gets those of the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Those of the warnings that a user who wants no others sees too, such as that the history is incomplete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub important: Vec<String>,
}

impl StartedRun {
    /// Creates the answer to a start.
    pub fn new(view: RunView, warnings: Vec<String>, important: Vec<String>) -> Self {
        Self {
            view,
            warnings,
            important,
        }
    }
}

/// A page of runs, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunList {
    /// The runs.
    pub runs: Vec<Arc<RunSummary>>,
    /// The `cursor` of the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl RunList {
    /// Creates the last page, with these runs.
    pub fn new(runs: Vec<Arc<RunSummary>>) -> Self {
        Self { runs, next: None }
    }

    /// Adds a run. Returns `false` if the page has this many already: then there is a next one.
    pub fn add(&mut self, run: Arc<RunSummary>, page_size: usize) -> bool {
        if self.runs.len() < page_size {
            self.runs.push(run);
            return true;
        }
        let last = self.runs.last().map(|run| &run.info);
        self.next = last.map(|last| RunCursor::new(last.accepted_at_ms, &*last.run_id).to_string());
        false
    }
}

/// Returns all runs of a query, newest first, page by page.
///
/// # Errors
///
/// Fails as [`RunService::list`] does.
pub async fn list_all(
    service: &dyn RunService,
    mut query: RunQuery,
) -> Result<Vec<Arc<RunSummary>>, ServiceError> {
    // The largest page.
    query.limit = Some(1000);
    let mut all = Vec::new();
    loop {
        let page = service.list(query.clone()).await?;
        all.extend(page.runs);
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return Ok(all),
        }
    }
}
