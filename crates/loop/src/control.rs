//! Wake and stop requests for a running loop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Handle that wakes or stops a loop. Clones control the same loop.
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
    /// Creates a handle without requests.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests a tick. A sleep ends at once; a tick in progress is followed by the next without a sleep. The
    /// request is kept until a tick begins.
    pub fn wake(&self) {
        self.0.woken.store(true, Ordering::Release);
        self.0.wake.notify_one();
    }

    /// Stops the loop: a sleep ends, a tick is aborted, and the agent is ended.
    pub fn stop(&self) {
        self.stop_because("the loop was stopped");
    }

    /// [Stops](Self::stop) the loop for this reason, which is logged.
    pub fn stop_because(&self, reason: impl Into<String>) {
        // The first reason is kept.
        let _ = self.0.why.set(reason.into());
        self.0.stop.cancel();
    }

    pub(crate) fn reason(&self) -> Option<&str> {
        self.0.why.get().map(String::as_str)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.0.stop.is_cancelled()
    }

    /// Waits until the loop is stopped.
    pub async fn stopping(&self) {
        self.0.stop.cancelled().await;
    }

    /// Returns whether a tick was requested since the last call.
    pub(crate) fn take_wake(&self) -> bool {
        self.0.woken.swap(false, Ordering::AcqRel)
    }

    /// Waits for a requested tick that [`take_wake`](Self::take_wake) has not returned.
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
        // A returned request does not end the next wait.
        tokio::select! {
            biased;
            () = control.woken() => panic!("no request"),
            () = tokio::task::yield_now() => {}
        }
        control.clone().wake();
        control.woken().await;
    }
}
