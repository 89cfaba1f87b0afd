//! The copy of a log as a stream of its entries.

use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_stream::try_stream;
use bytes::Bytes;
use futures_core::stream::BoxStream;
use serde::{Deserialize, Serialize};
use teamster_api::{LifecycleEntry, LogLine, RunEvent, RunLogEntry, ServiceError};
use teamster_core::sync::lock;
use teamster_core::time::epoch_ms;
use teamster_core::{
    AgentError, AgentEvent, Done, ErrorCode, ErrorKind, LogEntry, RunResult, RunStatus,
};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::Fleet;
use crate::frame::{Frame, Frames};
use crate::messages::Messages;
use crate::names::{LOG, RUNS, RunKey};
use crate::protocol::State;
use crate::record::Record;
use crate::records::{next, not_found, record_of};

/// Interval in which a reader reports that it is there.
pub(crate) const WATCH_EVERY: Duration = Duration::from_secs(5);

/// Pause before a request to a server that does not answer is repeated.
const AGAIN: Duration = Duration::from_millis(500);

/// Tells the machine of a run that its log is read now, until this is dropped.
struct Watch(JoinHandle<()>);

impl Watch {
    fn begin(fleet: &Fleet, key: &RunKey) -> Self {
        let (client, subject) = (fleet.client.clone(), key.watch());
        Self(tokio::spawn(async move {
            loop {
                // Without it, entries arrive a little later.
                let _ = client.publish(subject.clone(), Bytes::new()).await;
                sleep(WATCH_EVERY).await;
            }
        }))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Time in which the next message of the log of an ended run must arrive. Servers discard messages one by one: the one that
/// is to give the last message may have what the one that is read has not.
const ARRIVES: Duration = Duration::from_secs(10);

/// Time for which the record of a run is awaited that has its end in the log: a moment, unless a worker was killed there.
pub(crate) const SETTLES: Duration = Duration::from_secs(20);

/// What has come of a run, or an entry of it.
enum News {
    Log(Option<Message>),
    Record(Option<Message>),
}

/// The readers of one run's log and record.
struct Readers {
    log: Messages,
    record: Messages,
}

impl Readers {
    async fn open(fleet: &Fleet, key: &RunKey) -> Result<Self, ServiceError> {
        Ok(Self {
            log: fleet
                .messages(LOG, &key.log(), DeliverPolicy::All, false)
                .await?,
            record: fleet
                .messages(RUNS, &key.record(), DeliverPolicy::LastPerSubject, false)
                .await?,
        })
    }

    async fn next(&mut self) -> Result<News, ServiceError> {
        tokio::select! {
            // Entries first: the record has its end after the log has.
            biased;
            message = self.log.next() => Ok(News::Log(message?)),
            message = self.record.next() => Ok(News::Record(message?)),
        }
    }
}

/// Repeats a request while the server does not answer: an open log waits, and continues.
async fn patiently<T, F: Future<Output = Result<T, ServiceError>>>(
    request: impl Fn() -> F,
) -> Result<T, ServiceError> {
    loop {
        match request().await {
            Err(error) if error.retryable => sleep(AGAIN).await,
            done => return done,
        }
    }
}

/// Returns the entries of an ended run from one number to before another, as far as its whole log is kept.
fn kept(
    fleet: Fleet,
    key: RunKey,
    from: u64,
    before: u64,
) -> BoxStream<'static, Result<LogLine, ServiceError>> {
    Box::pin(try_stream! {
        let mut from = from;
        loop {
            let record = patiently(|| fleet.find(&key)).await?.1;
            let Some(files) = record.results().filter(|_| record.has_whole_log()) else {
                return;
            };
            let mut lines = fleet.whole_log(&key, files);
            loop {
                match next(&mut lines).await {
                    Some(Ok(line)) if line.seq() < from => {}
                    Some(Ok(line)) if line.seq() < before => {
                        from = line.seq().saturating_add(1);
                        yield line;
                    }
                    Some(Err(error)) if error.retryable => break,
                    Some(Err(error)) => Err(error)?,
                    Some(Ok(_)) | None => return,
                }
            }
            sleep(AGAIN).await;
        }
    })
}

/// Follows the log of a run after the entry with this number, to its last one, which comes once the run has ended for all, and
/// reports to its machine that it is read.
pub(crate) fn follow(
    fleet: Fleet,
    key: RunKey,
    after: u64,
) -> BoxStream<'static, Result<LogLine, ServiceError>> {
    Box::pin(try_stream! {
        let (_, record) = fleet.find(&key).await?;
        let is_live = !record.state.is_final();
        let _watch = is_live.then(|| Watch::begin(&fleet, &key));
        let mut lines = lines(fleet.clone(), key.clone(), after);
        while let Some(line) = next(&mut lines).await {
            let line = line?;
            if is_live && line.is_end() {
                // Without it, the run is shown as live for a moment.
                let _ = timeout(SETTLES, until_ended(&fleet, &key)).await;
            }
            yield line;
        }
    })
}

/// Waits until the record has the end, which the log has before: who has read that finds a run that has ended.
async fn until_ended(fleet: &Fleet, key: &RunKey) -> Result<(), ServiceError> {
    let subject = key.record();
    let mut records = fleet
        .messages(RUNS, &subject, DeliverPolicy::LastPerSubject, false)
        .await?;
    while let Some(message) = records.next().await? {
        let Some((_, found)) = record_of(&message) else {
            continue;
        };
        if found.record.is_none_or(|record| record.state.is_final()) {
            // A copy that is behind is waited for.
            lock(&fleet.written).add(&subject, found.seen.revision);
            break;
        }
    }
    Ok(())
}

