//! The queue between the task that reads the CLI and the stream's consumer.
//!
//! The reading task never waits: pending events are kept in memory up to a limit, and beyond that on disk. Nothing
//! is dropped. Both sides move whole batches, so each batch costs one lock and at most one wakeup.

use std::collections::VecDeque;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use teamster_core::provider::Events;
use teamster_core::sync::lock;
use teamster_core::time::epoch_ms;
use teamster_core::{AgentError, AgentEvent, ErrorCode, ErrorKind, LogEntry};

use crate::spill::{Spill, SpillError};

/// Approximate size of a batch in memory, in bytes. It bounds the memory of a consumer that processes a whole batch
/// before it takes the next one.
const BATCH_BYTES: usize = 128 << 10;

/// Creates a queue that keeps about `memory_bytes` in memory, and the rest in `spill`.
pub(crate) fn queue(memory_bytes: usize, spill: Spill) -> (Producer, Consumer) {
    let state = Arc::new(Mutex::new(State {
        memory_bytes,
        ready: VecDeque::new(),
        ready_bytes: 0,
        taken_bytes: 0,
        spill,
        last: Vec::new(),
        failed: None,
        unreported: None,
        closed: false,
        abandoned: false,
        waker: None,
    }));
    (Producer(state.clone()), Consumer(state))
}

/// State of a queue. The order of its events is `ready`, `spill`, `last`.
struct State {
    memory_bytes: usize,
    ready: VecDeque<Batch>,
    ready_bytes: usize,
    /// Size of the entries that the consumer took and may still hold, in bytes.
    taken_bytes: usize,
    spill: Spill,
    /// The batch that found no room, and the end of the stream.
    last: Vec<LogEntry>,
    /// Reason why no more events are accepted.
    failed: Option<AgentError>,
    /// Error of lost events that was not reported to the run yet.
    unreported: Option<AgentError>,
    closed: bool,
    /// True if the consumer was dropped.
    abandoned: bool,
    waker: Option<Waker>,
}

/// Entries that are passed together, and their approximate size in memory.
#[derive(Default)]
struct Batch {
    entries: Vec<LogEntry>,
    bytes: usize,
}

type Shared = Arc<Mutex<State>>;

/// The sending half of a queue. Dropping it ends the stream.
pub(crate) struct Producer(Shared);

impl Producer {
    /// Sends all events. Fails if the run must end. These events were still accepted, but no others will be.
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

