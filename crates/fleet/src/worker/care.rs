//! Repair of what killed workers and submitters have left. One worker at a time does it for all.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::RawMessageErrorKind;
use bytes::Bytes;
use teamster_api::ServiceError;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Shared;
use crate::Fleet;
use crate::follow::end_of;
use crate::frame::Frame;
use crate::headings::{ALL, Heading, Headings};
use crate::names::{HOST, RunKey, WORK, WORKERS};
use crate::protocol::{Care, Known, Seen, State, Tag, care};
use crate::record::Record;
use crate::records::{Changed, next};
use crate::runs::Full;

/// Key of the right to repair. No worker can have this name.
const RIGHT: &str = "$KV.tm_workers.=care";
/// Pause between two passes, unless a test sets another one.
pub(super) const EVERY: Duration = Duration::from_secs(10);
/// Time for which one worker has the right. It is renewed before it is over: another one would read all headings first. It is
/// shorter than the time after which a worker is absent, so a killed one delays repairs by a few seconds at most.
const TERM: Duration = Duration::from_secs(20);
/// Time for which a queued record must be the same until the hints of its queue are read: most are taken before.
const QUIET: Duration = Duration::from_secs(30);
/// Time after which the hints of a queue are read that has enough of them: some may be of no run, and one be missing.
const READS_ALL: Duration = Duration::from_mins(5);
/// The shortest time between two reads of all headings because one was not the newest.
const READ_PAUSE: Duration = Duration::from_mins(1);

pub(super) async fn keep_caring(shared: Arc<Shared>) {
    let mut waiting = Waiting::default();
    loop {
        // The next one may succeed.
        if let Err(error) = pass(&shared, &mut waiting).await
            && !error.retryable
        {
            (shared.on_notice)(format!("runs cannot be repaired: {error}"));
        }
        waiting.rest(shared.repairs_every).await;
    }
}

/// What this process has seen of runs that wait.
#[derive(Default)]
struct Waiting {
    /// The records, once they were read.
    headings: Option<Headings>,
    /// Since when it has seen queued records, with their revisions.
    records: HashMap<RunKey, (u64, Instant)>,
    /// When it has read the hints of queues whose records are quiet, or has first seen that they are.
    read: HashMap<String, Instant>,
}

impl Waiting {
    /// Waits for this time. What changes meanwhile is read.
    async fn rest(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while let Some(headings) = &mut self.headings {
            match timeout_at(until, headings.follow()).await {
                Ok(Ok(())) => {}
                // They are read again.
                Ok(Err(_)) => self.headings = None,
                Err(_) => return,
            }
        }
        sleep_until(until).await;
    }

    /// Returns the records that are not over.
    async fn headings(&mut self, fleet: &Fleet) -> Result<Vec<Live>, ServiceError> {
        let known = self.headings.take().filter(|known| !known.is_old());
        let known = match known {
            Some(known) => known,
            None => Headings::read(fleet, ALL).await?,
        };
        let live = known.live();
        let live = live.map(|(key, revision, heading)| (key.clone(), revision, heading.clone()));
        let live = live.collect();
        self.headings = Some(known);
        Ok(live)
    }

    /// Reads all headings again, unless that was done a short while ago: the server has an older record than the one that is
    /// known, or none.
    fn is_behind(&mut self) {
        let headings = self.headings.take();
        self.headings = headings.filter(|known| known.age() < READ_PAUSE);
    }
}

/// A record that is not over, with its revision.
type Live = (RunKey, u64, Heading);

/// Returns whether the hints of a queue are read, each of which is a request.
fn reads_hints(hints: usize, queued: usize, since: Duration) -> bool {
    // Without any, each record gets one.
    hints > 0 && (hints < queued || since >= READS_ALL)
}

