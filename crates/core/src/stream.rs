//! The stream of events of one run.

use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::vec;

use futures_core::Stream;
use pin_project_lite::pin_project;

use crate::provider::RunAssembler;
use crate::time::epoch_ms;
use crate::{
    AbortHandle, AgentError, AgentEvent, ErrorCode, ErrorKind, LogEntry, RunResult, RunStatus,
};

/// The events of one run. See the [crate] docs for its grammar.
///
/// The run starts when the stream is first polled. Dropping the stream before `done` stops the run.
#[must_use = "the run starts when the stream is polled"]
pub struct EventStream {
    source: Source,
    /// What comes before the source. The last one is first.
    before: Vec<Entries<Result<Vec<LogEntry>, AgentError>>>,
    /// Entries that were read and not yet returned.
    ready: vec::IntoIter<LogEntry>,
    abort: AbortHandle,
    seq: u64,
    done: bool,
}

type Entries<T> = Pin<Box<dyn Stream<Item = T> + Send>>;

/// Source of the entries.
enum Source {
    One(Entries<LogEntry>),
    Many(Entries<Vec<LogEntry>>),
    Nothing,
}

impl EventStream {
    /// Creates a stream over `events`, which MUST keep the grammar and end the run when `abort` is triggered.
    ///
    /// The items are events, or entries if their time, run, attempt or native line is known.
    pub fn new<E: Into<LogEntry>>(
        events: impl Stream<Item = E> + Send + 'static,
        abort: AbortHandle,
    ) -> Self {
        Self::over(Source::One(Box::pin(OfEvents { events })), abort)
    }

    /// Creates a stream over batches of entries, which costs less for each entry.
    pub fn of_batches(
        batches: impl Stream<Item = Vec<LogEntry>> + Send + 'static,
        abort: AbortHandle,
    ) -> Self {
        Self::over(Source::Many(Box::pin(batches)), abort)
    }

    /// Creates the stream of a run that is refused with this error.
    pub fn refused(error: AgentError) -> Self {
        let mut refused = Self::over(Source::Nothing, AbortHandle::default());
        refused.ready = refusal(error).into_iter();
        refused
    }

    /// Returns the stream that begins with these entries. If they end with an error, the run is refused with it and never
    /// started.
    pub fn after(
        mut self,
        before: impl Stream<Item = Result<Vec<LogEntry>, AgentError>> + Send + 'static,
    ) -> Self {
        self.before.push(Box::pin(before));
        self
    }

    fn over(source: Source, abort: AbortHandle) -> Self {
        Self {
            source,
            before: Vec::new(),
            ready: vec::IntoIter::default(),
            abort,
            seq: 0,
            done: false,
        }
    }

    /// Returns the next event; `None` after `done`. Cancel-safe.
    ///
    /// Same as `next` of the common stream extension traits, without an import.
    pub async fn next(&mut self) -> Option<AgentEvent> {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    /// Returns the next event as an entry of the run's log, with its number, its time, and its native line if that
    /// was requested. Cancel-safe.
    ///
    /// The entries of a runtime's stream are numbered from 1 without gaps, including those that
    /// [`next`](Self::next) returned. An entry that already has a number keeps it: entries of an orchestrated run have
    /// the numbers of the run's log.
    pub async fn next_entry(&mut self) -> Option<LogEntry> {
        let mut entry = poll_fn(|cx| self.poll_entry(cx)).await?;
        number(&mut entry, self.seq, &mut 0);
        Some(entry)
    }

    /// Returns the available entries, and waits if there are none. Empty after `done`. Cancel-safe.
    pub async fn next_batch(&mut self) -> Vec<LogEntry> {
        poll_fn(|cx| self.poll_ready(cx)).await;
        // Not copied unless some of them were returned singly.
        let mut batch: Vec<_> = mem::take(&mut self.ready).collect();
        if let Some(last) = batch.iter().position(is_last) {
            batch.truncate(last + 1);
            self.done = true;
        }
        let mut now_ms = 0;
        for entry in &mut batch {
            self.seq = seq_after(self.seq, entry);
            number(entry, self.seq, &mut now_ms);
        }
        batch
    }

    #[inline]
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        // The unused fields of the entry are not copied.
        self.poll_entry(cx)
            .map(|entry| entry.map(|entry| entry.event))
    }

