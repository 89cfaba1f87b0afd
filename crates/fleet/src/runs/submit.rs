//! Submitting runs.

use teamster_api::{Accepted, ProblemCode, ServiceError};
use tokio::time::{Instant, sleep};

use super::exists;
use crate::Fleet;
use crate::names::RunKey;
use crate::protocol::{Submission, SubmitEffect};
use crate::record::Record;
use crate::records::{PATIENCE, PAUSE};

/// What becomes of a new run while the queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// It is cancelled, and refused.
    Refuses,
    /// It waits: a worker gives it its hint when there is room.
    Waits,
}

impl Fleet {
    /// Submits a run with this new record, until it is certain that it is there and waits.
    pub(crate) async fn submit(
        &self,
        key: &RunKey,
        record: &Record,
        full: Full,
    ) -> Result<Accepted, ServiceError> {
        let run = &*key.run;
        let mut queue = record.queue(key);
        // As it is there, once it is.
        let mut known = record.clone();
        let mut submission = Submission::new();
        let until = Instant::now() + PATIENCE;
        loop {
            let before = submission;
            match submission.next() {
                SubmitEffect::Change(change) => {
                    let new = known.changed(change, self.now().await);
                    let stored = self.store(key, &new, change.expected).await;
                    submission = submission.answered(stored.is_some());
                    if stored.is_some() {
                        known = new;
                    }
                }
                SubmitEffect::Read => match self.read(key).await {
                    Ok(found) => {
                        if let Some(other) = found.record {
                            if !other.is_same(record) {
                                return Err(exists(run));
                            }
                            queue = other.queue(key);
                            known = other;
                        }
                        submission = submission.read(found.seen);
                    }
                    Err(error) if !error.retryable => return Err(error),
                    Err(_) => {}
                },
                SubmitEffect::Hint => {
                    submission = match self.hint(&queue, key).await {
                        Err(error) if error.code == Some(ProblemCode::OverQuota) => {
                            if full != Full::Refuses {
                                return Ok(Accepted::new(Vec::new()));
                            }
                            submission.full()
                        }
                        hint => submission.answered(hint?),
                    };
                }
                SubmitEffect::Full => {
                    let message = format!(
                        "the fleet's queue is full, and run \"{run}\" was cancelled: try again later with another id, or add workers"
                    );
                    return Err(ServiceError::new(ProblemCode::OverQuota, message));
                }
                SubmitEffect::Acknowledged(true) => return Ok(Accepted::existed()),
                SubmitEffect::Acknowledged(false) => return Ok(Accepted::new(Vec::new())),
                SubmitEffect::Refuse => {
                    let message =
                        format!("a run \"{run}\" was deleted: give every run an id of its own");
                    return Err(ServiceError::new(ProblemCode::RunExists, message));
                }
            }
            if (before == submission || matches!(submission.next(), SubmitEffect::Read))
                && let Some(refusal) = self.refusal(&key.record())
            {
                return Err(refusal);
            }
            if Instant::now() > until {
                return Err(self.failed(&key.record(), "the run may be there: repeat the call"));
            }
            if before == submission || matches!(submission.next(), SubmitEffect::Read) {
                sleep(PAUSE).await;
            }
        }
    }
}