async fn pass(shared: &Shared, waiting: &mut Waiting) -> Result<(), ServiceError> {
    if !has_right(shared).await? {
        // What another one has done is not known.
        *waiting = Waiting::default();
        return Ok(());
    }
    let fleet = &shared.fleet;
    // Before the workers: one that was claimed since then is of a worker that is there.
    let records = waiting.headings(fleet).await?;
    let workers = fleet.workers().await?;
    let present: HashSet<_> = workers.iter().map(|worker| worker.instance).collect();
    let queues = queues(shared).await?;
    let mut quiet = HashSet::new();
    let mut queued: HashMap<&str, usize> = HashMap::new();
    let now = Instant::now();
    let mut seen_now = HashMap::new();
    for (key, revision, heading) in &records {
        if heading.head.state == State::Queued {
            let known = waiting
                .records
                .get(key)
                .filter(|(known, _)| known == revision);
            let since = known.map_or(now, |(_, since)| *since);
            seen_now.insert(key.clone(), (*revision, since));
            *queued.entry(&heading.queue).or_default() += 1;
            if now - since >= QUIET {
                quiet.insert(&*heading.queue);
            }
        }
    }
    waiting.records = seen_now;
    waiting.read.retain(|queue, _| quiet.contains(&**queue));
    let mut hinted = HashMap::new();
    for queue in quiet {
        // One that is of no more use goes when it is pulled.
        let hints = queues.get(queue).copied().unwrap_or_default();
        let read = waiting.read.entry(queue.to_owned()).or_insert(now);
        if reads_hints(hints, queued[queue], now - *read) {
            *read = now;
            let keys = hinted_in(shared, queue).await?;
            hinted.insert(queue.to_owned(), keys);
        }
    }
    for (key, revision, heading) in records {
        let claim = heading.head.claim;
        let mut known = Known {
            is_absent: claim.is_none_or(|claim| !present.contains(&claim.instance)),
            // Of a queue that was not read, any hint may be that of the run.
            has_hint: match hinted.get(&heading.queue) {
                Some(keys) => keys.contains(&key.key()),
                None => queues.contains_key(&heading.queue),
            },
            ..Known::default()
        };
        let seen = Seen {
            revision,
            head: Some(heading.head),
            stop: false,
        };
        match repair(fleet, &key, seen, &mut known, &heading).await {
            Ok(Repaired::Yes) => {}
            Ok(Repaired::IsBehind) => waiting.is_behind(),
            // One that cannot be repaired does not keep the others from it.
            Err(error) => shared.notice(&key, format!("cannot be repaired: {error}")),
        }
    }
    Ok(())
}

/// What has come of a repair.
enum Repaired {
    /// It was repaired, or need not be.
    Yes,
    /// The server has an older record than the known one, or the read is stale.
    IsBehind,
}

impl Repaired {
    fn of(found: u64, known: u64) -> Self {
        if found < known {
            Self::IsBehind
        } else {
            Self::Yes
        }
    }
}

async fn repair(
    fleet: &Fleet,
    key: &RunKey,
    seen: Seen,
    known: &mut Known,
    heading: &Heading,
) -> Result<Repaired, ServiceError> {
    let is_lost = heading.head.state == State::Lost;
    if is_lost || heading.head.state == State::Started && known.is_absent {
        known.tail = fleet.tail_of(key).await?;
    }
    let mut cared = care(seen, *known);
    if cared == Some(Care::Hint) {
        // The hints were read later: it may have been claimed in between.
        let found = fleet.read(key).await?.seen.revision;
        if found == seen.revision {
            // Without an answer, the next pass does it again.
            fleet.hint(&heading.queue, key).await?;
        }
        return Ok(Repaired::of(found, seen.revision));
    }
    if cared.is_none() && !is_lost {
        return Ok(Repaired::Yes);
    }
    let found = fleet.read(key).await?;
    let revision = found.seen.revision;
    let Some(record) = found.record.filter(|_| revision == seen.revision) else {
        // It was changed meanwhile, or the read is stale.
        return Ok(Repaired::of(revision, seen.revision));
    };
    if is_lost {
        known.wants_rerun = record.wants_rerun();
        cared = care(seen, *known);
    }
    match cared {
        Some(Care::HandOn(change)) => {
            // Killed before the hint, or without an answer to it, a later pass finds the record without one.
            if let Changed::Done = fleet.change(key, change, record).await? {
                fleet.hint(&heading.queue, key).await?;
            }
        }
        Some(Care::End(change)) => {
            let record = fleet.ended_by_log(key, record).await?;
            fleet.change(key, change, record).await?;
        }
        Some(Care::Fence(expected)) => {
            let next = known.tail.map_or(1, |tail| tail.next);
            let lines = end_of(&record, &key.run, next);
            for frame in Frame::of(Tag::GIVEN_UP, &lines, "") {
                fleet.publish(&key.log(), frame.message(expected)).await;
            }
        }
        Some(Care::Rerun) => match fleet.submit_again(key, &record, Full::Waits).await {
            Err(error) if error.retryable => return Err(error),
            // One that cannot be submitted now cannot be later.
            again => {
                settle(fleet, key, seen, record).await;
                again?;
            }
        },
        Some(Care::Hint) => {}
        None => settle(fleet, key, seen, record).await,
    }
    Ok(Repaired::Yes)
}

