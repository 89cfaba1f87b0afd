//! Repair of what killed workers and submitters have left. One worker at a time does it for all.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::message::PublishMessage;
use teamster_api::ServiceError;
use tokio::time::sleep;

use super::Shared;
use crate::names::{WORK, WORKERS, work};
use crate::protocol::{Care, care};
use crate::records::{Changed, next};

/// Key of the right to repair. No worker can have this name.
const RIGHT: &str = "$KV.tm_workers.=care";
/// Time for which one worker has the right.
const TERM: Duration = Duration::from_secs(10);
/// The subjects of all records.
const ALL: &str = "$KV.tm_runs.>";

pub(super) async fn keep_caring(shared: Arc<Shared>) {
    loop {
        // The next one may succeed.
        let _ = pass(&shared).await;
        sleep(TERM).await;
    }
}

async fn pass(shared: &Shared) -> Result<(), ServiceError> {
    if !has_right(shared).await? {
        return Ok(());
    }
    let fleet = &shared.fleet;
    // Before the workers: one that was claimed since then is of a worker that is there.
    let records = fleet.records(ALL).await?;
    let workers = fleet.workers().await?;
    let present: HashSet<_> = workers.iter().map(|worker| worker.instance).collect();
    let hinted = hinted(shared).await?;
    for (key, found) in records {
        let Some(record) = found.record else {
            continue;
        };
        let is_absent = record
            .claim
            .is_none_or(|claim| !present.contains(&claim.instance));
        let queue = work(&record.pool, &record.provider);
        match care(found.seen, is_absent, hinted.contains(&queue)) {
            Some(Care::HandOn(change)) => {
                if let Changed::Done = fleet.change(&key, change, record).await? {
                    fleet.hint(&queue, &key).await?;
                }
            }
            Some(Care::Hint) => {
                fleet.hint(&queue, &key).await?;
            }
            None => {}
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
async fn hinted(shared: &Shared) -> Result<HashSet<String>, ServiceError> {
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
