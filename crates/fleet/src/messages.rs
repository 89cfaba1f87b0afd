//! Messages of a stream, in their order.

use std::collections::HashMap;
use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use async_nats::jetstream::consumer::{Consumer, DeliverPolicy};
use async_nats::jetstream::stream;
use bytes::Bytes;
use teamster_api::ServiceError;
use teamster_core::sync::lock;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};

use crate::records::{CATCHES_UP, PATIENCE, PAUSE, is_copy, next};
use crate::{Fleet, setup};

/// Number of times that messages which came meanwhile are read too. Where others are stored without a pause, each time
/// finds some, and by then no key is missing.
const LOOKS: u32 = 8;
/// Time without a message after which the rest is counted again.
const SILENCE: Duration = Duration::from_secs(5);

/// A consumer that goes with this.
struct OwnConsumer(Option<(stream::Stream<()>, String)>);

impl Drop for OwnConsumer {
    /// Removes the consumer, of which a server has a limited number. It would go by itself after minutes.
    fn drop(&mut self) {
        if let (Some((stream, name)), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(async move { stream.delete_consumer(&name).await });
        }
    }
}

impl Fleet {
    /// Reads messages of a stream in their order, from those that are there on.
    pub(crate) async fn messages(
        &self,
        stream: &str,
        subjects: &str,
        from: DeliverPolicy,
        headers_only: bool,
    ) -> Result<Messages, ServiceError> {
        let made = Box::pin(self.consumer(stream, subjects, from, headers_only));
        let (consumer, own) = made.await?;
        let pending = consumer.cached_info().num_pending;
        let read = consumer.messages().await;
        let read = read.map_err(|error| self.failed(subjects, error))?;
        Ok(Messages {
            fleet: self.clone(),
            stream: stream.to_owned(),
            subjects: subjects.to_owned(),
            read,
            pending,
            newest: 0,
            looks: 0,
            _own: own,
        })
    }

    async fn consumer(
        &self,
        stream: &str,
        subjects: &str,
        from: DeliverPolicy,
        headers_only: bool,
    ) -> Result<(Consumer<OrderedConfig>, OwnConsumer), ServiceError> {
        let handle = self.stream(stream).await?;
        // Its name is a part of the subject that permissions are about.
        let name = format!("r{}", uuid::Uuid::new_v4().simple());
        let config = OrderedConfig {
            name: Some(name.clone()),
            filter_subject: subjects.to_owned(),
            deliver_policy: from,
            headers_only,
            ..OrderedConfig::default()
        };
        let made = self.unless_refused(subjects, handle.create_consumer(config));
        let consumer = made.await?.map_err(|error| {
            if error.to_string().contains("stream not found") {
                return setup::not_made(stream);
            }
            self.failed(subjects, error)
        })?;
        Ok((consumer, OwnConsumer(Some((handle, name)))))
    }

    /// Returns what is read from the last message of each of these subjects.
    pub(crate) async fn last_of_each<T>(
        &self,
        stream: &str,
        subjects: &str,
        headers_only: bool,
        read: impl Fn(&Message) -> Option<T>,
    ) -> Result<Vec<T>, ServiceError> {
        let from = DeliverPolicy::LastPerSubject;
        let mut messages = self.messages(stream, subjects, from, headers_only).await?;
        messages.last_of_each(read).await
    }
}

pub(crate) struct Messages {
    fleet: Fleet,
    stream: String,
    subjects: String,
    read: Ordered,
    /// Messages that were there already and were not read yet.
    pub(crate) pending: u64,
    /// The number of the last one that was read.
    newest: u64,
    looks: u32,
    _own: OwnConsumer,
}

