//! The reason for which a run waits, from the state of the workers.

use teamster_api::{QueueReason, QueueStatus, ServiceError};
use teamster_core::time::date_of_day;

use crate::Fleet;
use crate::holds::Hold;
use crate::names::RunKey;
use crate::presence::{PresentWorker, Refusal};
use crate::record::Record;

/// Input of the reasons of all waiting runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    workers: Vec<PresentWorker>,
    /// Runs that workers have refused a short while ago.
    refusals: Vec<(RunKey, Refusal)>,
    holds: Vec<Hold>,
    /// The time of the server, in milliseconds since the Unix epoch.
    now: u64,
}

impl Known {
    /// Reads it for the runs of the owner.
    pub(crate) async fn read(fleet: &Fleet) -> Result<Self, ServiceError> {
        Ok(Self {
            workers: fleet.workers().await?,
            // Without the right to read them, there are reasons that are not known.
            refusals: fleet.refusals().await.unwrap_or_default(),
            holds: fleet.holds().await.unwrap_or_default(),
            now: fleet.now().await,
        })
    }

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
        let (workers, location) = match &record.machine {
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
            let detail = format!("no worker takes runs of {location}");
            return wait(QueueReason::NoMachine, detail);
        }
        let takes: Vec<_> = workers
            .into_iter()
            .filter(|worker| !worker.drains)
            .collect();
        if takes.is_empty() {
            let detail = format!("{location} takes no more runs: it is being ended");
            return wait(QueueReason::NoMachine, detail);
        }
        let ready: Vec<_> = (takes.iter().copied())
            .filter(|worker| (worker.agents.iter()).any(|known| known.id == agent && known.ready))
            .collect();
        if ready.is_empty() {
            return wait(QueueReason::NoAgent, no_agent(&takes, agent, &location));
        }
        let knows: Vec<_> = (ready.into_iter())
            .filter(|worker| worker.spec_version >= record.version)
            .collect();
        if knows.is_empty() {
            let detail = format!("{location} has only older versions of teamster: update a worker");
            return wait(QueueReason::OldVersion, detail);
        }
        let held: Vec<_> = (knows.iter())
            .filter_map(|worker| self.held_until(worker, agent))
            .collect();
        if held.len() == knows.len()
            && let Some(until) = held.into_iter().min()
        {
            let detail = format!(
                "{agent} has reached its limit on {location} until {}",
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
            let detail = format!("all slots of {location} are in use");
            return wait(QueueReason::NoSlot, detail);
        }
        wait(QueueReason::Pending, format!("{location} has a free slot"))
    }

    /// Returns the end of a hold of an agent on a worker.
    fn held_until(&self, worker: &PresentWorker, agent: &str) -> Option<u64> {
        let agent = worker.agents.iter().find(|known| known.id == agent)?;
        let login = agent.login.as_deref()?;
        let holds = self.holds.iter().filter(|hold| hold.until > self.now);
        let of_login = holds.filter(|hold| hold.provider == agent.id && hold.login == login);
        of_login.map(|hold| hold.until).max()
    }
}

/// Describes what the workers of a place lack for an agent.
fn no_agent(workers: &[&PresentWorker], agent: &str, location: &str) -> String {
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
        "{location} does not have the agent {agent}: {}",
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

#[cfg(test)]
mod tests {
    use teamster_api::{RunSpec, Spec};

    use super::*;

    fn worker(name: &str) -> PresentWorker {
        let json = serde_json::json!({
            "worker": name, "instance": "0".repeat(32), "pools": ["default"],
            "agents": [{ "id": "claude", "ready": true, "login": "m" }],
            "machine": "0".repeat(32), "slots": 1, "running": 0, "drains": false, "version": "1",
            "permissions": [], "specVersion": 1,
        });
        serde_json::from_value(json).unwrap()
    }

    fn why(
        workers: Vec<PresentWorker>,
        change: fn(&mut Record, &mut Known),
    ) -> (QueueReason, String) {
        let key = RunKey::new("ann", "r");
        let mut record = Record::new("default", &Spec::from(RunSpec::new("claude", "x")));
        let mut known = Known {
            workers,
            ..Known::default()
        };
        change(&mut record, &mut known);
        let status = known.why(&key, &record);
        (status.reason, status.detail)
    }

    fn hold(known: &mut Known) {
        known.holds.push(Hold {
            provider: "claude".into(),
            login: "m".into(),
            limit: None,
            until: 4_102_497_000_000,
        });
    }

    #[test]
    fn the_first_reason_that_holds_for_all_workers_is_given() {
        let both = || vec![worker("w1"), worker("w2")];
        let reason = |change: fn(&mut Record, &mut Known)| why(both(), change).0;
        assert_eq!(reason(|_, _| ()), QueueReason::Pending);
        assert_eq!(
            reason(|record, _| record.pool = "gpu".into()),
            QueueReason::NoMachine
        );
        let drains = reason(|_, known| known.workers.iter_mut().for_each(|it| it.drains = true));
        assert_eq!(drains, QueueReason::NoMachine);
        let (no_agent, detail) = why(both(), |_, known| {
            for worker in &mut known.workers {
                worker.agents[0].ready = false;
                worker.agents[0].problem = Some("is not logged in".into());
            }
        });
        assert_eq!(no_agent, QueueReason::NoAgent);
        assert!(
            detail.contains("on w1 it is not logged in, on w2"),
            "{detail}"
        );
        // A worker that is older than the description.
        assert_eq!(
            reason(|record, _| record.version = 2),
            QueueReason::OldVersion
        );
        let (held, detail) = why(both(), |_, known| hold(known));
        assert_eq!(held, QueueReason::OnHold);
        assert!(detail.ends_with("until 2100-01-01 14:30 UTC"), "{detail}");
        let mut known = Known::default();
        hold(&mut known);
        known.workers = vec![worker("w1")];
        known.workers[0].agents[0].login = Some("other".into());
        let record = Record::new("default", &Spec::from(RunSpec::new("claude", "x")));
        let status = known.why(&RunKey::new("ann", "r"), &record);
        assert_eq!(status.reason, QueueReason::Pending);
        let busy = reason(|_, known| known.workers.iter_mut().for_each(|it| it.running = 1));
        assert_eq!(busy, QueueReason::NoSlot);
        let absent = reason(|record, _| record.machine = Some("w3".into()));
        assert_eq!(absent, QueueReason::MachineAbsent);
    }

    #[test]
    fn refusal_is_the_reason_only_if_no_worker_takes_the_run() {
        let refuse = |known: &mut Known, worker: &str| {
            let refusal = Refusal {
                worker: worker.into(),
                reason: "no secret A".into(),
            };
            known.refusals.push((RunKey::new("ann", "r"), refusal));
        };
        let mut known = Known {
            workers: vec![worker("w1"), worker("w2")],
            ..Known::default()
        };
        let record = Record::new("default", &Spec::from(RunSpec::new("claude", "x")));
        let key = RunKey::new("ann", "r");
        refuse(&mut known, "w1");
        assert_eq!(known.why(&key, &record).reason, QueueReason::Pending);
        refuse(&mut known, "w2");
        let status = known.why(&key, &record);
        assert_eq!(status.reason, QueueReason::Refused);
        assert_eq!(status.detail, "worker w1 has refused it: no secret A");
        let other = known.why(&RunKey::new("ann", "other"), &record);
        assert_eq!(other.reason, QueueReason::Pending);
    }
}
