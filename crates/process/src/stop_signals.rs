//! Abort and kill requests for a running process.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

use teamster_core::AbortHandle;

type Signalled = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Requests of the caller.
pub(crate) struct StopSignals {
    handle: AbortHandle,
    /// The waker of the task that the next request wakes.
    waker: Option<Waker>,
    abort: Option<Signalled>,
    kill: Option<Signalled>,
    /// True if the run is to be stopped.
    pub(crate) stop: bool,
    /// True if the run is to be stopped by force.
    pub(crate) force: bool,
}

impl StopSignals {
    pub(crate) fn new(handle: &AbortHandle) -> Self {
        let (abort, kill) = (handle.clone(), handle.clone());
        Self {
            handle: handle.clone(),
            waker: None,
            abort: Some(Box::pin(async move { abort.aborted().await })),
            kill: Some(Box::pin(async move { kill.killed().await })),
            stop: false,
            force: false,
        }
    }

    /// Returns whether there is a new request.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        let is_waker = |waker: &Waker| waker.will_wake(cx.waker());
        // Polled for each chunk that is read; requests are rare.
        if !self.handle.is_aborted() && self.waker.as_ref().is_some_and(is_waker) {
            return false;
        }
        self.waker = Some(cx.waker().clone());
        let mut news = false;
        if poll_once(&mut self.abort, cx) {
            self.stop = true;
            news = true;
        }
        // A kill also aborts, so it need not be polled before.
        if self.stop && poll_once(&mut self.kill, cx) {
            self.force = true;
            news = true;
        }
        news
    }
}

fn poll_once(signalled: &mut Option<Signalled>, cx: &mut Context<'_>) -> bool {
    let happened = signalled
        .as_mut()
        .is_some_and(|signalled| signalled.as_mut().poll(cx).is_ready());
    if happened {
        *signalled = None;
    }
    happened
}
