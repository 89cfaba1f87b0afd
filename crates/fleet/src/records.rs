//! Reading and changing records.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::jetstream::stream::DirectGetErrorKind;
use async_nats::{HeaderMap, header};
use bytes::Bytes;
use futures_core::Stream;
use teamster_api::{ProblemCode, ServiceError};
use teamster_api::{RunSummary, ViewState};
use teamster_core::sync::lock;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::follow::{End, lines};
use crate::frame::Frame;
use crate::layout::{LOG_AGE, RECORD_AGE};
use crate::names::{LOG, RUNS, RunKey};
use crate::protocol::{Change, Seen, Settled, Tail};
use crate::record::Record;
use crate::{Fleet, setup};

/// Time for which a caller waits until a change is certain.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);
/// Pause before a request is repeated.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);
/// Time in which all copies of a stream have what was stored.
pub(crate) const CATCHES_UP: Duration = Duration::from_secs(2);
/// Time for which a deleted record's id cannot be used again: the log may be left, and its first message is the witness of a
/// start.
const MARKER_AGE: Duration = LOG_AGE;
/// A number that no message has.
const NEVER: u64 = i64::MAX.unsigned_abs();

/// A record as it was read, with all of it.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) seen: Seen,
    pub(crate) record: Option<Record>,
}

/// What has come of a change.
#[derive(Debug)]
pub(crate) enum Changed {
    Done,
    /// Another one was first.
    Another,
}

pub(crate) async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}

impl Fleet {
    /// Returns the last message of a subject, which may be an older one than the last: a copy of the stream answers that may
    /// be behind. What this process itself has stored is waited for.
    pub(crate) async fn last(
        &self,
        stream: &str,
        subject: &str,
    ) -> Result<Option<StreamMessage>, ServiceError> {
        let until = Instant::now() + CATCHES_UP;
        loop {
            let found = self.last_of_any(stream, subject).await?;
            let number = found.as_ref().map(|message| message.sequence);
            let Some(newer) = self.newer(subject, number) else {
                return Ok(found);
            };
            if Instant::now() > until {
                // It is gone, or the server has an older state. The next read does not wait for it.
                lock(&self.written).forget(subject, newer);
                return Ok(found);
            }
            sleep(PAUSE).await;
        }
    }

    /// The same, as the copy that answers has it.
    async fn last_of_any(
        &self,
        stream: &str,
        subject: &str,
    ) -> Result<Option<StreamMessage>, ServiceError> {
        let handle = self.stream(stream).await?;
        let asked = handle.direct_get_last_for_subject(subject);
        // Not the subject alone: this program may publish to it at this moment, and that may be refused.
        let request = format!("DIRECT.GET.{stream}.{subject}");
        match self.unless_refused(&request, asked).await? {
            Ok(mut message) => {
                if is_copy(&message.headers, &message.subject) {
                    (message.headers, message.payload) = (HeaderMap::new(), Bytes::new());
                }
                Ok(Some(message))
            }
            Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(None),
            // The stream has no leader at the moment, or there is none.
            Err(error) if error.to_string().contains("no responders") => {
                Err(match self.look_at(stream).await {
                    Ok(None) => setup::not_made(stream),
                    Err(absent) if absent.code == Some(ProblemCode::Unsupported) => absent,
                    _ => self.failed(&request, error),
                })
            }
            Err(error) => Err(self.failed(&request, error)),
        }
    }

    pub(crate) async fn read(&self, key: &RunKey) -> Result<Found, ServiceError> {
        let Some(message) = self.last(RUNS, &key.record()).await? else {
            return Ok(Found {
                seen: Seen::NOTHING,
                record: None,
            });
        };
        Ok(found(message.sequence, &message.headers, &message.payload))
    }

