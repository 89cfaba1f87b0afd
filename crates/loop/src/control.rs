//! What is asked of a loop while it runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Asks a loop for a tick, or for its end. Clones ask the same one.
#[derive(Debug, Clone, Default)]
pub struct Control(Arc<State>);

#[derive(Debug, Default)]
struct State {
    woken: AtomicBool,
    wake: Notify,
    stop: CancellationToken,
    why: OnceLock<String>,
}

impl Control {
    /// Nothing is asked.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for a tick: a sleep ends at once, and while a tick is played the next one follows it without
    /// a sleep. It is remembered until a tick has begun.
    pub fn wake(&self) {
        self.0.woken.store(true, Ordering::Release);
        self.0.wake.notify_one();
    }

    /// Asks for the end: a sleep ends, a tick is broken off, the agent is ended.
    pub fn stop(&self) {
        self.stop_because("the loop was stopped");
    }

    /// [Stops](Self::stop) the loop for this reason, which the log has.
    pub fn stop_because(&self, reason: impl Into<String>) {
        // The first reason is the one that counts.
        let _ = self.0.why.set(reason.into());
        self.0.stop.cancel();
    }

    /// Why the end was requested.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.0.why.get().map(String::as_str)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.0.stop.is_cancelled()
    }

    /// Waits until the end is requested.
    pub async fn stopping(&self) {
        self.0.stop.cancelled().await;
    }

    /// Whether a tick was requested since the last call.
    pub(crate) fn take_wake(&self) -> bool {
        self.0.woken.swap(false, Ordering::AcqRel)
    }

    /// Waits until a tick is requested that [`take_wake`](Self::take_wake) has not returned yet.
    pub(crate) async fn woken(&self) {
        while !self.0.woken.load(Ordering::Acquire) {
            self.0.wake.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_wake_is_remembered_once() {
        let control = Control::new();
        control.wake();
        control.wake();
        control.woken().await;
        assert!(control.take_wake());
        assert!(!control.take_wake());
        // A request that was returned is not waited for again.
        tokio::select! {
            biased;
            () = control.woken() => panic!("no request"),
            () = tokio::task::yield_now() => {}
        }
        control.clone().wake();
        control.woken().await;
    }
}
