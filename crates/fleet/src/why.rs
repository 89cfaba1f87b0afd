//! Why a run waits, from what is known of the workers.

use teamster_api::{QueueReason, QueueStatus, ServiceError};
use teamster_core::time::{date_of_day, epoch_ms};

use crate::Fleet;
use crate::holds::Hold;
use crate::names::RunKey;
use crate::presence::{PresentWorker, Refusal};
use crate::record::Record;

/// What the reasons of all waiting runs are computed from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    workers: Vec<PresentWorker>,
    /// Runs that workers have refused a short while ago.
    refusals: Vec<(RunKey, Refusal)>,
    holds: Vec<Hold>,
}

impl Known {
    /// Reads it for the runs of the owner.
    pub(crate) async fn read(fleet: &Fleet) -> Result<Self, ServiceError> {
        Ok(Self {
            workers: fleet.workers().await?,
            // Without the right to read them, there are reasons that are not known.
            refusals: fleet.refusals().await.unwrap_or_default(),
            holds: fleet.holds().await.unwrap_or_default(),
        })
    }

    /// Returns why a queued run waits.
    pub(crate) fn why(&self, key: &RunKey, record: &Record) -> QueueStatus {
        let mut status = self.reason(key, record);
        if record.machine.is_none() {
            status.pool = Some(record.pool.clone());
        }
        status
    }

    fn reason(&self, key: &RunKey, record: &Record) -> QueueStatus {
        let wait = QueueStatus::new;
        let agent = &*record.provider;
        let (workers, place) = match &record.machine {
            Some(machine) => {
                let mut there = self.workers.iter();
                let Some(worker) = there.find(|worker| worker.worker == *machine) else {
                    let detail = format!("waits for worker {machine}, which does not report");
                    return wait(QueueReason::MachineAbsent, detail);
                };
                (vec![worker], format!("worker {machine}"))
            }
            None => {
                let all = self.workers.iter();
                let of_pool = all.filter(|worker| worker.pools.contains(&record.pool));
                (of_pool.collect(), format!("the pool {}", record.pool))
            }
        };
        if workers.is_empty() {
            let detail = format!("no worker takes runs of {place}");
            return wait(QueueReason::NoMachine, detail);
        }
        let takes: Vec<_> = workers
            .into_iter()
            .filter(|worker| !worker.drains)
            .collect();
        if takes.is_empty() {
            let detail = format!("{place} takes no more runs: it is being ended");
            return wait(QueueReason::NoMachine, detail);
        }
        let ready: Vec<_> = (takes.iter().copied())
            .filter(|worker| (worker.agents.iter()).any(|known| known.id == agent && known.ready))
            .collect();
        if ready.is_empty() {
            return wait(QueueReason::NoAgent, no_agent(&takes, agent, &place));
        }
        let knows: Vec<_> = (ready.into_iter())
            .filter(|worker| worker.spec_version >= record.version)
            .collect();
        if knows.is_empty() {
            let detail = format!("{place} has only older versions of teamster: update a worker");
            return wait(QueueReason::OldVersion, detail);
        }
        let held: Vec<_> = (knows.iter())
            .filter_map(|worker| self.held_until(worker, agent))
            .collect();
        if held.len() == knows.len()
            && let Some(until) = held.into_iter().min()
        {
            let detail = format!(
                "{agent} has reached its limit on {place} until {}",
                utc(until)
            );
            let mut status = wait(QueueReason::OnHold, detail);
            status.until = Some(until);
            return status;
        }
        let refusal = |worker: &PresentWorker| {
            let mut refusals = self.refusals.iter();
            let of_run = refusals.find(|(run, by)| run == key && by.worker == worker.worker);
            of_run.map(|(_, refusal)| refusal.reason.clone())
        };
        let reasons: Vec<_> = (knows.iter())
            .filter_map(|worker| Some((&worker.worker, refusal(worker)?)))
            .collect();
        if reasons.len() == knows.len()
            && let Some((worker, reason)) = reasons.first()
        {
            let detail = format!("worker {worker} has refused it: {reason}");
            return wait(QueueReason::Refused, detail);
        }
        let has_slot =
            |worker: &&&PresentWorker| refusal(worker).is_none() && worker.running < worker.slots;
        if !knows.iter().any(|worker| has_slot(&worker)) {
            let detail = format!("all slots of {place} are in use");
            return wait(QueueReason::NoSlot, detail);
        }
        wait(QueueReason::Pending, format!("{place} has a free slot"))
    }

    /// Returns the end of a hold of an agent on a worker.
    fn held_until(&self, worker: &PresentWorker, agent: &str) -> Option<u64> {
        let agent = worker.agents.iter().find(|known| known.id == agent)?;
        let login = agent.login.as_deref()?;
        let now = epoch_ms();
        let holds = self.holds.iter().filter(|hold| hold.until > now);
        let of_login = holds.filter(|hold| hold.provider == agent.id && hold.login == login);
        of_login.map(|hold| hold.until).max()
    }
}

/// Describes what the workers of a place lack for an agent.
fn no_agent(workers: &[&PresentWorker], agent: &str, place: &str) -> String {
    let problems: Vec<_> = workers
        .iter()
        .map(|worker| {
            let known = worker.agents.iter().find(|known| known.id == agent);
            let problem = match known {
                Some(known) => known.problem.as_deref().unwrap_or("cannot be used"),
                None => "is not known",
            };
            format!("on {} it {problem}", worker.worker)
        })
        .take(3)
        .collect();
    format!(
        "{place} does not have the agent {agent}: {}",
        problems.join(", ")
    )
}

/// Returns a time to the minute.
fn utc(ms: u64) -> String {
    let minutes = ms / 60_000;
    let (year, month, day) = date_of_day(minutes / 1440);
    let (hour, minute) = (minutes / 60 % 24, minutes % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}
