//! Between the task that reads the CLI and whoever reads the stream.
//!
//! The reading task never waits: what the consumer has not taken yet is kept in memory up to a
//! limit, and beyond that on disk. Nothing is dropped. Both sides move whole batches, so there is
//! one lock and at most one wake for each.

use std::future::poll_fn;
use std::mem;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use teamster_core::sync::lock;
use teamster_core::time::epoch_ms;
use teamster_core::{AgentError, AgentEvent, ErrorCode, ErrorKind, Events, LogEntry};

use crate::spill::{Spill, SpillError};

/// A queue that keeps about `memory_bytes` in memory, and the rest in `spill`.
pub(crate) fn queue(memory_bytes: usize, spill: Spill) -> (Producer, Consumer) {
    let state = Arc::new(Mutex::new(State {
        memory_bytes,
        ready: Vec::new(),
        ready_bytes: 0,
        taken_bytes: 0,
        spill,
        last: Vec::new(),
        failed: None,
        untold: None,
        closed: false,
        abandoned: false,
        waker: None,
    }));
    (Producer(state.clone()), Consumer(state))
}

/// The order of events is: `ready`, then `spill`, then `last`.
struct State {
    memory_bytes: usize,
    ready: Vec<LogEntry>,
    ready_bytes: usize,
    /// What the consumer took and may still hold.
    taken_bytes: usize,
    spill: Spill,
    /// The end of the stream, and before it the batch that found no room.
    last: Vec<LogEntry>,
    /// Why nothing more is taken.
    failed: Option<AgentError>,
    /// Events were lost and the run does not know yet.
    untold: Option<AgentError>,
    closed: bool,
    /// The consumer is gone.
    abandoned: bool,
    waker: Option<Waker>,
}

type Shared = Arc<Mutex<State>>;

/// The end that the engine writes to. Dropping it ends the stream.
pub(crate) struct Producer(Shared);

impl Producer {
    /// Hands over all the events. An error means that these were still taken but no others can be:
    /// the run must end.
    pub(crate) fn push(&self, events: &mut Events) -> Result<(), AgentError> {
        if events.is_empty() {
            return Ok(());
        }
        let bytes = events.approximate_bytes();
        let mut state = lock(&self.0);
        let waker = state.waker.take();
        let result = state.push(events, bytes);
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        result
    }

    /// Hands over the last events and ends the stream.
    pub(crate) fn close(&self, events: &mut Events) {
        let mut state = lock(&self.0);
        if let Some(error) = state.untold.take() {
            state.last.push(entry(error));
        }
        state.last.extend(events.drain_entries(epoch_ms()));
        state.end();
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        lock(&self.0).end();
    }
}

impl State {
    fn push(&mut self, events: &mut Events, bytes: usize) -> Result<(), AgentError> {
        if self.abandoned {
            drop(events.drain());
            return Ok(());
        }
        if let Some(error) = &self.failed {
            self.untold = None;
            self.last.extend(events.drain_entries(epoch_ms()));
            return Err(error.clone());
        }
        let waiting = self.ready_bytes + self.taken_bytes;
        // A batch larger than all the room is in memory anyway; on disk it would be there twice.
        if self.spill.is_empty() && (waiting == 0 || waiting + bytes <= self.memory_bytes) {
            self.ready.extend(events.drain_entries(epoch_ms()));
            self.ready_bytes += bytes;
            return Ok(());
        }
        let mut batch: Vec<_> = events.drain_entries(epoch_ms()).collect();
        let Err(error) = self.spill.push(&mut batch) else {
            return Ok(());
        };
        let error = self.spill_error(&error);
        self.failed = Some(error.clone());
        self.last.append(&mut batch);
        Err(error)
    }