/// Returns the entries of a run's log after the one with this number, to its last one.
pub(crate) fn lines(
    fleet: Fleet,
    key: RunKey,
    after: u64,
) -> BoxStream<'static, Result<LogLine, ServiceError>> {
    Box::pin(try_stream! {
        let open = || Readers::open(&fleet, &key);
        let mut readers = open().await?;
        let mut frames = Frames::default();
        // The number of the next entry.
        let mut from = after.saturating_add(1);
        // That of an ended run: the next message of its log must be there in time, and its reader may take any time.
        let mut ended: Option<Box<Record>> = None;
        // The log will have no end; and the next message was not there in time, since the last entry.
        let (mut is_over, mut is_silent) = (false, false);
        loop {
            let lines = if is_over
                && readers.log.pending == 0
                && let Some(record) = ended.take()
            {
                let mut whole = kept(fleet.clone(), key.clone(), from, u64::MAX);
                while let Some(line) = next(&mut whole).await {
                    let line = line?;
                    from = line.seq().saturating_add(1);
                    let is_end = line.is_end();
                    yield line;
                    if is_end {
                        return;
                    }
                }
                end_of(&record, &key.run, from)
            } else {
                let news = match &ended {
                    Some(_) => timeout(ARRIVES, readers.next()).await,
                    None => Ok(readers.next().await),
                };
                let Ok(news) = news else {
                    // The second time, it is not the connection.
                    let is_again = std::mem::replace(&mut is_silent, true);
                    readers = patiently(open).await?;
                    frames = Frames::default();
                    is_over |= is_again || readers.log.pending == 0;
                    if is_again {
                        readers.log.pending = 0;
                    }
                    continue;
                };
                match news {
                    Ok(News::Log(Some(message))) => {
                        let headers = message.headers.clone().unwrap_or_default();
                        match Frame::read(&headers, &message.payload) {
                            Some(frame) => frames.add(frame, &key.run)?,
                            None => continue,
                        }
                    }
                    Ok(News::Record(Some(message))) => {
                        let Some((_, found)) = record_of(&message) else {
                            continue;
                        };
                        let Some(record) = found.record else {
                            Err(not_found(&key.run))?;
                            return;
                        };
                        if record.state.is_final() {
                            // Of an ended run, the last entry is on its way. What the log has goes first.
                            is_over |= record.state != State::Ended
                                || patiently(|| fleet.log_tail(&key)).await?.is_none();
                            ended = Some(Box::new(record));
                        }
                        continue;
                    }
                    Err(error) if !error.retryable => {
                        Err(error)?;
                        return;
                    }
                    // The connection is made again.
                    Ok(News::Log(None) | News::Record(None)) | Err(_) => {
                        sleep(AGAIN).await;
                        readers = patiently(open).await?;
                        frames = Frames::default();
                        continue;
                    }
                }
            };
            for line in lines {
                if line.seq() < from {
                    if line.is_end() {
                        return;
                    }
                    continue;
                }
                // The entries before have aged out.
                if line.seq() > from {
                    let mut earlier = kept(fleet.clone(), key.clone(), from, line.seq());
                    while let Some(earlier) = next(&mut earlier).await {
                        let earlier = earlier?;
                        from = earlier.seq().saturating_add(1);
                        yield earlier;
                    }
                }
                if line.seq() > from {
                    yield reset(line.seq() - 1, &key.run);
                }
                from = line.seq().saturating_add(1);
                is_silent = false;
                let is_end = line.is_end();
                yield line;
                if is_end {
                    return;
                }
            }
        }
    })
}

fn reset(seq: u64, run: &str) -> LogLine {
    let reset = LifecycleEntry::new(RunEvent::reset(run.into()));
    LogLine::of_entry(reset.seq(seq).at_ms(epoch_ms()).into(), run)
}

/// The last entry of a machine's log, without its number and its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct End {
    /// By the clock of the machine, as in its log.
    pub(crate) at_ms: u64,
    pub(crate) attempt: u32,
}

impl End {
    /// Returns what a line has; `None` if it is not the last one of a log.
    pub(crate) fn of(line: &LogLine) -> Option<Self> {
        match line.entry() {
            Ok(RunLogEntry::Agent(entry)) if line.is_end() => Some(Self {
                at_ms: entry.at_ms,
                attempt: entry.attempt,
            }),
            _ => None,
        }
    }
}

/// Returns the last entry of a run whose log is not there: it has aged out, or there never was one.
pub(crate) fn end_of(record: &Record, run: &str, next: u64) -> Vec<LogLine> {
    // A reader that has it gets no second one.
    let seq = match record.summary.as_ref().map_or(0, |summary| summary.seq) {
        0 if record.state == State::Cancelled => 1,
        0 => next,
        known => known,
    };
    let own = || {
        record
            .own_result(run)
            .unwrap_or_else(|| not_kept(record, run))
    };
    let result = record.result.clone().unwrap_or_else(own);
    let at = record.times.ended.unwrap_or_default();
    let mut entry = LogEntry::new(seq, at, AgentEvent::Done(Done::new(result)));
    if let Some(end) = record.end {
        (entry.at_ms, entry.attempt) = (end.at_ms, end.attempt);
    }
    entry.run_id = Some(run.into());
    vec![LogLine::of_entry(RunLogEntry::Agent(entry), run)]
}

/// Returns the result of an ended run that was too long for its record, and is gone with its log.
fn not_kept(record: &Record, run: &str) -> Box<RunResult> {
    let summary = record.summary.as_ref();
    let status = summary.and_then(|summary| summary.status);
    let mut result = RunResult::default().status(status.unwrap_or(RunStatus::Failed));
    let message =
        format!("the result of run {run} is not kept any more: it may still be on its machine");
    let error = AgentError::new(ErrorCode::Io, ErrorKind::Internal, message);
    result.errors.push(error);
    Box::new(result)
}
