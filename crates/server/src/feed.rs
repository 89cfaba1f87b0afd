//! The changes of runs, and the current state of the agents in a loop, refreshed while it has watchers.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_core::stream::BoxStream;
use teamster_api::agents::{AgentList, Command};
use teamster_api::{Change, MachineService, ProblemCode, RunService, RunSummary, ServiceError};
use teamster_core::sync::lock;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::ApiError;

/// The refresh interval.
const TICK: Duration = Duration::from_secs(2);
/// The time for which a refresh waits for the agents. A later one then has them.
const LIMIT: Duration = Duration::from_secs(1);

/// The agents; `None` without a configuration of them.
pub(crate) type Agents = Option<Arc<AgentList>>;

/// Refreshes the state of the agents while it has watchers.
pub(crate) struct AgentsFeed {
    machine: Arc<dyn MachineService>,
    /// Cancelled when the server ends.
    ending: CancellationToken,
    state: watch::Sender<Agents>,
    /// True while a refresh task runs.
    is_refreshing: Mutex<bool>,
    /// The request for the agents' status that has no answer yet. The lock allows one refresh at a time.
    request: tokio::sync::Mutex<Option<JoinHandle<Result<AgentList, ServiceError>>>>,
}

impl AgentsFeed {
    pub(crate) fn new(machine: Arc<dyn MachineService>, ending: CancellationToken) -> Self {
        Self {
            machine,
            ending,
            state: watch::Sender::default(),
            is_refreshing: Mutex::default(),
            request: tokio::sync::Mutex::default(),
        }
    }

    /// Refreshes the state and returns a receiver of it and its changes.
    pub(crate) async fn watch(self: &Arc<Self>) -> Result<watch::Receiver<Agents>, ApiError> {
        let receiver = self.state.subscribe();
        self.refresh().await?;
        let mut is_refreshing = lock(&self.is_refreshing);
        if !std::mem::replace(&mut *is_refreshing, true) {
            tokio::spawn(refresh_while_watched(self.clone()));
        }
        Ok(receiver)
    }

    async fn refresh(&self) -> Result<(), ApiError> {
        let mut pending = self.request.lock().await;
        let request = pending.get_or_insert_with(|| {
            let machine = self.machine.clone();
            tokio::spawn(async move { machine.loops(Command::Status).await })
        });
        let Ok(answer) = timeout(LIMIT, request).await else {
            return Ok(());
        };
        *pending = None;
        let failed = |error: JoinError| ApiError::new(ProblemCode::Internal, error.to_string());
        let list = answer.map_err(failed)??;
        let agents = list.config.is_some().then(|| Arc::new(list));
        self.state.send_if_modified(|known| {
            let changed = *known != agents;
            *known = agents;
            changed
        });
        Ok(())
    }
}

/// Refreshes the state until it has no watchers.
async fn refresh_while_watched(feed: Arc<AgentsFeed>) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.reset();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = feed.ending.cancelled() => return,
        }
        if feed.state.receiver_count() == 0 {
            // A new watcher waits for this lock and starts another task.
            let mut is_refreshing = lock(&feed.is_refreshing);
            if feed.state.receiver_count() == 0 {
                *is_refreshing = false;
                return;
            }
        }
        // The next refresh retries after an error.
        let _ = feed.refresh().await;
    }
}

/// The changes of runs.
pub(crate) type Changes = BoxStream<'static, Result<Change, ServiceError>>;

/// Returns the runs that there are, and their changes from then on.
pub(crate) async fn changes(
    runs: &dyn RunService,
) -> Result<(Vec<Arc<RunSummary>>, Changes), ApiError> {
    let mut changes = runs.changes();
    match next(&mut changes).await.transpose()? {
        Some(Change::Snapshot { runs, .. }) => Ok((runs, changes)),
        _ => {
            let detail = "the changes of runs did not begin with a snapshot";
            Err(ApiError::new(ProblemCode::Internal, detail))
        }
    }
}

/// Returns the next change. Cancel-safe.
pub(crate) async fn next(changes: &mut Changes) -> Option<Result<Change, ServiceError>> {
    poll_fn(|cx| changes.as_mut().poll_next(cx)).await
}
