//! Repair of what killed workers and submitters have left. One worker at a time does it for all.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::RawMessageErrorKind;
use teamster_api::ServiceError;
use tokio::time::{Instant, sleep};

use super::Shared;
use crate::names::{RunKey, WORK, WORKERS, work};
use crate::protocol::{Care, State, care};
use crate::records::{Changed, next};

/// Key of the right to repair. No worker can have this name.
const RIGHT: &str = "$KV.tm_workers.=care";
/// Time for which one worker has the right.
const TERM: Duration = Duration::from_secs(10);
/// Time for which a queued record must be the same until the hints of its queue are read: most are taken before.
const QUIET: Duration = Duration::from_secs(30);
/// The subjects of all records.
const ALL: &str = "$KV.tm_runs.>";

pub(super) async fn keep_caring(shared: Arc<Shared>) {
    let mut waiting = Waiting::new();
    loop {
        // The next one may succeed.
        if let Err(error) = pass(&shared, &mut waiting).await
            && !error.retryable
        {
            (shared.on_notice)(format!("runs cannot be repaired: {error}"));
        }
        sleep(TERM).await;
    }
}

/// Since when this process has seen queued records, with their revisions.
type Waiting = HashMap<RunKey, (u64, Instant)>;

async fn pass(shared: &Shared, waiting: &mut Waiting) -> Result<(), ServiceError> {
    if !has_right(shared).await? {
        // What another one has done is not known.
        waiting.clear();
        return Ok(());
    }
    let fleet = &shared.fleet;
    // Before the workers: one that was claimed since then is of a worker that is there.
    let records = fleet.records(ALL).await?;
    let workers = fleet.workers().await?;
    let present: HashSet<_> = workers.iter().map(|worker| worker.instance).collect();
    let queues = queues(shared).await?;
    let mut quiet = HashSet::new();
    let now = Instant::now();
    let mut seen_now = Waiting::new();
    for (key, found) in &records {
        let revision = found.seen.revision;
        if let Some(record) = &found.record
            && record.state == State::Queued
        {
            let known = waiting.get(key).filter(|(known, _)| *known == revision);
            let since = known.map_or(now, |(_, since)| *since);
            seen_now.insert(key.clone(), (revision, since));
            let queue = work(&record.pool, &record.provider);
            if now - since >= QUIET && queues.contains(&queue) {
                quiet.insert(queue);
            }
        }
    }
    *waiting = seen_now;
    let mut hinted = HashMap::new();
    for queue in quiet {
        let keys = hinted_in(shared, &queue).await?;
        hinted.insert(queue, keys);
    }
    for (key, found) in records {
        let Some(record) = found.record else {
            continue;
        };
        let is_absent = record
            .claim
            .is_none_or(|claim| !present.contains(&claim.instance));
        let queue = work(&record.pool, &record.provider);
        // Of a queue that was not read, any hint may be that of the run.
        let has_hint = match hinted.get(&queue) {
            Some(keys) => keys.contains(&key.key()),
            None => queues.contains(&queue),
        };
        let cared = match care(found.seen, is_absent, has_hint) {
            Some(Care::HandOn(change)) => match fleet.change(&key, change, record).await {
                Ok(Changed::Done) => fleet.hint(&queue, &key).await.map(drop),
                other => other.map(drop),
            },
            // Without an answer, the next pass does it again.
            Some(Care::Hint) => fleet.hint(&queue, &key).await.map(drop),
            None => Ok(()),
        };
        // One that cannot be repaired does not keep the others from it.
        if let Err(error) = cared {
            shared.notice(&key, format!("cannot be repaired: {error}"));
        }
    }
    Ok(())
}

/// Takes the right to repair for a while, unless another worker has it.
async fn has_right(shared: &Shared) -> Result<bool, ServiceError> {
    let last = shared.fleet.last(WORKERS, RIGHT).await?;
    let (expected, is_taken) = last.map_or((0, false), |message| {
        // After its time there is a marker without content.
        (message.sequence, !message.payload.is_empty())
    });
    if is_taken {
        return Ok(false);
    }
    let message = PublishMessage::build()
        .payload(shared.instance.to_string().into())
        .expected_last_subject_sequence(expected)
        .ttl(TERM);
    Ok(shared.fleet.publish(RIGHT, message).await.is_some())
}

/// Returns the queues that have hints.
async fn queues(shared: &Shared) -> Result<HashSet<String>, ServiceError> {
    let stream = shared.fleet.stream(WORK).await?;
    let found = stream.info_with_subjects("tm.work.>").await;
    let mut found = found.map_err(|error| shared.fleet.failed(WORK, error))?;
    let mut queues = HashSet::new();
    while let Some(subject) = next(&mut found).await {
        let (subject, _) = subject.map_err(|error| shared.fleet.failed(WORK, error))?;
        queues.insert(subject);
    }
    Ok(queues)
}

/// Returns the keys of the runs of which a queue has hints.
async fn hinted_in(shared: &Shared, queue: &str) -> Result<HashSet<String>, ServiceError> {
    let stream = shared.fleet.stream(WORK).await?;
    let mut keys = HashSet::new();
    let mut from = 1;
    loop {
        match stream.get_first_raw_message_by_subject(queue, from).await {
            Ok(hint) => {
                keys.extend(String::from_utf8(hint.payload.to_vec()).ok());
                from = hint.sequence + 1;
            }
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => return Ok(keys),
            Err(error) => return Err(shared.fleet.failed(WORK, error)),
        }
    }
}
