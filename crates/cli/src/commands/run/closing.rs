//! Cleanup after the last event of a run.

use std::pin::Pin;

use teamster::AbortHandle;
use teamster_api::RunLogEntry;

use crate::drive::Feed;

/// A run with a cleanup future that runs after its last event.
pub(super) struct Closing<F> {
    feed: F,
    has_ended: bool,
    /// `next` is polled inside `select!` and dropped between polls, so the cleanup future is stored and resumed
    /// instead of restarted.
    cleanup: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl<F> Closing<F> {
    pub(super) fn new(feed: F, cleanup: impl Future<Output = ()> + 'static) -> Self {
        Self {
            feed,
            has_ended: false,
            cleanup: Some(Box::pin(cleanup)),
        }
    }
}

impl<F: Feed> Feed for Closing<F> {
    async fn next(&mut self) -> Option<RunLogEntry> {
        if !self.has_ended {
            let entry = self.feed.next().await;
            if entry.is_some() {
                return entry;
            }
            self.has_ended = true;
        }
        if let Some(cleanup) = &mut self.cleanup {
            cleanup.await;
            self.cleanup = None;
        }
        None
    }

    fn abort_handle(&self) -> AbortHandle {
        self.feed.abort_handle()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use tokio::task::yield_now;

    use super::*;

    /// A log of two entries.
    struct Two(u64);

    impl Feed for Two {
        async fn next(&mut self) -> Option<RunLogEntry> {
            self.0 += 1;
            (self.0 <= 2).then(|| RunLogEntry::reset(self.0, 0, "r".into()))
        }

        fn abort_handle(&self) -> AbortHandle {
            AbortHandle::default()
        }
    }

    #[test]
    fn cleanup_runs_once_although_next_is_polled_often() {
        let runtime = crate::runtime::tokio_runtime().unwrap();
        let is_done = Rc::new(Cell::new(false));
        let done = is_done.clone();
        let cleanup = async move {
            for _ in 0..10 {
                yield_now().await;
            }
            assert!(!done.replace(true));
        };
        runtime.block_on(async {
            let mut run = Closing::new(Two(0), cleanup);
            for seq in 1..=2 {
                assert_eq!(run.next().await.map(|entry| entry.seq()), Some(seq));
            }
            let mut polls = 0;
            loop {
                tokio::select! {
                    biased;
                    event = run.next() => break assert_eq!(event, None),
                    () = yield_now() => polls += 1,
                }
                assert!(polls < 1000);
            }
            assert!(polls > 0);
            assert!(is_done.get());
            assert_eq!(run.next().await, None);
        });
    }
}