/// Writes down that nothing is left to do for a run that was given up.
async fn settle(fleet: &Fleet, key: &RunKey, seen: Seen, mut record: Record) {
    record.settled = true;
    // Without an answer, the next pass does it again.
    fleet.store(key, &record, seen.revision).await;
}

/// Takes the right to repair for a while, unless another worker has it.
async fn has_right(shared: &Shared) -> Result<bool, ServiceError> {
    let last = shared.fleet.last(WORKERS, RIGHT).await?;
    let own = shared.instance.to_string();
    let (expected, holder) = last.map_or((0, Bytes::new()), |message| {
        (message.sequence, message.payload)
    });
    // After its time there is a marker without content. The own one is renewed, even if it has not passed yet: a pass that
    // only waits for that would forget what this process has seen.
    let is_own = holder == own.as_bytes();
    if !holder.is_empty() && !is_own {
        return Ok(false);
    }
    let message = PublishMessage::build()
        .payload(own.into())
        .expected_last_subject_sequence(expected)
        .ttl(TERM);
    let stored = shared.fleet.publish(RIGHT, message).await;
    is_taken(is_own, stored.is_some())
}

/// Returns whether the right was taken, which this process had or not, and whose entry is certainly stored or not.
/// Fails if this process may still have it: the answer may be lost, and what was seen so far still counts.
fn is_taken(was_own: bool, is_stored: bool) -> Result<bool, ServiceError> {
    if was_own && !is_stored {
        let message = "the right to repair was not renewed: no answer, or another worker has it";
        return Err(ServiceError::unreachable(message));
    }
    Ok(is_stored)
}

/// Returns the queues that have hints, with their number.
async fn queues(shared: &Shared) -> Result<HashMap<String, usize>, ServiceError> {
    let mut queues = HashMap::new();
    for name in [WORK, HOST] {
        let stream = shared.fleet.stream(name).await?;
        let found = stream.info_with_subjects(">").await;
        let mut found = found.map_err(|error| shared.fleet.failed(name, error))?;
        while let Some(subject) = next(&mut found).await {
            let (subject, hints) = subject.map_err(|error| shared.fleet.failed(name, error))?;
            queues.insert(subject, hints);
        }
    }
    Ok(queues)
}

/// Returns the keys of the runs of which a queue has hints.
async fn hinted_in(shared: &Shared, queue: &str) -> Result<HashSet<String>, ServiceError> {
    let name = if queue.starts_with("tm.host.") {
        HOST
    } else {
        WORK
    };
    let stream = shared.fleet.stream(name).await?;
    let mut keys = HashSet::new();
    let mut from = 1;
    loop {
        match stream.get_first_raw_message_by_subject(queue, from).await {
            Ok(hint) => {
                keys.extend(String::from_utf8(hint.payload.to_vec()).ok());
                from = hint.sequence + 1;
            }
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => return Ok(keys),
            Err(error) => return Err(shared.fleet.failed(name, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_answer_to_a_renewal_does_not_end_the_right() {
        assert!(is_taken(true, false).unwrap_err().retryable);
        assert!(!is_taken(false, false).unwrap());
        assert!(is_taken(true, true).unwrap());
        assert!(is_taken(false, true).unwrap());
    }

    #[test]
    fn hints_of_no_run_do_not_hide_a_missing_one_for_long() {
        let at_once = Duration::ZERO;
        assert!(reads_hints(1, 2, at_once));
        assert!(!reads_hints(0, 2, READS_ALL));
        // Before, as many hints as records were enough, whichever they were.
        assert!(!reads_hints(9, 2, at_once));
        assert!(reads_hints(9, 2, READS_ALL));
    }
}
