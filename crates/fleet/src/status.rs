//! The state of a fleet: workers, queues and holds.

use std::collections::BTreeMap;

use serde::Serialize;
use teamster_api::{FleetHold, FleetQueue, ProblemCode, ServiceError};
use teamster_core::time::epoch_ms;
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::headings::{ALL, Headings};
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
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct QueueOf {
    /// The pool; `None` of the runs for one machine.
    pub pool: Option<String>,
    /// The machine; `None` of the runs of a pool.
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

/// The pool and the machine of a queue.
type Location = (Option<String>, Option<String>);

/// What is counted of the records.
#[derive(Debug, Default)]
struct Counts {
    /// Number of runs by the state of their record.
    runs: BTreeMap<String, usize>,
    /// The number of those that wait by their pool and machine, and when the oldest was submitted.
    queues: BTreeMap<Location, (usize, Option<u64>)>,
}

impl Counts {
    fn of(headings: &Headings) -> Self {
        let mut counts = Self::default();
        for (_, _, heading) in headings.live() {
            counts.add(heading.head.state);
            if heading.head.state == State::Queued {
                let (waiting, oldest) = counts.queues.entry(heading.location()).or_default();
                *waiting += 1;
                *oldest = Some(oldest.map_or(heading.queued, |oldest| oldest.min(heading.queued)));
            }
        }
        headings.over().for_each(|state| counts.add(state));
        counts
    }

    fn add(&mut self, state: State) {
        let state = serde_json::to_value(state).unwrap_or_default();
        let state = state.as_str().unwrap_or_default().to_owned();
        *self.runs.entry(state).or_default() += 1;
    }
}

impl Fleet {
    /// Returns what the fleet does: of all owners, if the user may read that, else of its own. For one look; a program that
    /// lives long has a [`StatusReader`].
    pub async fn status(&self) -> Result<FleetStatus, ServiceError> {
        let (headings, owner) = self.readable_headings().await?;
        let counts = Counts::of(&headings);
        drop(headings);
        self.status_with(counts, owner).await
    }

    /// Reads the headings of all records that the user may read, and whose they are if they are not all.
    async fn readable_headings(&self) -> Result<(Headings, Option<String>), ServiceError> {
        // Prompts and results of 30 days are not read for some numbers.
        match Headings::read(self, ALL).await {
            Err(error) if error.code == Some(ProblemCode::InsufficientScope) => {
                let own = Headings::read(self, &records_of(self.owner())).await?;
                Ok((own, Some(self.owner().to_owned())))
            }
            read => Ok((read?, None)),
        }
    }

    async fn status_with(
        &self,
        counts: Counts,
        owner: Option<String>,
    ) -> Result<FleetStatus, ServiceError> {
        let workers = self.workers().await?;
        let holds = self.holds().await?;
        let now = self.now().await;
        let queues = counts.queues.into_iter();
        let queues = queues.map(|((pool, machine), (waiting, oldest))| QueueOf {
            pool,
            machine,
            waiting,
            oldest_ms: oldest.map_or(0, |oldest| now.saturating_sub(oldest)),
        });
        Ok(FleetStatus {
            workers,
            queues: queues.collect(),
            runs: counts.runs,
            holds,
            owner,
        })
    }
}

/// Reads the [state of a fleet](Fleet::status) for a program that lives long: the records once, and then those that change.
#[derive(Debug)]
pub struct StatusReader {
    fleet: Fleet,
    following: Mutex<Option<Following>>,
}

/// A task that follows the records. It ends with this.
#[derive(Debug)]
struct Following {
    questions: mpsc::Sender<oneshot::Sender<Counts>>,
    owner: Option<String>,
}

impl StatusReader {
    /// Creates a reader, which reads nothing before it is asked.
    pub fn new(fleet: &Fleet) -> Self {
        Self {
            fleet: fleet.clone(),
            following: Mutex::default(),
        }
    }

    /// Returns what the fleet does, as [`Fleet::status`] does.
    pub async fn status(&self) -> Result<FleetStatus, ServiceError> {
        let (counts, owner) = self.counts().await?;
        self.fleet.status_with(counts, owner).await
    }

    async fn counts(&self) -> Result<(Counts, Option<String>), ServiceError> {
        // All that ask at once share one read.
        let mut following = self.following.lock().await;
        if let Some(known) = &*following
            && let Some(counts) = known.ask().await
        {
            return Ok((counts, known.owner.clone()));
        }
        let (headings, owner) = self.fleet.readable_headings().await?;
        let counts = Counts::of(&headings);
        let (questions, asked) = mpsc::channel(1);
        tokio::spawn(follow(headings, asked));
        *following = Some(Following {
            questions,
            owner: owner.clone(),
        });
        Ok((counts, owner))
    }
}

impl Following {
    /// Returns what is counted now; `None` if the records must be read again.
    async fn ask(&self) -> Option<Counts> {
        let (send, answer) = oneshot::channel();
        self.questions.send(send).await.ok()?;
        answer.await.ok()
    }
}

/// Follows records and answers questions, until they must be read again, or nothing asks any more.
async fn follow(mut headings: Headings, mut questions: mpsc::Receiver<oneshot::Sender<Counts>>) {
    while !headings.is_old() {
        tokio::select! {
            // What has arrived counts.
            biased;
            followed = headings.follow() => {
                if followed.is_err() {
                    return;
                }
            }
            question = questions.recv() => {
                let Some(answer) = question else { return };
                // The one that has asked may be gone.
                let _ = answer.send(Counts::of(&headings));
            }
        }
    }
}