    fn spill_error(&self, error: &SpillError) -> AgentError {
        let message = match error {
            SpillError::Limit => "the run was stopped because more of its output waits for its \
                                  reader than may be kept on disk; read faster, or raise \
                                  `spill_limit_bytes`"
                .to_owned(),
            SpillError::Io(error) => format!(
                "the run was stopped because its output waits for its reader and cannot be kept \
                 in {}: {error}",
                self.spill.dir().display()
            ),
        };
        AgentError::new(ErrorCode::OutputLimit, ErrorKind::Internal, message)
    }

    /// Puts the oldest events into `batch`; `None` if there are none now, `false` if none ever.
    fn pull(&mut self, batch: &mut Vec<LogEntry>) -> Option<bool> {
        batch.clear();
        self.taken_bytes = 0;
        if !self.ready.is_empty() {
            mem::swap(&mut self.ready, batch);
            self.taken_bytes = mem::take(&mut self.ready_bytes);
            return Some(true);
        }
        if !self.spill.is_empty() {
            if let Err(error) = self.spill.pop(batch) {
                self.lose_spilled(&error, batch);
            }
            self.taken_bytes = batch.iter().map(LogEntry::approximate_bytes).sum();
            return Some(true);
        }
        if !self.last.is_empty() {
            mem::swap(&mut self.last, batch);
            return Some(true);
        }
        self.closed.then_some(false)
    }

    /// What is on disk cannot be read back. That must be told: by the run, which then ends, or by
    /// ourselves if it is over.
    fn lose_spilled(&mut self, error: &std::io::Error, batch: &mut Vec<LogEntry>) {
        let error = AgentError::new(
            ErrorCode::Io,
            ErrorKind::Internal,
            format!(
                "events that waited in {} cannot be read back and are lost: {error}",
                self.spill.dir().display()
            ),
        );
        self.spill = Spill::new(Some(self.spill.dir()), 0);
        if self.closed {
            batch.push(entry(error));
        } else {
            self.untold = Some(error.clone());
            self.failed = Some(error);
        }
    }

