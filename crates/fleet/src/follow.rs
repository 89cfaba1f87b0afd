//! The copy of a log as a stream of its entries.

use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_stream::try_stream;
use bytes::Bytes;
use futures_core::stream::BoxStream;
use teamster_api::{LogLine, RunLogEntry, ServiceError};
use teamster_core::time::epoch_ms;
use teamster_core::{AgentEvent, Done, LogEntry};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::Fleet;
use crate::frame::{Frame, Frames};
use crate::names::{LOG, RUNS, RunKey};
use crate::protocol::State;
use crate::record::Record;
use crate::records::{Messages, PAUSE, not_found, record_of};

/// Interval in which a reader reports that it is there.
pub(crate) const WATCH_EVERY: Duration = Duration::from_secs(5);

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

/// Follows the log of a run after the entry with this number, to its last one.
pub(crate) fn follow(
    fleet: Fleet,
    key: RunKey,
    after: u64,
) -> BoxStream<'static, Result<LogLine, ServiceError>> {
    Box::pin(try_stream! {
        let (_, record) = fleet.find(&key).await?;
        let _watch = (!record.state.is_final()).then(|| Watch::begin(&fleet, &key));
        let mut readers = Readers::open(&fleet, &key).await?;
        let mut frames = Frames::default();
        // The number of the next entry.
        let mut next = after + 1;
        'follow: loop {
            let lines = match readers.next().await {
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
                    if !record.state.is_final() {
                        continue;
                    }
                    let has_log = record.state == State::Ended
                        && fleet.log_tail(&key).await?.is_some();
                    // Of an ended run, the last entry is on its way.
                    if has_log {
                        continue;
                    }
                    // What the log has goes first.
                    let mut lines = Vec::new();
                    while readers.log.pending > 0 {
                        let Some(message) = readers.log.next().await? else { break };
                        let headers = message.headers.clone().unwrap_or_default();
                        if let Some(frame) = Frame::read(&headers, &message.payload) {
                            lines.extend(frames.add(frame, &key.run)?);
                        }
                    }
                    if lines.is_empty() {
                        lines = fleet.whole_log(&key).await?.unwrap_or_default();
                    }
                    let after = lines.last().map_or(next, |line: &LogLine| line.seq() + 1);
                    if !lines.last().is_some_and(LogLine::is_end) {
                        lines.extend(end_of(&record, &key.run, after.max(next)));
                    }
                    lines
                }
                // The connection is made again.
                Ok(News::Log(None) | News::Record(None)) => {
                    sleep(PAUSE).await;
                    readers = Readers::open(&fleet, &key).await?;
                    frames = Frames::default();
                    continue;
                }
                Err(error) if error.retryable => {
                    sleep(PAUSE * 5).await;
                    readers = Readers::open(&fleet, &key).await?;
                    frames = Frames::default();
                    continue;
                }
                Err(error) => {
                    Err(error)?;
                    return;
                }
            };
            for line in lines {
                if line.seq() < next {
                    if line.is_end() {
                        break 'follow;
                    }
                    continue;
                }
                // The entries before have aged out.
                if line.seq() > next {
                    for earlier in fleet.earlier(&key, next, line.seq()).await? {
                        next = earlier.seq() + 1;
                        yield earlier;
                    }
                }
                if line.seq() > next
                    && let Some(reset) = reset(line.seq() - 1, &key.run)
                {
                    yield reset;
                }
                next = line.seq() + 1;
                let is_end = line.is_end();
                yield line;
                if is_end {
                    break 'follow;
                }
            }
        }
    })
}

fn line(entry: &RunLogEntry, run: &str) -> Option<LogLine> {
    LogLine::from_json(serde_json::to_vec(entry).ok()?, run)
}

fn reset(seq: u64, run: &str) -> Option<LogLine> {
    line(&RunLogEntry::reset(seq, epoch_ms(), run.into()), run)
}

/// Returns the last entry of a run whose log is not there: it has aged out, or there never was one.
pub(crate) fn end_of(record: &Record, run: &str, next: u64) -> Vec<LogLine> {
    let known = record.summary.as_ref().map_or(0, |summary| summary.seq);
    let Some(result) = record.result.clone().or_else(|| record.own_result(run)) else {
        return Vec::new();
    };
    let at = record.times.ended.unwrap_or_default();
    let mut entry = LogEntry::new(known.max(next), at, AgentEvent::Done(Done::new(result)));
    entry.run_id = Some(run.into());
    line(&RunLogEntry::Agent(entry), run).into_iter().collect()
}
