//! Number of live runs in this process.

use std::sync::atomic::{AtomicUsize, Ordering};

static LIVE: AtomicUsize = AtomicUsize::new(0);

/// Returns the number of runs of this process that still have processes, or are ending them. After a run is not
/// counted any more, only processes that were to be kept remain, even if its events were not read.
///
/// For programs that have to exit although their output is blocked.
pub fn live_runs() -> usize {
    LIVE.load(Ordering::SeqCst)
}

/// Guard that counts a run as live until it is dropped.
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
