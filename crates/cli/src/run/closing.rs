//! Cleanup after the last event of a run.

use std::pin::Pin;

use teamster::AbortHandle;

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
    type Event = F::Event;

    async fn next(&mut self) -> Option<F::Event> {
        if !self.has_ended {
            let event = self.feed.next().await;
            if event.is_some() {
                return event;
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

    fn exit_code(event: &F::Event) -> Option<u8> {
        F::exit_code(event)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use tokio::task::yield_now;

    use super::*;

    /// A run of two events.
    struct Two(u8);

    impl Feed for Two {
        type Event = u8;

        async fn next(&mut self) -> Option<u8> {
            self.0 += 1;
            (self.0 <= 2).then_some(self.0)
        }

        fn abort_handle(&self) -> AbortHandle {
            AbortHandle::default()
        }

        fn exit_code(_: &u8) -> Option<u8> {
            None
        }
    }

    #[test]
    fn cleanup_runs_once_although_next_is_polled_often() {
        let runtime = crate::tokio_runtime().unwrap();
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
            assert_eq!((run.next().await, run.next().await), (Some(1), Some(2)));
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
