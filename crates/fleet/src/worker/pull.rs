//! Hints from the queues of the worker's pools and agents.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::{AckKind, Message};
use teamster_api::ServiceError;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::Shared;
use crate::names::{HOST, RunKey, WORK, hosts, work_consumer};
use crate::protocol::Tag;
use crate::records::next;

/// Time after which a hint that was not acknowledged is delivered again.
const ACKNOWLEDGE: Duration = Duration::from_secs(10);
/// Interval in which a worker reports that it works on a hint.
pub(super) const PROGRESS: Duration = Duration::from_secs(3);
/// Time for which a request waits for a hint.
const WAIT: Duration = Duration::from_secs(10);
/// Time after that in which the server must have reported that there is none.
const SILENT: Duration = Duration::from_secs(3);
/// Pause after an error.
const PAUSE: Duration = Duration::from_secs(1);
/// Pause before a consumer is made again.
const RENEW: Duration = Duration::from_millis(100);
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

/// Takes a hint out of its queue for good.
pub(super) async fn forget(shared: &Arc<Shared>, hint: &Message) {
    let number = match hint.info() {
        Ok(info) if info.stream == HOST => info.stream_sequence,
        _ => {
            let _ = hint.ack().await;
            return;
        }
    };
    // A new consumer would get it again. That message alone is removed: a newer hint may be in its place. Until it is, it
    // is not acknowledged either: a hint that is there is delivered.
    let (shared, hint) = (shared.clone(), hint.clone());
    tokio::spawn(async move {
        let Ok(stream) = shared.fleet.stream(HOST).await else {
            return;
        };
        let subject = format!("$JS.API.STREAM.MSG.DELETE.{HOST}");
        let deleted = stream.delete_message(number);
        let deleted = shared.fleet.unless_refused(&subject, deleted);
        match deleted.await {
            Ok(Ok(_)) => {
                let _ = hint.ack().await;
            }
            Ok(Err(_)) => {}
            // Until the right is given, the hint comes again and again.
            Err(refusal) => (shared.on_notice)(refusal.message),
        }
    });
}

/// Time after which the server forgets the consumer of a worker that is gone.
const GONE: Duration = Duration::from_mins(1);

#[derive(Debug, Clone)]
struct Queue {
    stream: &'static str,
    /// The agent of all its runs.
    agent: Option<String>,
    consumer: pull::Config,
}

impl Queue {
    /// The queue of a pool and an agent, which all their workers share.
    fn of_pool(pool: &str, agent: &str) -> Self {
        let (name, subjects) = work_consumer(pool, agent);
        let mut queue = Self::new(WORK, subjects);
        queue.consumer.durable_name = Some(name);
        queue.agent = Some(agent.to_owned());
        queue
    }

    fn of_machine(worker: &str) -> Self {
        let mut queue = Self::new(HOST, hosts(worker));
        // In the memory of one server: all hints that are there are delivered by a new one.
        queue.consumer.num_replicas = 1;
        queue.consumer.memory_storage = true;
        queue.consumer.inactive_threshold = GONE;
        queue
    }

    fn new(stream: &'static str, subjects: String) -> Self {
        let consumer = pull::Config {
            filter_subject: subjects,
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACKNOWLEDGE,
            max_ack_pending: 10_000,
            ..pull::Config::default()
        };
        Self {
            stream,
            agent: None,
            consumer,
        }
    }

    /// Returns the consumer, which is made if it is not there.
    async fn open(&self, shared: &Shared) -> Result<PullConsumer, ServiceError> {
        let stream = shared.fleet.stream(self.stream).await?;
        let mut config = self.consumer.clone();
        if config.durable_name.is_none() {
            // The server of an earlier one may be away, and with it the right to its name.
            config.name = Some(format!("{}_{}", shared.config.name, Tag::random()));
        }
        let consumer = stream.create_consumer(config).await;
        consumer.map_err(|error| self.failed(shared, error))
    }