    /// Returns the next entry, which is counted but not yet numbered.
    #[inline]
    fn poll_entry(&mut self, cx: &mut Context<'_>) -> Poll<Option<LogEntry>> {
        if self.ready.as_slice().is_empty() {
            ready!(self.poll_ready(cx));
        }
        let Some(entry) = self.ready.next() else {
            return Poll::Ready(None);
        };
        self.seq = seq_after(self.seq, &entry);
        if is_last(&entry) {
            self.done = true;
            // Drops entries after the last one.
            self.ready = vec::IntoIter::default();
        }
        Poll::Ready(Some(entry))
    }

    /// Waits until there are entries, or the source has ended.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while !self.done && self.ready.as_slice().is_empty() {
            if let Some(before) = self.before.last_mut() {
                match ready!(before.as_mut().poll_next(cx)) {
                    Some(Ok(entries)) => self.ready = entries.into_iter(),
                    Some(Err(error)) => {
                        self.before.clear();
                        self.source = Source::Nothing;
                        self.ready = refusal(error).into_iter();
                    }
                    None => drop(self.before.pop()),
                }
                continue;
            }
            let more = match &mut self.source {
                Source::One(entries) => ready!(entries.as_mut().poll_next(cx)).map(|it| vec![it]),
                Source::Many(batches) => ready!(batches.as_mut().poll_next(cx)),
                Source::Nothing => None,
            };
            self.done = more.is_none();
            self.ready = more.unwrap_or_default().into_iter();
        }
        Poll::Ready(())
    }

    /// Stops the run: first gracefully, then by force. Before the first poll, nothing is ever started. The stream
    /// still ends with `done`. Calling it twice, or after the end, has no effect.
    pub fn abort(&self) {
        self.abort.abort();
    }

    /// Returns a handle that can stop the run from elsewhere.
    pub fn abort_handle(&self) -> AbortHandle {
        self.abort.clone()
    }

    /// Drains the stream and returns the result of the run.
    pub async fn result(mut self) -> RunResult {
        while let Some(event) = self.next().await {
            if let AgentEvent::Done(done) = event {
                return *done.result;
            }
        }
        // Reached only if `next` already returned `done`, or if the runtime violates the grammar.
        RunResult {
            status: RunStatus::Failed,
            errors: vec![AgentError::new(
                ErrorCode::StreamEndedEarly,
                ErrorKind::Internal,
                "the stream had no `done` left to read",
            )],
            ..RunResult::default()
        }
    }
}

/// Reads the stream to its end, as [`result`](EventStream::result) does.
///
/// ```
/// # use teamster_core::{AgentRuntime, ExecuteParams, RunResult, SharedRuntime};
/// async fn ask(runtime: SharedRuntime) -> RunResult {
///     runtime.execute(ExecuteParams::new("Which tests are flaky?")).await
/// }
/// ```
impl IntoFuture for EventStream {
    type Output = RunResult;
    type IntoFuture = Pin<Box<dyn Future<Output = RunResult> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.result())
    }
}

impl Stream for EventStream {
    type Item = AgentEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        self.poll_event(cx)
    }
}

fn is_last(entry: &LogEntry) -> bool {
    matches!(entry.event, AgentEvent::Done(_))
}

fn refusal(error: AgentError) -> Vec<LogEntry> {
    RunAssembler::refuse(error).map(Into::into).into()
}

/// Returns the number of an entry after `last`: its own if that is higher, else the next one.
fn seq_after(last: u64, entry: &LogEntry) -> u64 {
    entry.seq.max(last + 1)
}

/// Sets the number of an entry, and its time if it has none. `now_ms` caches the current time.
fn number(entry: &mut LogEntry, seq: u64, now_ms: &mut u64) {
    entry.seq = seq;
    if entry.at_ms == 0 {
        if *now_ms == 0 {
            *now_ms = epoch_ms();
        }
        entry.at_ms = *now_ms;
    }
}

pin_project! {
    /// Adapter from a stream of events to a stream of entries.
    struct OfEvents<S> {
        #[pin]
        events: S,
    }
}

impl<S: Stream<Item: Into<LogEntry>>> Stream for OfEvents<S> {
    type Item = LogEntry;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<LogEntry>> {
        let next = self.project().events.poll_next(cx);
        next.map(|event| event.map(Into::into))
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        if !self.done {
            self.abort.abort();
        }
    }
}

