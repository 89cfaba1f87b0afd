//! The headings of records: what is known of runs without their contents.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::DeliverPolicy;
use teamster_api::ServiceError;
use tokio::time::Instant;

use crate::Fleet;
use crate::messages::Messages;
use crate::names::{HOST_SUBJECTS, RUNS, RunKey, WORK_SUBJECTS};
use crate::protocol::{Claim, Head, State};

/// The subjects of all records.
pub(crate) const ALL: &str = "$KV.tm_runs.>";
/// Time after which all headings are read again: the server may have lost a write, or a record without a message.
const READ_AGAIN: Duration = Duration::from_hours(1);

/// The header of a record, for those who do not need its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Heading {
    pub(crate) head: Head,
    /// The subject of the run's hints.
    pub(crate) queue: String,
    /// Time at which the run was submitted, in milliseconds since the Unix epoch.
    pub(crate) queued: u64,
    pub(crate) settled: bool,
}

impl Heading {
    /// Reads the header of this run's record. Returns `None` if it is not one that a submitter or a worker writes.
    pub(crate) fn read(key: &RunKey, headers: &HeaderMap) -> Option<Self> {
        let text = |name: &str| headers.get(name).map(async_nats::HeaderValue::as_str);
        let state = serde_json::from_value(text("Tm-State")?.into()).ok()?;
        let claim = match (text("Tm-Instance"), text("Tm-Nonce")) {
            (Some(instance), Some(nonce)) => Some(Claim {
                instance: instance.parse().ok()?,
                nonce: nonce.parse().ok()?,
            }),
            _ => None,
        };
        // The owner of the run chooses it, and a worker may publish more than that user.
        let is_queue = |queue: &&str| is_queue(queue, key);
        Some(Self {
            head: Head { state, claim },
            queue: text("Tm-Queue").filter(is_queue)?.to_owned(),
            queued: text("Tm-Queued")?.parse().ok()?,
            settled: text("Tm-Settled").is_some(),
        })
    }

    /// Returns whether nothing is left to do about the run.
    pub(crate) fn is_over(&self) -> bool {
        self.head.state.is_final() && (self.head.state != State::Lost || self.settled)
    }

    /// Returns the pool for which the run waits, or else the machine.
    pub(crate) fn location(&self) -> (Option<String>, Option<String>) {
        let name = |prefix| {
            let rest: &str = self.queue.strip_prefix(prefix)?;
            Some(rest.split('.').next()?.to_owned())
        };
        (name(WORK_SUBJECTS), name(HOST_SUBJECTS))
    }
}

/// Returns whether hints of a run may have this subject: one of a pool, or its own one for a machine.
fn is_queue(subject: &str, key: &RunKey) -> bool {
    let is_token = |token: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=".contains(&byte);
        !token.is_empty() && token.bytes().all(is_plain)
    };
    if let Some(location) = subject.strip_prefix(WORK_SUBJECTS) {
        return location.split('.').count() == 3 && location.split('.').all(is_token);
    }
    // That of another run would replace the hint of that one.
    let location = subject.strip_prefix(HOST_SUBJECTS);
    let location = location.and_then(|location| location.split_once('.'));
    location.is_some_and(|(machine, run)| is_token(machine) && run == key.key())
}

/// The headings of records. They are read once, and then kept up to date by what changes: a record that is over costs nothing
/// more.
pub(crate) struct Headings {
    messages: Messages,
    live: HashMap<RunKey, (u64, Heading)>,
    /// The states of the others, by a number of their keys. Of two keys with the same 64 bits, one is not counted.
    over: HashMap<u64, State>,
    hasher: RandomState,
    read: Instant,
}

impl Headings {
    /// Reads the headings of these records, without their contents.
    pub(crate) async fn read(fleet: &Fleet, subjects: &str) -> Result<Self, ServiceError> {
        let from = DeliverPolicy::LastPerSubject;
        let mut headings = Self {
            messages: fleet.messages(RUNS, subjects, from, true).await?,
            live: HashMap::new(),
            over: HashMap::new(),
            hasher: RandomState::new(),
            read: Instant::now(),
        };
        while let Some(message) = headings.messages.next_pending().await? {
            headings.add(&message);
        }
        Ok(headings)
    }

    /// Waits for a change of a record. Cancel-safe. Fails if no more changes come: all must be read again.
    pub(crate) async fn follow(&mut self) -> Result<(), ServiceError> {
        let message = self.messages.next().await?.ok_or_else(|| {
            ServiceError::unreachable("the fleet's server has ended the stream of records")
        })?;
        self.add(&message);
        Ok(())
    }

    fn add(&mut self, message: &Message) {
        let (Some(key), Ok(info)) = (RunKey::of_record(&message.subject), message.info()) else {
            return;
        };
        let headers = message.headers.as_ref();
        let number = self.hasher.hash_one(&key);
        self.live.remove(&key);
        self.over.remove(&number);
        // A marker of one that was deleted has none.
        match headers.and_then(|headers| Heading::read(&key, headers)) {
            Some(heading) if heading.is_over() => {
                self.over.insert(number, heading.head.state);
            }
            Some(heading) => {
                self.live.insert(key, (info.stream_sequence, heading));
            }
            None => {}
        }
    }

    /// Returns the headings of the records that are not over, with their revisions.
    pub(crate) fn live(&self) -> impl Iterator<Item = (&RunKey, u64, &Heading)> {
        let live = self.live.iter();
        live.map(|(key, (revision, heading))| (key, *revision, heading))
    }

    /// Returns the states of those that are over.
    pub(crate) fn over(&self) -> impl Iterator<Item = State> {
        self.over.values().copied()
    }

    /// Returns since when they are kept up to date.
    pub(crate) fn age(&self) -> Duration {
        self.read.elapsed()
    }

    /// Returns whether all are to be read again.
    pub(crate) fn is_old(&self) -> bool {
        self.age() >= READ_AGAIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_names_a_queue_and_no_other_subject() {
        let queue = |subject: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("Tm-State", "queued");
            headers.insert("Tm-Queue", subject);
            headers.insert("Tm-Queued", "17");
            let key = RunKey::new("ann", "r.1");
            Heading::read(&key, &headers).map(|heading| (heading.location(), heading.queue))
        };
        let location = |pool: Option<&str>, machine: Option<&str>| {
            (pool.map(str::to_owned), machine.map(str::to_owned))
        };
        for (subject, expected) in [
            ("tm.work.default.claude.n", location(Some("default"), None)),
            ("tm.host.w1.ann.r=2E1", location(None, Some("w1"))),
        ] {
            assert_eq!(queue(subject), Some((expected, subject.to_owned())));
        }
        for subject in [
            "$KV.tm_runs.bob.r",
            "tm.log.bob.r",
            "$KV.tm_sessions.=fleet.salt",
            // Hints of other runs, and what is no subject.
            "tm.host.w1.bob.r",
            "tm.host.w1.ann.r",
            "tm.host.w1.bob.ann.r=2E1",
            "tm.host.w1",
            "tm.host.a b.ann.r=2E1",
            "tm.work.default.claude",
            "tm.work.default.claude.n.x",
            "tm.work.a b.claude.n",
            "tm.work.*.claude.n",
        ] {
            assert_eq!(queue(subject), None, "{subject}");
        }
    }
}
