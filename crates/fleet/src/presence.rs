//! The presence of workers.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Request;
use async_nats::client::RequestErrorKind;
use async_nats::jetstream::Message;
use async_nats::jetstream::message::PublishMessage;
use serde::{Deserialize, Serialize};
use teamster_api::{FleetAgent, FleetWorker, ProblemCode, ServiceError, Spec, either};
use teamster_core::text::one_line;
use teamster_core::{AgentError, PermissionMode};
use tokio::time::Instant;

use crate::Fleet;
use crate::names::refusal as refused;
use crate::names::{PRESENCES, REFUSALS, RunKey, WORKERS, drain, presence, token};
use crate::protocol::Tag;

/// Time after which a worker that does not report is absent.
pub(crate) const PRESENT: Duration = Duration::from_secs(30);

/// Time in which a worker must answer.
const ANSWER: Duration = Duration::from_secs(5);
/// Time for which a refusal is shown: a worker that still refuses the run reports it again before.
pub(crate) const REFUSED: Duration = Duration::from_secs(30);

/// The [problem](PresentAgent::problem) of an agent whose login is known to be missing.
pub const LOGGED_OUT: &str = "is not logged in";
/// The [problem](PresentAgent::problem) of an agent that the worker's policy excludes.
pub const NOT_ALLOWED: &str = "is not allowed";

/// A worker that is there.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PresentWorker {
    /// Name of the worker.
    pub worker: String,
    /// Its process.
    pub instance: Tag,
    /// Random number of its state directory.
    pub machine: Tag,
    /// Pools from which it takes runs.
    pub pools: Vec<String>,
    /// The agents that its program knows.
    pub agents: Vec<PresentAgent>,
    /// Number of runs at once.
    pub slots: usize,
    /// Number of runs that it carries out.
    pub running: usize,
    /// It takes no new runs, and ends with those that it has.
    pub drains: bool,
    /// Version of its program.
    pub version: String,
    /// The permission modes that it allows.
    pub permissions: Vec<PermissionMode>,
    /// The version of descriptions that it knows.
    pub spec_version: u32,
    /// How far its clock is ahead of the server's, in milliseconds, if that is more than 5 s.
    pub clock_ms: Option<i64>,
}

/// A run that a worker has refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Refusal {
    pub(crate) worker: String,
    pub(crate) reason: String,
}

/// An agent of a worker.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PresentAgent {
    /// Id of the agent.
    pub id: String,
    /// It is installed, and not known to be logged out.
    pub ready: bool,
    /// Version of its program, if known.
    pub version: Option<String>,
    /// What keeps it from being ready, such as [`LOGGED_OUT`].
    pub problem: Option<String>,
    /// Mark of its login, if that is known to be the same elsewhere; see [`Hold`](crate::Hold).
    pub login: Option<String>,
}

impl From<PresentWorker> for FleetWorker {
    fn from(present: PresentWorker) -> Self {
        let mut worker = Self::default();
        worker.name = present.worker;
        worker.pools = present.pools;
        worker.agents = present.agents.into_iter().map(Into::into).collect();
        worker.slots = present.slots as u64;
        worker.running = present.running as u64;
        worker.draining = present.drains;
        worker.version = present.version;
        worker.clock_ms = present.clock_ms;
        worker
    }
}

impl From<PresentAgent> for FleetAgent {
    fn from(present: PresentAgent) -> Self {
        let mut agent = Self::default();
        (agent.id, agent.ready) = (present.id, present.ready);
        agent.version = present.version;
        agent
    }
}

impl PresentAgent {
    /// Creates the report of an agent that is ready.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            ready: true,
            version: None,
            problem: None,
            login: None,
        }
    }
}

/// Whether a worker reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reports {
    /// It does.
    Yes,
    /// It does not since this time, in milliseconds since the Unix epoch; `None` if it is long ago.
    NotSince(Option<u64>),
}

impl Fleet {
    /// Finds out whether a worker with this name reports, and has the state directory with this number, if it is known.
    pub(crate) async fn reports(
        &self,
        worker: &str,
        machine: Option<Tag>,
    ) -> Result<Reports, ServiceError> {
        let last = self.last(WORKERS, &presence(worker)).await?;
        Ok(match last {
            None => Reports::NotSince(None),
            // A marker of one that is gone has no content.
            Some(marker) if marker.payload.is_empty() => {
                let at = marker.time.unix_timestamp_nanos() / 1_000_000;
                Reports::NotSince(u64::try_from(at).ok())
            }
            Some(last) => {
                let present = serde_json::from_slice::<PresentWorker>(&last.payload).ok();
                let reports = present.map(|present| present.machine);
                // Another machine has taken the name: it has nothing of the runs of the earlier one.
                match (machine, reports) {
                    (Some(wanted), Some(found)) if wanted != found => Reports::NotSince(None),
                    _ => Reports::Yes,
                }
            }
        })
    }