crate::debug_fields!(EventStream |it| { done: it.done, aborted: it.abort.is_aborted() });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Done, NoticeLevel, NoticeSource};

    fn stream(abort: AbortHandle) -> EventStream {
        EventStream::new(
            async_stream::stream! {
                yield AgentEvent::Done(Done { result: Box::new(RunResult { text: "x".into(), ..RunResult::default() }) });
                yield AgentEvent::error(AgentError::invalid_params("after the end"));
            },
            abort,
        )
    }

    #[tokio::test]
    async fn stream_ends_with_done() {
        let mut events = stream(AbortHandle::default());
        assert_eq!(events.next().await.unwrap().type_name(), "done");
        assert_eq!(events.next().await, None);
        assert_eq!(events.result().await.errors.len(), 1);
    }

    #[tokio::test]
    async fn batches_are_numbered_as_single_events_and_end_with_done() {
        let notice = || AgentEvent::notice(NoticeLevel::Info, NoticeSource::Runtime, "x");
        let done = || AgentEvent::Done(Done::new(RunResult::default()));
        let batches = async_stream::stream! {
            yield vec![notice().into(), notice().into()];
            yield Vec::new();
            yield vec![notice().into(), done().into(), notice().into()];
        };
        let mut stream = EventStream::of_batches(batches, AbortHandle::default());
        let first = stream.next_entry().await.unwrap();
        assert_eq!(first.seq, 1);
        let rest = stream.next_batch().await;
        assert_eq!(rest.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [2]);
        let last = stream.next_batch().await;
        let names: Vec<_> = last.iter().map(|e| (e.seq, e.event.type_name())).collect();
        assert_eq!(names, [(3, "notice"), (4, "done")]);
        assert!(last.iter().all(|entry| entry.at_ms > 0));
        assert_eq!(stream.next_batch().await, []);
        assert_eq!(stream.next().await, None);

        let batches = async_stream::stream! {
            yield vec![done().into(), notice().into()];
        };
        let mut stream = EventStream::of_batches(batches, AbortHandle::default());
        assert_eq!(stream.next().await, Some(done()));
        assert_eq!(stream.next().await, None);
    }

    #[tokio::test]
    async fn an_entry_keeps_its_number() {
        let entry = |seq| {
            let notice = AgentEvent::notice(NoticeLevel::Info, NoticeSource::Runtime, "x");
            LogEntry {
                seq,
                ..notice.into()
            }
        };
        let batches = async_stream::stream! {
            yield vec![entry(3), entry(4), entry(0), entry(9), entry(2)];
            yield vec![entry(20), AgentEvent::Done(Done::new(RunResult::default())).into()];
        };
        let mut stream = EventStream::of_batches(batches, AbortHandle::default());
        stream.next().await;
        let mut numbers = vec![stream.next_entry().await.unwrap().seq];
        for _ in 0..2 {
            numbers.extend(stream.next_batch().await.iter().map(|entry| entry.seq));
        }
        assert_eq!(numbers, [4, 5, 9, 10, 20, 21]);
    }

    #[tokio::test]
    async fn entries_before_a_run_are_numbered_and_can_refuse_it() {
        fn notice(text: &str) -> AgentEvent {
            AgentEvent::notice(NoticeLevel::Info, NoticeSource::Runtime, text)
        }
        fn never() -> AgentEvent {
            panic!("a refused run was started")
        }
        let before = |text| async_stream::stream! { yield Ok(vec![notice(text).into()]); };
        let events = stream(AbortHandle::default());
        let mut events = events.after(before("b")).after(before("a"));
        for (seq, text) in [(1, "a"), (2, "b")] {
            let entry = events.next_entry().await.unwrap();
            assert_eq!((entry.seq, entry.event), (seq, notice(text)));
        }
        let end = events.next_entry().await.unwrap();
        assert_eq!((end.seq, end.event.type_name()), (3, "done"));

        let error = AgentError::invalid_params("no");
        let refusal = error.clone();
        let refusal = async_stream::stream! {
            yield Ok(vec![notice("a").into()]);
            yield Err(refusal);
        };
        let events = async_stream::stream! { yield never(); };
        let events = EventStream::new(events, AbortHandle::default());
        let result = events.after(before("b")).after(refusal).result().await;
        assert_eq!(result.errors, std::slice::from_ref(&error));
        assert_eq!(EventStream::refused(error).result().await, result);
    }

    #[tokio::test]
    async fn result_drains() {
        assert_eq!(stream(AbortHandle::default()).result().await.text, "x");
        assert_eq!(stream(AbortHandle::default()).await.text, "x");
    }

    #[tokio::test]
    async fn dropping_aborts_only_before_the_end() {
        let early = AbortHandle::default();
        drop(stream(early.clone()));
        assert!(early.is_aborted());

        let late = AbortHandle::default();
        let mut events = stream(late.clone());
        events.next().await;
        drop(events);
        assert!(!late.is_aborted());
    }
}
