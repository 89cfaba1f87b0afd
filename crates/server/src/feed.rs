//! The current state of runs and agents: one snapshot, refreshed while it has watchers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use teamster_api::agents::{AgentList, Status};
use teamster_api::{Change, ProblemCode, RunSummary, ViewState};
use teamster_core::sync::lock;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::ApiError;
use crate::index::AT_ONCE;
use crate::routes::agents;
use crate::server::Shared;

/// The refresh interval of runs.
const TICK: Duration = Duration::from_millis(500);
/// Agents are refreshed with every n-th refresh of runs.
const AGENTS_EVERY: u32 = 4;
/// The time for which a refresh waits for the agents. A later one then has them.
const AGENTS_LIMIT: Duration = Duration::from_secs(1);
/// The number of newest runs in a snapshot, in addition to all that have not ended.
const RECENT: usize = 50;

/// A snapshot of runs and agents.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FeedState {
    /// The newest runs and all that have not ended, newest first.
    pub(crate) runs: Vec<Arc<RunSummary>>,
    agents: Option<Arc<AgentList>>,
}

/// Refreshes the snapshot while it has watchers.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    state: watch::Sender<Arc<FeedState>>,
    /// True while a refresh task runs.
    is_refreshing: Mutex<bool>,
    /// The lock allows one refresh at a time.
    refreshes: tokio::sync::Mutex<Refreshes>,
}

/// The state of refreshes.
#[derive(Debug, Default)]
struct Refreshes {
    count: u32,
    /// The request for the agents' status that has no answer yet.
    agents: Option<JoinHandle<Result<Option<Status>, ApiError>>>,
}

impl Feed {
    /// Refreshes the snapshot and returns a receiver of it and its changes.
    pub(crate) async fn watch(
        shared: &Arc<Shared>,
    ) -> Result<watch::Receiver<Arc<FeedState>>, ApiError> {
        let feed = &shared.feed;
        let mut receiver = feed.state.subscribe();
        feed.refresh(shared, true).await?;
        receiver.borrow_and_update();
        let mut is_refreshing = lock(&feed.is_refreshing);
        if !std::mem::replace(&mut *is_refreshing, true) {
            tokio::spawn(refresh_while_watched(shared.clone()));
        }
        Ok(receiver)
    }

    async fn refresh(&self, shared: &Arc<Shared>, with_agents: bool) -> Result<(), ApiError> {
        let mut refreshes = self.refreshes.lock().await;
        refreshes.count = refreshes.count.wrapping_add(1);
        let mut state = FeedState {
            runs: Vec::new(),
            agents: self.state.borrow().agents.clone(),
        };
        let folders = shared.index.folders().await?;
        for folders in folders.chunks(AT_ONCE) {
            for run in shared.index.summaries(folders, false).await {
                if state.runs.len() < RECENT || run.state != ViewState::Ended {
                    state.runs.push(run);
                }
            }
        }
        // Runs do not wait for a supervisor that does not answer.
        self.publish(&state);
        let is_due = with_agents || refreshes.count.is_multiple_of(AGENTS_EVERY);
        if is_due && refreshes.agents.is_none() {
            let shared = shared.clone();
            let ask = tokio::spawn(async move { agents::status(&shared).await });
            refreshes.agents = Some(ask);
        }
        let Some(asked) = &mut refreshes.agents else {
            return Ok(());
        };
        let limit = if is_due { AGENTS_LIMIT } else { Duration::ZERO };
        if let Ok(answer) = timeout(limit, asked).await {
            refreshes.agents = None;
            let failed = |error: JoinError| ApiError::new(ProblemCode::Internal, error.to_string());
            let status = answer.map_err(failed)??;
            state.agents = status.map(|status| Arc::new(status.into()));
            self.publish(&state);
        }
        Ok(())
    }

    fn publish(&self, state: &FeedState) {
        self.state.send_if_modified(|known| {
            let changed = **known != *state;
            if changed {
                *known = Arc::new(state.clone());
            }
            changed
        });
    }
}

/// Refreshes the snapshot until it has no watchers.
async fn refresh_while_watched(shared: Arc<Shared>) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shared.ending.cancelled() => return,
        }
        if shared.feed.state.receiver_count() == 0 {
            // A new watcher waits for this lock and starts another task.
            let mut is_refreshing = lock(&shared.feed.is_refreshing);
            if shared.feed.state.receiver_count() == 0 {
                *is_refreshing = false;
                return;
            }
        }
        // The next refresh retries after an error.
        let _ = shared.feed.refresh(&shared, false).await;
    }
}

impl FeedState {
    /// Returns the whole snapshot as a message.
    pub(crate) fn snapshot(&self) -> Change {
        Change::Snapshot {
            runs: self.runs.clone(),
            agents: self.agents.clone(),
        }
    }

    /// Returns the changes from `before` to this snapshot.
    pub(crate) fn changes_since(&self, before: &Self) -> Vec<Change> {
        let find = |state: &'_ Self, id: &str| {
            state.runs.iter().find(|run| run.info.run_id == id).cloned()
        };
        let mut changes = Vec::new();
        // Oldest first, in the order of their start.
        for run in self.runs.iter().rev() {
            if find(before, &run.info.run_id).as_ref() != Some(run) {
                changes.push(Change::Run { run: run.clone() });
            }
        }
        for run in &before.runs {
            let run_id = &run.info.run_id;
            if find(self, run_id).is_none() {
                let run_id = run_id.clone();
                changes.push(Change::Gone { run_id });
            }
        }
        if self.agents != before.agents
            && let Some(agents) = &self.agents
        {
            let agents = agents.clone();
            changes.push(Change::Agents { agents });
        }
        changes
    }
}
