//! The state of a fleet: workers, queues and holds.

use std::collections::BTreeMap;

use serde::Serialize;
use teamster_api::{FleetHold, FleetQueue, ProblemCode, ServiceError};
use teamster_core::time::epoch_ms;

use crate::headings::{ALL, Heading};
use crate::names::records_of;
use crate::protocol::State;
use crate::{Fleet, Hold, PresentWorker};

/// The state of a fleet at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FleetStatus {
    /// The workers that are there.
    pub workers: Vec<PresentWorker>,
    /// What waits, by pool and machine.
    pub queues: Vec<QueueOf>,
    /// Number of runs by the state of their record, such as `started`.
    pub runs: BTreeMap<String, usize>,
    /// Agents that are held back, because their login has reached a limit.
    pub holds: Vec<Hold>,
    /// Only the runs of this owner are counted: the user may not read those of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// The runs that wait for a pool or a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct QueueOf {
    /// The pool; `None` of the runs for one machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The machine; `None` of the runs of a pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Number of runs that wait.
    pub waiting: usize,
    /// Time for which the oldest one has waited, in milliseconds.
    pub oldest_ms: u64,
}

impl From<FleetStatus> for teamster_api::FleetStatus {
    fn from(status: FleetStatus) -> Self {
        let mut shown = Self::default();
        shown.workers = status.workers.into_iter().map(Into::into).collect();
        let now = epoch_ms();
        for queue in status.queues {
            let mut waits = FleetQueue::default();
            (waits.pool, waits.machine) = (queue.pool, queue.machine);
            waits.waiting = queue.waiting as u64;
            waits.oldest_at = Some(now.saturating_sub(queue.oldest_ms));
            shown.queues.push(waits);
        }
        let runs = status.runs.into_iter();
        shown.runs = runs.map(|(state, runs)| (state, runs as u64)).collect();
        for hold in status.holds {
            let mut limit = FleetHold::default();
            (limit.agent, limit.login) = (hold.provider, hold.login);
            (limit.limit, limit.until) = (hold.limit, hold.until);
            shown.holds.push(limit);
        }
        shown.owner = status.owner;
        shown
    }
}

impl Fleet {
    /// Returns what the fleet does: of all owners, if the user may read that, else of its own.
    ///
    /// # Errors
    ///
    /// Fails if the server does not answer.
    pub async fn status(&self) -> Result<FleetStatus, ServiceError> {
        let workers = self.workers().await?;
        let holds = self.holds().await?;
        let now = self.now().await;
        let mut runs = BTreeMap::new();
        let mut queues: BTreeMap<_, (usize, u64)> = BTreeMap::new();
        // Prompts and results of 30 days are not read for some numbers.
        let mut count = |_, _, heading: Heading| {
            let state = serde_json::to_value(heading.head.state).unwrap_or_default();
            *runs
                .entry(state.as_str().unwrap_or_default().to_owned())
                .or_default() += 1;
            if heading.head.state == State::Queued {
                let (waiting, oldest) = queues.entry(heading.place()).or_default();
                *waiting += 1;
                *oldest = (*oldest).max(
                    heading
                        .queued
                        .map_or(0, |queued| now.saturating_sub(queued)),
                );
            }
        };
        let owner = match self.headings(ALL, &mut count).await {
            Err(error) if error.code == Some(ProblemCode::InsufficientScope) => {
                let own = records_of(self.owner());
                self.headings(&own, &mut count).await?;
                Some(self.owner().to_owned())
            }
            read => {
                read?;
                None
            }
        };
        let queues = queues.into_iter();
        let queues = queues.map(|((pool, machine), (waiting, oldest_ms))| QueueOf {
            pool,
            machine,
            waiting,
            oldest_ms,
        });
        Ok(FleetStatus {
            workers,
            queues: queues.collect(),
            runs,
            holds,
            owner,
        })
    }
}