impl Messages {
    /// Waits for the next message. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Option<Message>, ServiceError> {
        match next(&mut self.read).await {
            Some(Ok(mut message)) => {
                let info = message.info().ok();
                let info = info.map(|info| (info.stream_sequence, info.pending));
                self.newest = info.map_or(self.newest, |(number, _)| number);
                self.pending = left(self.pending, info.map(|(_, pending)| pending));
                let headers = message.headers.as_ref();
                if headers.is_some_and(|headers| is_copy(headers, &message.subject)) {
                    (message.message.headers, message.message.payload) = (None, Bytes::new());
                }
                Ok(Some(message))
            }
            Some(Err(error)) => {
                let message = format!("the fleet's server does not answer: {error}");
                Err(ServiceError::unreachable(message))
            }
            None => Ok(None),
        }
    }

    /// Waits for the next of those that are there; `None` after the last of them. Of a key that is stored again meanwhile,
    /// several may come.
    ///
    /// Fails if none comes for a minute.
    pub(crate) async fn next_pending(&mut self) -> Result<Option<Message>, ServiceError> {
        let until = Instant::now() + PATIENCE;
        loop {
            if self.pending == 0 && !self.has_more().await? {
                return Ok(None);
            }
            match timeout(SILENCE, self.next()).await {
                Ok(Ok(Some(message))) => return Ok(Some(message)),
                Ok(Err(error)) => return Err(error),
                // They may have aged out since they were counted.
                Err(_) if Instant::now() < until => self.pending = self.count().await?,
                Ok(Ok(None)) | Err(_) => {
                    let message = "the fleet's server does not send all that it has: try again";
                    return Err(ServiceError::unreachable(message));
                }
            }
        }
    }

    /// Finds out whether there are more messages than were read.
    ///
    /// A message that replaces another one is counted a moment after that one is no longer: what the server reports with
    /// each message may be too low, and then the key is missing. What replaces it has a higher number than all that were
    /// read.
    async fn has_more(&mut self) -> Result<bool, ServiceError> {
        let until = Instant::now() + CATCHES_UP;
        // Without any that was read, it was just counted.
        let mut is_counted = self.newest == 0;
        while self.looks < LOOKS {
            if !std::mem::take(&mut is_counted) {
                self.pending = self.count().await?;
            }
            if self.pending > 0 {
                self.looks += 1;
                return Ok(true);
            }
            // A copy of the stream may not have what this process itself has stored.
            let prefix = self.subjects.trim_end_matches(['>', '*']);
            let is_behind =
                self.fleet.is_cluster() && lock(&self.fleet.written).has_newer(prefix, self.newest);
            if !is_behind {
                return Ok(false);
            }
            if Instant::now() > until {
                // It is gone, or the server has an older state. The next read does not wait for it.
                lock(&self.fleet.written).forget_newer(prefix, self.newest);
                return Ok(false);
            }
            sleep(PAUSE).await;
        }
        Ok(false)
    }

    /// Returns how many messages there are after the last one that was read.
    async fn count(&mut self) -> Result<u64, ServiceError> {
        let from = DeliverPolicy::ByStartSequence {
            start_sequence: self.newest + 1,
        };
        let (stream, subjects) = (&self.stream, &self.subjects);
        let made = Box::pin(self.fleet.consumer(stream, subjects, from, true));
        let (consumer, _own) = made.await?;
        Ok(consumer.cached_info().num_pending)
    }

    /// Reads the last message of each subject, as far as they are there, in their order.
    pub(crate) async fn last_of_each<T>(
        &mut self,
        read: impl Fn(&Message) -> Option<T>,
    ) -> Result<Vec<T>, ServiceError> {
        let mut found = HashMap::new();
        while let Some(message) = self.next_pending().await? {
            found.insert(message.subject.to_string(), (self.newest, read(&message)));
        }
        let mut found: Vec<_> = found.into_values().collect();
        found.sort_unstable_by_key(|(number, _)| *number);
        Ok(found.into_iter().filter_map(|(_, read)| read).collect())
    }
}

/// Returns how many of the counted messages are left after one more was read, with which the server reports how many it
/// has: those that have aged out since then do not come.
fn left(pending: u64, reported: Option<u64>) -> u64 {
    let left = pending.saturating_sub(1);
    reported.map_or(left, |reported| left.min(reported))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_aged_out_are_not_waited_for() {
        assert_eq!(left(5, Some(4)), 4);
        assert_eq!(left(5, Some(0)), 0);
        // What came later is not waited for either.
        assert_eq!(left(5, Some(9)), 4);
        assert_eq!(left(5, None), 4);
        assert_eq!(left(0, Some(3)), 0);
    }
}