    /// Reads a record that must be there. A copy that answers and has nothing of it may be behind: then the leader is asked.
    pub(crate) async fn find(&self, key: &RunKey) -> Result<(Seen, Record), ServiceError> {
        let until = Instant::now() + CATCHES_UP;
        let mut may_ask = true;
        loop {
            let found = self.read(key).await?;
            if let Some(record) = found.record {
                return Ok((found.seen, record));
            }
            // Another program may have stored it a moment ago, and was answered.
            let is_missing = found.seen != Seen::NOTHING || !self.is_cluster();
            if is_missing || Instant::now() > until {
                return Err(not_found(&key.run));
            }
            if std::mem::take(&mut may_ask) {
                let record = key.record();
                let asked = timeout_at(until, self.leader_has_none(&record));
                if asked.await.unwrap_or_default() {
                    return Err(not_found(&key.run));
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// Returns whether the leader of a stream has no message of a subject; `false` if that is not certain, such as for a user
    /// who may only read.
    ///
    /// Permissions cannot tell whose message a request to the leader is about. A write can: one that expects what cannot be
    /// there is refused with the number of the newest message, and stores nothing.
    async fn leader_has_none(&self, subject: &str) -> bool {
        let message = PublishMessage::build().expected_last_subject_sequence(NEVER);
        let refused = self.try_publish(subject, message).await;
        refused.is_err_and(|error| has_none(&error))
    }

    /// Stores a record if its revision is the expected one. Returns the new revision; `None` if it was refused, or there
    /// was no answer.
    pub(crate) async fn store(&self, key: &RunKey, record: &Record, expected: u64) -> Option<u64> {
        let json = serde_json::to_vec(record).ok()?;
        let mut message = PublishMessage::build()
            .payload(json.into())
            .expected_last_subject_sequence(expected);
        for (name, value) in record.heading(key) {
            message = message.header(name, &*value);
        }
        if record.state.is_final() {
            message = message.ttl(RECORD_AGE);
        }
        self.publish(&key.record(), message).await
    }

    /// Publishes a message. Returns its number; `None` if it was refused, or there was no answer.
    pub(crate) async fn publish(&self, subject: &str, message: PublishMessage) -> Option<u64> {
        self.try_publish(subject, message).await.ok()
    }

    /// Publishes a message. Returns its number.
    pub(crate) async fn try_publish(
        &self,
        subject: &str,
        message: PublishMessage,
    ) -> Result<u64, PublishError> {
        let message = message.outbound_message(subject.to_owned());
        let headers = message.headers.unwrap_or_default();
        let sent = self
            .jetstream
            .publish_with_headers(message.subject, headers, message.payload);
        let stored = self.unless_refused(subject, async { sent.await?.await });
        // The caller asks for the refusal.
        let stored = stored.await;
        let stored = stored.unwrap_or_else(|_| Err(PublishErrorKind::TimedOut.into()))?;
        lock(&self.written).add(subject, stored.sequence);
        Ok(stored.sequence)
    }

    /// Makes a change of a record, with these other fields, until what has come of it is certain.
    pub(crate) async fn change(
        &self,
        key: &RunKey,
        mut change: Change,
        mut record: Record,
    ) -> Result<Changed, ServiceError> {
        let until = Instant::now() + PATIENCE;
        loop {
            let new = record.changed(change, self.now().await);
            if self.store(key, &new, change.expected).await.is_some() {
                return Ok(Changed::Done);
            }
            match self.read(key).await {
                Ok(found) => match change.settle(found.seen) {
                    Settled::Done(_) => return Ok(Changed::Done),
                    Settled::Another => return Ok(Changed::Another),
                    Settled::Again(again) => {
                        change = again;
                        record = record.replaced_by(found.record);
                    }
                },
                Err(error) if !error.retryable || Instant::now() > until => return Err(error),
                Err(_) => {}
            }
            if let Some(refusal) = self.refusal(&key.record()) {
                return Err(refusal);
            }
            if Instant::now() > until {
                return Err(self.failed(&key.record(), "the record cannot be changed"));
            }
            sleep(PAUSE).await;
        }
    }

    /// Publishes a hint that a run waits. Returns whether the queue has it. Fails if the queue is full.
    pub(crate) async fn hint(&self, subject: &str, key: &RunKey) -> Result<bool, ServiceError> {
        let message = PublishMessage::build().payload(key.key().into());
        match self.try_publish(subject, message).await {
            Ok(_) => Ok(true),
            Err(error) if error.to_string().contains("maximum messages exceeded") => {
                let message = "the fleet's queue is full: try again later, or add workers";
                Err(ServiceError::new(ProblemCode::OverQuota, message))
            }
            Err(_) => self.refusal(subject).map_or(Ok(false), Err),
        }
    }

    /// Deletes a record, if its revision is the expected one. Its id cannot be used for as long as a log is kept.
    pub(crate) async fn delete(&self, key: &RunKey, expected: u64) -> bool {
        let message = PublishMessage::build()
            .header("KV-Operation", "PURGE")
            .expected_last_subject_sequence(expected)
            .ttl(MARKER_AGE);
        self.publish(&key.record(), message).await.is_some()
    }

    /// Returns all records with these subjects, which no other one can follow.
    pub(crate) async fn records(
        &self,
        subjects: &str,
    ) -> Result<Vec<(RunKey, Found)>, ServiceError> {
        self.last_of_each(RUNS, subjects, false, record_of).await
    }

    /// Returns the record of a run with what its complete log tells of its end.
    pub(crate) async fn ended_by_log(
        &self,
        key: &RunKey,
        mut record: Record,
    ) -> Result<Record, ServiceError> {
        // A worker may not report that it reads a log.
        let mut log = lines(self.clone(), key.clone(), 0);
        let (mut seq, mut result, mut end) = (0, None, None);
        let read = async {
            while let Some(line) = next(&mut log).await {
                let line = line?;
                (seq, result, end) = (line.seq(), line.result(), End::of(&line));
            }
            Ok::<_, ServiceError>(())
        };
        // The log may just have aged out.
        let read = timeout(PATIENCE, read).await;
        read.map_err(|_| self.failed(&key.log(), "the log cannot be read to its end"))??;
        if let Some(result) = result {
            let mut summary = RunSummary::new(record.info(&key.run), ViewState::Ended);
            summary.seq = seq;
            summary.status = Some(result.status);
            summary.error = result.failure();
            summary.session_id = result.session_id.as_deref().map(str::to_owned);
            summary.usage = result.usage;
            summary.cost_usd = result.total_cost_usd;
            summary.cost_source = result.cost_source;
            summary.duration_ms = Some(result.duration_ms);
            summary.workspace.clone_from(&result.workspace);
            record.ended(summary, Some(result), end);
        }
        Ok(record)
    }

    /// Returns the newest message of a run's log.
    pub(crate) async fn log_tail(
        &self,
        key: &RunKey,
    ) -> Result<Option<StreamMessage>, ServiceError> {
        self.last(LOG, &key.log()).await
    }

    /// Returns what the newest message of a run's log tells; `None` if there is none, or it is no frame.
    pub(crate) async fn tail_of(&self, key: &RunKey) -> Result<Option<Tail>, ServiceError> {
        let last = self.log_tail(key).await?;
        Ok(last.and_then(|message| {
            let frame = Frame::read(&message.headers, &message.payload)?;
            Some(frame.tail(message.sequence))
        }))
    }
}

/// Reads the record in a message of the bucket.
pub(crate) fn record_of(message: &Message) -> Option<(RunKey, Found)> {
    let key = RunKey::of_record(&message.subject)?;
    let revision = message.info().ok()?.stream_sequence;
    let headers = message.headers.clone().unwrap_or_default();
    Some((key, found(revision, &headers, &message.payload)))
}

/// Returns whether a message is the copy of one with another subject. The server sends what a request wants to any subject,
/// also to one at which its sender may not publish, and a stream keeps it there. Nothing in it is read.
pub(crate) fn is_copy(headers: &HeaderMap, subject: &str) -> bool {
    let mut originals = headers.get_all(header::NATS_SUBJECT);
    originals.any(|original| original.as_str() != subject)
}

/// Returns whether a message of a bucket is the marker of a key that is gone.
pub(crate) fn is_marker(headers: Option<&HeaderMap>) -> bool {
    headers.is_some_and(|headers| {
        headers.get("KV-Operation").is_some() || headers.get("Nats-Marker-Reason").is_some()
    })
}

/// Returns whether a refusal of a write means that its subject has no message.
fn has_none(refused: &PublishError) -> bool {
    refused.to_string().contains("wrong last sequence: 0 ")
}

fn found(revision: u64, headers: &HeaderMap, payload: &[u8]) -> Found {
    let record: Option<Record> = (!is_marker(Some(headers)))
        .then(|| serde_json::from_slice(payload).ok())
        .flatten();
    Found {
        seen: Seen {
            revision,
            head: record.as_ref().map(Record::head),
            stop: record.as_ref().is_some_and(|record| record.stop.is_some()),
        },
        record,
    }
}

pub(crate) fn not_found(run: &str) -> ServiceError {
    let message = format!("no run \"{run}\"");
    ServiceError::new(ProblemCode::RunNotFound, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_number_of_no_message_means_that_there_is_none() {
        let refused = |code: u64, description: &str| {
            let error = json!({"code": 400, "err_code": code, "description": description});
            let error: async_nats::jetstream::Error = serde_json::from_value(error).unwrap();
            has_none(&PublishError::with_source(
                PublishErrorKind::WrongLastSequence,
                error,
            ))
        };
        // Made by hand, after the server's errors.
        assert!(refused(10071, "wrong last sequence: 0"));
        assert!(!refused(10071, "wrong last sequence: 10"));
        // Another write is under way.
        assert!(!refused(10164, "wrong last sequence"));
        assert!(!refused(10077, "maximum bytes exceeded"));
        assert!(!has_none(&PublishErrorKind::TimedOut.into()));
    }
}