    /// Lets a worker take no more runs, and end with those that it has, as on its own machine.
    ///
    /// # Errors
    ///
    /// [`ProblemCode::NotFound`] if no such worker is there.
    pub async fn drain(&self, worker: &str) -> Result<(), ServiceError> {
        let subject = drain(&token("worker", worker)?);
        let request = Request::new().timeout(Some(ANSWER));
        let sent = self.client.send_request(subject.clone(), request);
        match self.unless_refused(&subject, sent).await? {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == RequestErrorKind::NoResponders => {
                let message = format!("no worker \"{worker}\" is there: it takes no runs");
                Err(ServiceError::new(ProblemCode::NotFound, message))
            }
            Err(error) => Err(self.failed(&subject, error)),
        }
    }

    /// Returns the workers that are there.
    pub async fn workers(&self) -> Result<Vec<PresentWorker>, ServiceError> {
        let subjects = format!("{PRESENCES}*");
        // A marker of one that is gone has no content.
        let read = |message: &Message| serde_json::from_slice(&message.payload).ok();
        let workers = self.last_of_each(WORKERS, &subjects, false, read);
        let mut workers: Vec<PresentWorker> = workers.await?;
        workers.sort_by(|a, b| a.worker.cmp(&b.worker));
        Ok(workers)
    }
}

/// The workers that were there, and since when that is known.
pub(crate) type PresentAt = (Instant, Arc<[PresentWorker]>);

impl Fleet {
    /// Returns the workers that were there at this time or later. All that ask at once share one read, which takes a
    /// message for each worker.
    pub(crate) async fn workers_since(
        &self,
        time: Instant,
    ) -> Result<Arc<[PresentWorker]>, ServiceError> {
        let mut known = self.present.lock().await;
        if let Some((at, workers)) = &*known
            && *at >= time
        {
            return Ok(workers.clone());
        }
        let at = Instant::now();
        let workers: Arc<[PresentWorker]> = self.workers().await?.into();
        *known = Some((at, workers.clone()));
        Ok(workers)
    }

    /// Returns the runs of the owner that workers have refused a short while ago.
    pub(crate) async fn refusals(&self) -> Result<Vec<(RunKey, Refusal)>, ServiceError> {
        let subjects = format!("{REFUSALS}{}.>", self.owner);
        let read = |message: &Message| {
            let (key, _) = message.subject.strip_prefix(REFUSALS)?.rsplit_once('.')?;
            Some((
                RunKey::parse(key)?,
                serde_json::from_slice(&message.payload).ok()?,
            ))
        };
        self.last_of_each(WORKERS, &subjects, false, read).await
    }

    /// Reports that a worker has refused a run.
    pub(crate) async fn refuse(&self, key: &RunKey, refusal: &Refusal) {
        let json = serde_json::to_vec(refusal).unwrap_or_default();
        let message = PublishMessage::build().payload(json.into()).ttl(REFUSED);
        let subject = refused(&refusal.worker, key);
        // The next refusal is reported again.
        self.publish(&subject, message).await;
    }
}

/// Refuses an agent that no worker knows. Without workers, nothing is known.
pub(crate) fn check_agent(workers: &[PresentWorker], provider: &str) -> Result<(), ServiceError> {
    let mut known: Vec<_> = workers
        .iter()
        .flat_map(|worker| &worker.agents)
        .map(|agent| &*agent.id)
        .collect();
    if known.is_empty() || known.contains(&provider) {
        return Ok(());
    }
    known.sort_unstable();
    known.dedup();
    let problem = format!(
        "no worker of the fleet has an agent \"{}\"; there are {}",
        one_line(provider),
        known.join(", ")
    );
    Err(AgentError::refused("provider", problem).into())
}

/// Refuses `bypass` unless a worker that is there allows it.
pub(crate) fn check_bypass(workers: &[PresentWorker], spec: &Spec) -> Result<(), ServiceError> {
    let permission = either!(spec, spec => spec.permission);
    let mut workers = workers.iter();
    if permission != PermissionMode::Bypass
        || workers.any(|worker| worker.permissions.contains(&permission))
    {
        return Ok(());
    }
    let problem = "no worker that is there allows `bypass`: choose another mode";
    let mut error = ServiceError::from(AgentError::refused("permission", problem));
    error.code = Some(ProblemCode::BypassNotAllowed);
    Err(error)
}