    /// Sends the last events and ends the stream.
    pub(crate) fn close(&self, events: &mut Events) {
        let mut state = lock(&self.0);
        if let Some(error) = state.unreported.take() {
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
            self.unreported = None;
            self.last.extend(events.drain_entries(epoch_ms()));
            return Err(error.clone());
        }
        let waiting = self.ready_bytes + self.taken_bytes;
        // A batch that is larger than the limit is in memory anyway; spilling would duplicate it.
        if self.spill.is_empty() && (waiting == 0 || waiting + bytes <= self.memory_bytes) {
            self.ready_bytes += bytes;
            let entries = events.drain_entries(epoch_ms());
            match self.ready.back_mut() {
                Some(last) if last.bytes + bytes <= BATCH_BYTES => {
                    last.entries.extend(entries);
                    last.bytes += bytes;
                }
                _ => self.ready.push_back(Batch {
                    entries: entries.collect(),
                    bytes,
                }),
            }
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

    /// Removes and returns the oldest entries, not many more than [`BATCH_BYTES`]; `None` after the last.
    fn pull(&mut self) -> Poll<Option<Vec<LogEntry>>> {
        self.taken_bytes = 0;
        if let Some(batch) = self.ready.pop_front() {
            self.ready_bytes -= batch.bytes;
            self.taken_bytes = batch.bytes;
            return Poll::Ready(Some(batch.entries));
        }
        if !self.spill.is_empty() {
            let mut entries = Vec::new();
            if let Err(error) = self.spill.pop(&mut entries) {
                self.lose_spilled(&error, &mut entries);
            }
            self.taken_bytes = entries.iter().map(LogEntry::approximate_bytes).sum();
            return Poll::Ready(Some(entries));
        }
        if !self.last.is_empty() {
            return Poll::Ready(Some(mem::take(&mut self.last)));
        }
        if self.closed {
            Poll::Ready(None)
        } else {
            Poll::Pending
        }
    }

    /// Handles spilled entries that cannot be read back. The run reports the error and ends. If it has ended, the queue
    /// reports the error itself.
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
            self.unreported = Some(error.clone());
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

/// Creates an entry for an error of the queue itself.
fn entry(error: AgentError) -> LogEntry {
    let mut entry = LogEntry::from(AgentEvent::error(error));
    entry.at_ms = epoch_ms();
    entry
}

/// The receiving half of a queue. Dropping it makes the producer discard all events.
pub(crate) struct Consumer(Shared);

impl Stream for Consumer {
    type Item = Vec<LogEntry>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Vec<LogEntry>>> {
        let mut state = lock(&self.0);
        let batch = state.pull();
        if batch.is_pending() {
            state.waker = Some(cx.waker().clone());
        }
        batch
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        state.abandoned = true;
        state.ready = VecDeque::new();
        state.last = Vec::new();
        state.spill = Spill::new(Some(state.spill.dir()), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;
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

    /// Returns the entries that are ready; `None` if the caller has to wait.
    fn pull_now(consumer: &mut Consumer) -> Option<Vec<LogEntry>> {
        let mut cx = Context::from_waker(Waker::noop());
        match Pin::new(consumer).poll_next(&mut cx) {
            Poll::Ready(batch) => Some(batch.unwrap_or_default()),
            Poll::Pending => None,
        }
    }

    /// Returns the number of pending entries in memory.
    fn in_memory(queue: &Shared) -> usize {
        lock(queue).ready.iter().map(|it| it.entries.len()).sum()
    }

    #[test]
    fn memory_is_used_first_and_again_when_the_disk_is_empty() {
        let (producer, mut consumer) = queue(10_000, Spill::new(None, 1 << 30));
        producer.push(&mut events(0..10, 100)).unwrap();
        producer.push(&mut events(10..1000, 100)).unwrap();
        assert_eq!(in_memory(&consumer.0), 10);
        assert!(!lock(&consumer.0).spill.is_empty());
        producer.push(&mut events([1000], 0)).unwrap();
        let mut seen = Vec::new();
        while let Some(batch) = pull_now(&mut consumer) {
            assert!(!batch.is_empty());
            seen.extend(numbers(&batch));
        }
        assert_eq!(seen, (0..=1000).collect::<Vec<_>>());
        producer.push(&mut events([7], 0)).unwrap();
        assert_eq!(in_memory(&consumer.0), 1);
    }

    #[test]
    fn a_batch_larger_than_the_memory_is_kept_there_if_alone() {
        let (producer, consumer) = queue(0, Spill::new(None, 0));
        producer.push(&mut events(0..3, 100)).unwrap();
        assert_eq!(in_memory(&consumer.0), 3);
        producer.push(&mut events([3], 0)).unwrap_err();
    }

    #[test]
    fn small_batches_are_passed_as_one_and_large_ones_are_not() {
        let (producer, consumer) = queue(usize::MAX, Spill::new(None, 0));
        let batches = || lock(&consumer.0).ready.len();
        for (number, padding, expected) in [
            (0, 0, 1),
            (1, 0, 1),
            (2, BATCH_BYTES / 2, 1),
            (3, BATCH_BYTES / 2, 2),
        ] {
            producer.push(&mut events([number], padding)).unwrap();
            assert_eq!(batches(), expected, "{number}");
        }
    }

    #[test]
    fn entries_held_by_the_consumer_count_as_memory() {
        let (producer, mut consumer) = queue(10_000, Spill::new(None, 1 << 30));
        producer.push(&mut events(0..20, 200)).unwrap();
        pull_now(&mut consumer).unwrap();
        producer.push(&mut events(20..40, 200)).unwrap();
        assert!(!lock(&consumer.0).spill.is_empty());
    }

    #[test]
    fn beyond_the_limit_the_batch_still_comes_and_the_end_too() {
        let (producer, mut consumer) = queue(1000, Spill::new(None, 5000));
        producer.push(&mut events(0..5, 100)).unwrap();
        producer.push(&mut events(5..10, 100)).unwrap();
        let error = producer.push(&mut events(10..100, 100)).unwrap_err();
        assert_eq!(error.code, ErrorCode::OutputLimit);
        assert!(error.message.contains("spill_limit_bytes"));
        producer.close(&mut events([100], 0));
        let mut seen = Vec::new();
        while let Some(batch) = pull_now(&mut consumer).filter(|batch| !batch.is_empty()) {
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
        assert!(in_memory(&producer.0) == 0);
    }

    proptest! {
        #[test]
        fn the_order_is_kept_with_any_interleaving(
            turns in proptest::collection::vec((any::<bool>(), 0_usize..40, 0_usize..300), 1..60),
            memory in 0_usize..20_000,
        ) {
            let (producer, mut consumer) = queue(memory, Spill::new(None, 1 << 30));
            let (mut next, mut seen) = (0, Vec::new());
            for (write, count, padding) in turns {
                if write {
                    producer.push(&mut events(next..next + count, padding)).unwrap();
                    next += count;
                } else if let Some(batch) = pull_now(&mut consumer) {
                    seen.extend(numbers(&batch));
                }
            }
            producer.close(&mut events([next], 0));
            while let Some(batch) = pull_now(&mut consumer).filter(|batch| !batch.is_empty()) {
                seen.extend(numbers(&batch));
            }
            prop_assert_eq!(seen, (0..=next).collect::<Vec<_>>());
        }
    }
}
