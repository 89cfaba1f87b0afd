//! Commands for runs.

use std::time::Duration;

use teamster_api::{Command, LiveState, LiveStatus, ProblemCode, Reply, ServiceError};

use tokio::time::{Instant, sleep};

use super::FleetRuns;
use super::files::other_version;
use crate::names::RunKey;
use crate::protocol::{Change, Seen, State};
use crate::record::{Record, Stop};
use crate::records::{Changed, PAUSE};
use crate::wire::{Answered, Question};

/// Time for which a command waits until its run is started.
const STARTS: Duration = Duration::from_secs(15);

impl FleetRuns {
    pub(super) async fn command(&self, run: &str, command: Command) -> Result<Reply, ServiceError> {
        let key = self.key(run);
        let until = Instant::now() + STARTS;
        loop {
            let (seen, record) = self.fleet.find(&key).await?;
            match record.state {
                State::Queued | State::Claimed => match &command {
                    Command::Cancel { .. } => {
                        let Some(change) = Change::cancel(seen) else {
                            continue;
                        };
                        // A run that was started meanwhile is stopped by its machine.
                        match self.fleet.change(&key, change, record).await? {
                            Changed::Done => return Ok(Reply::Done),
                            Changed::Another => {}
                        }
                    }
                    Command::Requests => {
                        return Ok(Reply::Requests {
                            requests: Vec::new(),
                        });
                    }
                    Command::Status => {
                        let since = record.times.queued;
                        let status = Box::new(LiveStatus::new(LiveState::Running, since));
                        return Ok(Reply::Status { status });
                    }
                    Command::Steer { .. } | Command::Interrupt { .. } => {
                        let message =
                            format!("no turn of {run} is in progress: it waits for a worker");
                        return Err(ServiceError::new(ProblemCode::NoTurn, message));
                    }
                    // A worker may just have taken it.
                    _ if Instant::now() < until => sleep(PAUSE).await,
                    _ => return Err(waits(run)),
                },
                State::Started => {
                    let question = Question::Command(command.clone());
                    let is_cancel = matches!(command, Command::Cancel { .. });
                    match self.fleet.ask(&key, question).await {
                        Ok(Some(Answered::Reply(reply))) => return Ok(*reply),
                        Ok(Some(_)) => return Err(other_version(run)),
                        Ok(None) => {}
                        // Its agent is not started yet: the machine reads the record again.
                        Err(error)
                            if is_cancel
                                && error.code == Some(ProblemCode::RunnerNotResponding) => {}
                        Err(error) => return Err(error),
                    }
                    // It may just have ended.
                    let (seen, now) = self.fleet.find(&key).await?;
                    if now.state.is_final() {
                        return Err(ServiceError::ended(run));
                    }
                    let Command::Cancel { kill } = command else {
                        return Err(silent(run, &now));
                    };
                    if self.keep_stop(&key, seen, now, Stop { kill }).await {
                        return Ok(Reply::Done);
                    }
                    if let Some(refusal) = self.fleet.refusal(&key.record()) {
                        return Err(refusal);
                    }
                    sleep(PAUSE).await;
                }
                _ => return Err(ServiceError::ended(run)),
            }
        }
    }

    /// Keeps in the record that a run is to be stopped, until its machine is back.
    async fn keep_stop(&self, key: &RunKey, seen: Seen, mut record: Record, stop: Stop) -> bool {
        record.stop = Some(stop);
        self.fleet
            .store(key, &record, seen.revision)
            .await
            .is_some()
    }
}

fn waits(run: &str) -> ServiceError {
    let message = format!("run {run} waits for a worker: it can be cancelled until it is started");
    let mut error = ServiceError::new(ProblemCode::RunnerNotResponding, message);
    error.retryable = true;
    error
}

fn silent(run: &str, record: &Record) -> ServiceError {
    let worker = record.worker.as_deref().unwrap_or("unknown");
    let message = format!(
        "the machine of run {run}, worker {worker}, does not report: try again when it is back, or give the run up"
    );
    ServiceError::new(ProblemCode::RunnerNotResponding, message)
}