    /// Returns the pause before the consumer is opened again.
    fn pause(&self) -> Duration {
        match self.agent {
            // Only this worker uses it: it is gone. One that was just made may have no leader yet.
            None => RENEW,
            // The server may refuse more requests than so many: all workers would make it again at once.
            Some(_) => PAUSE,
        }
    }

    fn failed(&self, shared: &Shared, error: impl std::fmt::Display) -> ServiceError {
        shared.fleet.failed(&self.consumer.filter_subject, error)
    }
}

/// Begins to pull: the queue of this machine, and one for each pool and agent that can be used.
pub(super) async fn start(
    shared: &Arc<Shared>,
    tasks: &mut JoinSet<()>,
) -> Result<mpsc::Receiver<Hint>, ServiceError> {
    let (hints, pulled) = mpsc::channel(1);
    let mut queues = vec![Queue::of_machine(&shared.config.name)];
    for agent in shared.ready_agents() {
        let pools = shared.config.policy.pools.iter();
        queues.extend(pools.map(|pool| Queue::of_pool(pool, &agent)));
    }
    for queue in queues {
        // Without the right to make it, it is clear at once.
        let consumer = queue.open(shared).await?;
        tasks.spawn(keep_pulling(shared.clone(), queue, consumer, hints.clone()));
    }
    Ok(pulled)
}

async fn keep_pulling(
    shared: Arc<Shared>,
    queue: Queue,
    consumer: PullConsumer,
    hints: mpsc::Sender<Hint>,
) {
    let mut consumer = Some(consumer);
    while !hints.is_closed() {
        if let Some(agent) = &queue.agent
            && shared.held_until(agent).await.is_some()
        {
            sleep(PAUSE).await;
            continue;
        }
        // While no slot is free, others may have the hints.
        let Ok(permit) = shared.slots.acquire().await else {
            return;
        };
        drop(permit);
        let open = match consumer.take() {
            Some(open) => open,
            None => match queue.open(&shared).await {
                Ok(open) => open,
                Err(_) => {
                    sleep(PAUSE).await;
                    continue;
                }
            },
        };
        let pulled = pull_one(&shared, &queue, &open).await;
        if pulled.is_ok() {
            consumer = Some(open);
        }
        match pulled {
            Ok(Some(message)) => {
                if let Some(hint) = accept(&shared, message).await
                    && let Err(unsent) = hints.send(hint).await
                {
                    unsent.0.release(&shared).await;
                }
            }
            Ok(None) => {}
            Err(_) => sleep(queue.pause()).await,
        }
    }
}

/// Waits for a hint. An error means that the consumer is to be made again.
async fn pull_one(
    shared: &Shared,
    queue: &Queue,
    consumer: &PullConsumer,
) -> Result<Option<Message>, ServiceError> {
    let began = Instant::now();
    let batch = consumer.batch().max_messages(1).expires(WAIT).messages();
    let mut batch = batch.await.map_err(|error| queue.failed(shared, error))?;
    match next(&mut batch).await {
        // A server that hangs may have the consumer for itself.
        None if began.elapsed() > WAIT + SILENT => Err(queue.failed(shared, "no answer")),
        None => Ok(None),
        Some(Ok(message)) => Ok(Some(message)),
        Some(Err(error)) => Err(ServiceError::unreachable(error.to_string())),
    }
}

/// Takes a hint if there is a slot for it.
async fn accept(shared: &Arc<Shared>, message: Message) -> Option<Hint> {
    let key = std::str::from_utf8(&message.payload).ok();
    let Some(key) = key.and_then(RunKey::parse) else {
        // No run can be found by it.
        forget(shared, &message).await;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_consumer_is_not_made_ten_times_a_second() {
        // Before, as long as that of one machine, which is gone at each error.
        assert_eq!(Queue::of_pool("default", "claude").pause(), PAUSE);
        assert_eq!(Queue::of_machine("w1").pause(), RENEW);
    }
}
