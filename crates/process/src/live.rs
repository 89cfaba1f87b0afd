//! Number of live runs in this process.

use std::sync::atomic::{AtomicUsize, Ordering};

static LIVE: AtomicUsize = AtomicUsize::new(0);

/// How many runs of this process still have processes of their own, or are ending them. When a run is no
/// longer counted, nothing of it is alive but what was to be left, also if its events were not read.
///
/// For a program that has to leave although its output is stuck.
pub fn live_runs() -> usize {
    LIVE.load(Ordering::SeqCst)
}

/// A run that counts while this is there.
#[derive(Debug)]
pub(crate) struct Live(());

impl Live {
    pub(crate) fn new() -> Self {
        LIVE.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::SeqCst);
    }
}
