//! Giving up and resubmitting runs whose machine does not report.

use teamster_api::{Accepted, ProblemCode, ServiceError, is_run_id};

use super::{FleetRuns, Full};
use crate::Fleet;
use crate::files::Files;
use crate::names::RunKey;
use crate::presence::Reports;
use crate::protocol::{Change, State};
use crate::record::Record;
use crate::records::Changed;

/// Separator of the number of a resubmitted run.
const AGAIN: char = '~';

/// A resubmitted run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Rerun {
    /// Id of the new run: that of the earlier one, `~` and a number from 2.
    pub run_id: String,
    /// The answer to its start, with a warning if the earlier run may have worked.
    pub accepted: Accepted,
}

/// Returns the id under which a run is resubmitted.
fn next_id(run: &str) -> Result<String, ServiceError> {
    let numbered = run.rsplit_once(AGAIN);
    let numbered = numbered.and_then(|(name, number)| Some((name, number.parse::<u32>().ok()?)));
    let (name, number) = numbered.unwrap_or((run, 1));
    let id = format!("{name}{AGAIN}{}", number.saturating_add(1));
    if is_run_id(&id) {
        return Ok(id);
    }
    let message = format!(
        "the id of run {run} is too long for another one: submit it again with an id of your own"
    );
    Err(ServiceError::new(ProblemCode::InvalidParams, message))
}

impl FleetRuns {
    /// Gives up a started run whose worker is not there: it is shown as failed from now on. If its machine comes back, its
    /// agent is stopped there. Repeating it does nothing more.
    ///
    /// # Errors
    ///
    /// [`ProblemCode::RunLive`] if the worker is there, or the run was not started: it can be cancelled.
    /// [`ProblemCode::RunEnded`] if it has ended.
    pub async fn give_up(&self, run: &str) -> Result<(), ServiceError> {
        let key = self.key(run);
        loop {
            let (seen, record) = self.fleet.find(&key).await?;
            let Some(change) = Change::give_up(seen) else {
                return match record.state {
                    State::Lost => Ok(()),
                    State::Queued | State::Claimed => {
                        let message = format!("run {run} was not started: cancel it instead");
                        Err(ServiceError::new(ProblemCode::RunLive, message))
                    }
                    _ => Err(ServiceError::ended(run)),
                };
            };
            if let Some(worker) = self.worker_of(&record).await? {
                let message = format!(
                    "worker {worker}, which has run {run}, is there: cancel the run instead"
                );
                return Err(ServiceError::new(ProblemCode::RunLive, message));
            }
            // Its machine may just have come back, or have ended it.
            if let Changed::Done = self.fleet.change(&key, change, record).await? {
                return Ok(());
            }
        }
    }

    /// Resubmits a run under another id, with the same description and uploads. Repeating it is the same run.
    ///
    /// # Errors
    ///
    /// [`ProblemCode::RunLive`] unless the run has ended, was given up, or its worker is not there. Fails if its uploads are
    /// gone.
    pub async fn rerun(&self, run: &str) -> Result<Rerun, ServiceError> {
        let key = self.key(run);
        let (_, record) = self.fleet.find(&key).await?;
        match record.state {
            State::Queued | State::Claimed => {
                let message = format!("run {run} waits for a worker: it will be carried out");
                return Err(ServiceError::new(ProblemCode::RunLive, message));
            }
            State::Started => {
                if let Some(worker) = self.worker_of(&record).await? {
                    let message = format!(
                        "run {run} is carried out by worker {worker}: cancel it first, or wait for its end"
                    );
                    return Err(ServiceError::new(ProblemCode::RunLive, message));
                }
            }
            _ => {}
        }
        let mut rerun = self
            .fleet
            .submit_again(&key, &record, Full::Refuses)
            .await?;
        if matches!(record.state, State::Started | State::Lost | State::Conflict) {
            let warning = format!(
                "run {run} may have worked, and may still work: both cost, and what it has changed outside of its machine stays"
            );
            rerun.accepted.warnings.push(warning.clone());
            rerun.accepted.important.push(warning);
        }
        Ok(rerun)
    }

    /// Returns the name of the worker of a started run if that reports.
    async fn worker_of(&self, record: &Record) -> Result<Option<String>, ServiceError> {
        let reports = self.reports(record).await? == Reports::Yes;
        Ok(record.worker.clone().filter(|_| reports))
    }
}

impl Fleet {
    /// Resubmits a run with this record.
    pub(crate) async fn submit_again(
        &self,
        key: &RunKey,
        record: &Record,
        full: Full,
    ) -> Result<Rerun, ServiceError> {
        let again = RunKey::new(&key.owner, &next_id(&key.run)?);
        if self.read(&again).await?.record.is_none() {
            self.copy_uploads(key, &again).await?;
            if let Some(file) = &record.spec_file {
                self.copy_spec(key, &again, file).await?;
            }
        }
        let accepted = self.submit(&again, &record.again(), full).await?;
        Ok(Rerun {
            run_id: again.run,
            accepted,
        })
    }

    /// Gives the files that a run has taken along to another one.
    async fn copy_uploads(&self, from: &RunKey, to: &RunKey) -> Result<(), ServiceError> {
        for manifest in self.manifests(from, Files::Uploads).await? {
            let name = manifest.name.clone();
            for number in self.offer_file(to, manifest).await? {
                let part = self.upload_part(from, &name, number).await?;
                self.write_file_part(to, &name, number, part).await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resubmitted_run_has_the_next_number() {
        let long = "x".repeat(99);
        for (run, next) in [
            ("fix-1", Some("fix-1~2")),
            ("fix-1~2", Some("fix-1~3")),
            ("fix-1~9", Some("fix-1~10")),
            ("fix-1~x", Some("fix-1~x~2")),
            (&*long, None),
        ] {
            assert_eq!(next_id(run).ok().as_deref(), next, "{run}");
        }
    }
}