    fn end(&mut self) {
        self.closed = true;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// An error of the queue's own.
fn entry(error: AgentError) -> LogEntry {
    let mut entry = LogEntry::from(AgentEvent::error(error));
    entry.at_ms = epoch_ms();
    entry
}

/// The end that the stream reads from. Dropping it makes the producer throw everything away.
pub(crate) struct Consumer(Shared);

impl Consumer {
    /// Waits for events and puts all there are, or as many as fit in memory well, into `batch`,
    /// which is emptied first. `false` after the last one.
    pub(crate) async fn pull(&self, batch: &mut Vec<LogEntry>) -> bool {
        poll_fn(|cx| {
            let mut state = lock(&self.0);
            match state.pull(batch) {
                Some(more) => Poll::Ready(more),
                None => {
                    state.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Consumer {
    /// About how many bytes of memory the events hold that were pulled last.
    pub(crate) fn taken_bytes(&self) -> usize {
        lock(&self.0).taken_bytes
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        state.abandoned = true;
        state.ready = Vec::new();
        state.last = Vec::new();
        state.spill = Spill::new(Some(state.spill.dir()), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;
    use std::pin::pin;
    use std::task::Context;
    use teamster_core::{NoticeLevel, NoticeSource};

    fn events(numbers: impl IntoIterator<Item = usize>, padding: usize) -> Events {
        let mut events = Events::new();
        for number in numbers {
            let text = format!("{number:06}{}", "x".repeat(padding));
            events.notice(NoticeLevel::Info, NoticeSource::Runtime, text);
        }
        events
    }

    fn numbers(batch: &[LogEntry]) -> Vec<usize> {
        let number = |entry: &LogEntry| match &entry.event {
            AgentEvent::Notice(notice) => notice.message[..6].parse().unwrap(),
            other => panic!("{other:?}"),
        };
        batch.iter().map(number).collect()
    }

    /// What there is now; `None` if one would have to wait.
    fn pull_now(consumer: &Consumer) -> Option<Vec<LogEntry>> {
        let mut batch = Vec::new();
        let mut cx = Context::from_waker(Waker::noop());
        match pin!(consumer.pull(&mut batch)).poll(&mut cx) {
            Poll::Ready(_) => {}
            Poll::Pending => return None,
        }
        Some(batch)
    }

    #[test]
    fn memory_is_used_first_and_again_when_the_disk_is_empty() {
        let (producer, consumer) = queue(10_000, Spill::new(None, 1 << 30));
        producer.push(&mut events(0..10, 100)).unwrap();
        producer.push(&mut events(10..1000, 100)).unwrap();
        assert_eq!(lock(&consumer.0).ready.len(), 10);
        assert!(!lock(&consumer.0).spill.is_empty());
        producer.push(&mut events([1000], 0)).unwrap();
        let mut seen = Vec::new();
        while let Some(batch) = pull_now(&consumer) {
            assert!(!batch.is_empty());
            seen.extend(numbers(&batch));
        }
        assert_eq!(seen, (0..=1000).collect::<Vec<_>>());
        producer.push(&mut events([7], 0)).unwrap();
        assert_eq!(lock(&consumer.0).ready.len(), 1);
    }

    #[test]
    fn what_the_consumer_holds_counts_as_memory() {
        let (producer, consumer) = queue(10_000, Spill::new(None, 1 << 30));
        producer.push(&mut events(0..20, 200)).unwrap();
        pull_now(&consumer).unwrap();
        producer.push(&mut events(20..40, 200)).unwrap();
        assert!(!lock(&consumer.0).spill.is_empty());
    }

    #[test]
    fn beyond_the_limit_the_batch_still_comes_and_the_end_too() {
        let (producer, consumer) = queue(1000, Spill::new(None, 5000));
        producer.push(&mut events(0..5, 100)).unwrap();
        producer.push(&mut events(5..10, 100)).unwrap();
        let error = producer.push(&mut events(10..100, 100)).unwrap_err();
        assert_eq!(error.code, ErrorCode::OutputLimit);
        assert!(error.message.contains("spill_limit_bytes"));
        producer.close(&mut events([100], 0));
        let mut seen = Vec::new();
        while let Some(batch) = pull_now(&consumer).filter(|batch| !batch.is_empty()) {
            seen.extend(numbers(&batch));
        }
        assert_eq!(seen, (0..=100).collect::<Vec<_>>());
    }

    #[test]
    fn a_disk_that_cannot_be_written_ends_the_run() {
        let (producer, _consumer) = queue(1000, Spill::new(Some(Path::new("/nowhere")), 5000));
        producer.push(&mut events(0..5, 100)).unwrap();
        let error = producer.push(&mut events(5..10, 100)).unwrap_err();
        assert_eq!(error.code, ErrorCode::OutputLimit);
        assert!(error.message.contains("/nowhere"), "{}", error.message);
    }

    #[test]
    fn without_a_consumer_nothing_is_kept() {
        let (producer, consumer) = queue(1000, Spill::new(None, 5000));
        drop(consumer);
        for _ in 0..100 {
            producer.push(&mut events(0..100, 100)).unwrap();
        }
        assert!(lock(&producer.0).ready.is_empty());
    }

    proptest! {
        #[test]
        fn the_order_holds_whatever_the_turns(
            turns in proptest::collection::vec((any::<bool>(), 0_usize..40, 0_usize..300), 1..60),
            memory in 0_usize..20_000,
        ) {
            let (producer, consumer) = queue(memory, Spill::new(None, 1 << 30));
            let (mut next, mut seen) = (0, Vec::new());
            for (write, count, padding) in turns {
                if write {
                    producer.push(&mut events(next..next + count, padding)).unwrap();
                    next += count;
                } else if let Some(batch) = pull_now(&consumer) {
                    seen.extend(numbers(&batch));
                }
            }
            producer.close(&mut events([next], 0));
            while let Some(batch) = pull_now(&consumer).filter(|batch| !batch.is_empty()) {
                seen.extend(numbers(&batch));
            }
            prop_assert_eq!(seen, (0..=next).collect::<Vec<_>>());
        }
    }
}
