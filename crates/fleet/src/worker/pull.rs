//! Hints from the queues of the worker's pools and agents.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::{AckKind, Message};
use teamster_api::ServiceError;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::Shared;
use crate::names::{RunKey, WORK, work_consumer};
use crate::records::next;

/// Time after which a hint that was not acknowledged is delivered again.
const ACKNOWLEDGE: Duration = Duration::from_secs(10);
/// Interval in which a worker reports that it works on a hint.
pub(super) const PROGRESS: Duration = Duration::from_secs(3);
/// Time for which a request waits for a hint.
const WAIT: Duration = Duration::from_secs(5);
/// Pause after an error.
const PAUSE: Duration = Duration::from_secs(1);
/// Time after which a run that cannot be carried out here is offered again.
pub(super) const ELSEWHERE: Duration = Duration::from_secs(2);

/// A hint, and the slot for its run.
pub(super) struct Hint {
    pub(super) key: RunKey,
    pub(super) message: Message,
    pub(super) permit: OwnedSemaphorePermit,
}

impl Hint {
    /// Leaves the hint to other workers.
    pub(super) async fn release(self, shared: &Shared) {
        shared.let_go(&self.key);
        let _ = self.message.ack_with(AckKind::Nak(None)).await;
    }
}

/// Begins to pull: one queue for each pool and agent that can be used.
pub(super) async fn start(
    shared: &Arc<Shared>,
    tasks: &mut JoinSet<()>,
) -> Result<mpsc::Receiver<Hint>, ServiceError> {
    let (hints, pulled) = mpsc::channel(1);
    for agent in shared.ready_agents() {
        for pool in &shared.config.policy.pools {
            let (name, subjects) = work_consumer(pool, &agent);
            // Without the right to make it, it is clear at once.
            consumer(shared, &name, &subjects).await?;
            tasks.spawn(keep_pulling(shared.clone(), name, subjects, hints.clone()));
        }
    }
    Ok(pulled)
}

async fn consumer(
    shared: &Shared,
    name: &str,
    subjects: &str,
) -> Result<PullConsumer, ServiceError> {
    let stream = shared.fleet.stream(WORK).await?;
    let config = pull::Config {
        durable_name: Some(name.to_owned()),
        filter_subject: subjects.to_owned(),
        ack_policy: AckPolicy::Explicit,
        ack_wait: ACKNOWLEDGE,
        max_ack_pending: 10_000,
        ..pull::Config::default()
    };
    let consumer = stream.create_consumer(config).await;
    consumer.map_err(|error| shared.fleet.failed(subjects, error))
}

async fn keep_pulling(
    shared: Arc<Shared>,
    name: String,
    subjects: String,
    hints: mpsc::Sender<Hint>,
) {
    while !hints.is_closed() {
        // While no slot is free, others may have the hints.
        let Ok(permit) = shared.slots.acquire().await else {
            return;
        };
        drop(permit);
        match pull_one(&shared, &name, &subjects).await {
            Ok(Some(message)) => {
                if let Some(hint) = accept(&shared, message).await
                    && let Err(unsent) = hints.send(hint).await
                {
                    unsent.0.release(&shared).await;
                }
            }
            Ok(None) => {}
            Err(_) => sleep(PAUSE).await,
        }
    }
}

async fn pull_one(
    shared: &Shared,
    name: &str,
    subjects: &str,
) -> Result<Option<Message>, ServiceError> {
    let consumer = consumer(shared, name, subjects).await?;
    let batch = consumer.batch().max_messages(1).expires(WAIT).messages();
    let mut batch = batch
        .await
        .map_err(|error| shared.fleet.failed(subjects, error))?;
    match next(&mut batch).await {
        None => Ok(None),
        Some(Ok(message)) => Ok(Some(message)),
        Some(Err(error)) => Err(ServiceError::unreachable(error.to_string())),
    }
}

/// Takes a hint if there is a slot for it.
async fn accept(shared: &Shared, message: Message) -> Option<Hint> {
    let key = std::str::from_utf8(&message.payload).ok();
    let Some(key) = key.and_then(RunKey::parse) else {
        // No run can be found by it.
        let _ = message.ack_with(AckKind::Term).await;
        return None;
    };
    let permit = shared.slots.clone().try_acquire_owned().ok();
    let drains = shared.drains.load(Ordering::Relaxed);
    let Some(permit) = permit.filter(|_| !drains) else {
        let _ = message.ack_with(AckKind::Nak(None)).await;
        return None;
    };
    if !shared.take(&key) {
        // It is carried out here. If it is queued again, the hint comes again.
        let _ = message.ack_with(AckKind::Nak(Some(ACKNOWLEDGE))).await;
        return None;
    }
    Some(Hint {
        key,
        message,
        permit,
    })
}
