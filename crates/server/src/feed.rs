//! The current state of the agents in a loop, refreshed while it has watchers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use teamster_api::agents::{AgentList, Command};
use teamster_api::{ProblemCode, ServiceError};
use teamster_core::sync::lock;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::ApiError;
use crate::server::Shared;

/// The refresh interval.
const TICK: Duration = Duration::from_secs(2);
/// The time for which a refresh waits for the agents. A later one then has them.
const LIMIT: Duration = Duration::from_secs(1);

/// The agents; `None` without a configuration of them.
pub(crate) type Agents = Option<Arc<AgentList>>;

/// Refreshes the state of the agents while it has watchers.
#[derive(Debug, Default)]
pub(crate) struct AgentsFeed {
    state: watch::Sender<Agents>,
    /// True while a refresh task runs.
    is_refreshing: Mutex<bool>,
    /// The request for the agents' status that has no answer yet. The lock allows one refresh at a time.
    asked: tokio::sync::Mutex<Option<JoinHandle<Result<AgentList, ServiceError>>>>,
}

impl AgentsFeed {
    /// Refreshes the state and returns a receiver of it and its changes.
    pub(crate) async fn watch(shared: &Arc<Shared>) -> Result<watch::Receiver<Agents>, ApiError> {
        let feed = &shared.agents;
        let receiver = feed.state.subscribe();
        feed.refresh(shared).await?;
        let mut is_refreshing = lock(&feed.is_refreshing);
        if !std::mem::replace(&mut *is_refreshing, true) {
            tokio::spawn(refresh_while_watched(shared.clone()));
        }
        Ok(receiver)
    }

    async fn refresh(&self, shared: &Shared) -> Result<(), ApiError> {
        let mut asked = self.asked.lock().await;
        let request = asked.get_or_insert_with(|| {
            let machine = shared.machine.clone();
            tokio::spawn(async move { machine.loops(Command::Status).await })
        });
        let Ok(answer) = timeout(LIMIT, request).await else {
            return Ok(());
        };
        *asked = None;
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
async fn refresh_while_watched(shared: Arc<Shared>) {
    let feed = &shared.agents;
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.reset();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shared.ending.cancelled() => return,
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
        let _ = feed.refresh(&shared).await;
    }
}
