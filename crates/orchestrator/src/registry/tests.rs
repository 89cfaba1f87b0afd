use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use teamster_core::time::millis;
use teamster_core::{ErrorCode, ErrorKind};

use super::*;

mod properties;
mod runs;
mod slots;

/// Start time of the test, in milliseconds since the Unix epoch.
const T0: u64 = 1_700_000_000_000;

/// Creates a clock that starts at `start_ms` and follows Tokio's time, including when that is paused.
fn test_clock(start_ms: u64) -> Clock {
    let start = tokio::time::Instant::now();
    Arc::new(move || start_ms.saturating_add(millis(start.elapsed())))
}

fn start(limits: Limits) -> Registry {
    limits.check().unwrap();
    Registry::start(limits, test_clock(T0))
}

impl Registry {
    /// Returns whether the task has no state of any run.
    async fn is_idle(&self) -> bool {
        self.ask(Command::IsIdle).await.unwrap()
    }

    async fn named(&self, run_id: &str) -> Registration {
        self.register(run_id.into(), "p", None, AbortHandle::default())
            .await
            .unwrap()
    }

    async fn phase(&self, run_id: &str) -> RunPhase {
        self.run(run_id).await.phase
    }

    async fn run(&self, run_id: &str) -> ActiveRun {
        let active = self.active().await;
        active
            .into_iter()
            .find(|run| &*run.run_id == run_id)
            .unwrap()
    }
}

impl Registration {
    /// Waits for a slot and ignores the reasons of waiting.
    async fn any_slot(&self, group: &str, queue: &str) -> Result<Slot, Gone> {
        let (waits, _) = mpsc::unbounded_channel();
        self.slot(group, queue, waits).await
    }
}

fn why() -> AgentError {
    AgentError::new(
        ErrorCode::CliError,
        ErrorKind::RateLimit,
        "too many requests",
    )
}

/// Lets all tasks run without a command that would wake the registry.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

async fn advance(ms: u64) {
    tokio::time::advance(Duration::from_millis(ms)).await;
    settle().await;
}

/// A wait for a slot, which is polled and never awaited.
struct Wait<'a>(Pin<Box<dyn Future<Output = Result<Slot, Gone>> + Send + 'a>>);

impl<'a> Wait<'a> {
    /// Takes a position in the queue.
    async fn begin(run: &'a Registration, group: &'a str, queue: &'a str) -> Wait<'a> {
        let mut wait = Self(Box::pin(run.any_slot(group, queue)));
        assert!(wait.poll().await.is_none(), "a slot takes an answer");
        settle().await;
        wait
    }

    async fn poll(&mut self) -> Option<Slot> {
        std::future::poll_fn(|cx| {
            Poll::Ready(match self.0.as_mut().poll(cx) {
                Poll::Ready(slot) => Some(slot.unwrap()),
                Poll::Pending => None,
            })
        })
        .await
    }
}
