//! The end of a worker that takes no more runs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use teamster_api::{Command, ProblemCode, ServiceError};
use teamster_core::sync::lock;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::control::is_inbox;
use super::{RETRY, Shared};
use crate::names::{RunKey, drain};
use crate::protocol::Verdict;
use crate::records::next;

/// Time that an interrupted agent has until it is killed.
const GRACE: Duration = Duration::from_secs(20);

/// Begins to listen for requests to drain this worker. Each is received.
pub(super) async fn listen(
    shared: &Arc<Shared>,
    tasks: &mut JoinSet<()>,
) -> Result<mpsc::Receiver<()>, ServiceError> {
    let subject = drain(&shared.config.name);
    let subscribed = shared.fleet.client.subscribe(subject.clone()).await;
    let mut requests = subscribed.map_err(|error| shared.fleet.failed(&subject, error))?;
    let (send, received) = mpsc::channel(1);
    let shared = shared.clone();
    tasks.spawn(async move {
        while let Some(request) = next(&mut requests).await {
            let Some(reply) = request.reply.filter(is_inbox) else {
                continue;
            };
            // One that was not received yet is enough.
            let _ = send.try_send(());
            // Without an answer, the other side asks again.
            let _ = shared.fleet.client.publish(reply, "".into()).await;
        }
    });
    Ok(received)
}

/// Waits for the ends of the runs. Those that go on after the limit are interrupted.
pub(super) async fn finish(shared: &Arc<Shared>, carries: &mut JoinSet<Verdict>) {
    let until = (shared.config.drain_timeout).map(|limit| Instant::now() + limit);
    let over = async {
        match until {
            Some(until) => sleep_until(until).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(over);
    let mut interrupted = JoinSet::new();
    loop {
        tokio::select! {
            ended = carries.join_next() => {
                if ended.is_none() {
                    return;
                }
            }
            () = &mut over, if !shared.interrupts.load(Ordering::Relaxed) => {
                shared.interrupts.store(true, Ordering::Relaxed);
                let keys = lock(&shared.busy).clone();
                for key in keys {
                    interrupted.spawn(interrupt(shared.clone(), key));
                }
            }
        }
    }
}

/// Interrupts a run until it is carried out no more. One whose agent was not started is refused by then.
async fn interrupt(shared: Arc<Shared>, key: RunKey) {
    shared.notice(&key, "is interrupted: the worker ends");
    let local = key.local();
    let until = Instant::now() + GRACE;
    while lock(&shared.busy).contains(&key) {
        let kill = Instant::now() > until;
        let sent = shared.runs.send(&local, Command::Cancel { kill }).await;
        if let Err(error) = sent
            && kill
            && !matches!(
                error.code,
                Some(ProblemCode::RunEnded | ProblemCode::RunNotFound)
            )
        {
            shared.notice(&key, format!("cannot be interrupted: {error}"));
        }
        sleep(RETRY).await;
    }
}
