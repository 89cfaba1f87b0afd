//! The streams of a fleet and their settings, in one table.

use std::collections::HashMap;
use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};

use crate::names::{FILE, HOLDS, HOST, LOG, RUNS, SESSIONS, WORK, WORKERS};

/// Version of these settings. A newer one may change the streams of an older one.
pub(crate) const VERSION: u32 = 3;
/// The key of the version in a stream's metadata.
pub(crate) const VERSION_KEY: &str = "tm_layout";
/// Time for which the copy of a log is kept.
pub(crate) const LOG_AGE: Duration = Duration::from_hours(7 * 24);
/// Time for which an ended run's record is kept.
pub(crate) const RECORD_AGE: Duration = Duration::from_hours(30 * 24);
/// Time for which a file is kept: longer than the records of most runs.
const FILE_AGE: Duration = Duration::from_hours(60 * 24);
/// Time for which a hint for one machine is kept. One that is still needed then is published again.
const HINT_AGE: Duration = Duration::from_hours(1);
/// Time for which watchers can learn that a key is gone.
const MARKER_AGE: Duration = Duration::from_hours(1);

/// What an operator decides about the streams of a fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FleetLimits {
    /// Copies of each message: 1, or 3 in a cluster. Default: 3 in a cluster, else 1.
    pub replicas: Option<usize>,
    /// Maximum size of the copies of logs, in bytes. The oldest go. Default: 4 GiB.
    pub log_bytes: Option<u64>,
    /// Maximum size of files, in bytes. Beyond it, files are refused. Default: 16 GiB.
    pub file_bytes: Option<u64>,
    /// Maximum number of hints. Beyond it, runs are refused. Default: 100,000.
    pub queue: Option<u64>,
}

impl FleetLimits {
    /// Keeps the limits that a stream has, where none is given: a lower one would remove what is there.
    pub(crate) fn keep(&self, wanted: &mut Config, found: &Config) {
        if self.replicas.is_none() {
            wanted.num_replicas = found.num_replicas;
        }
        match &*wanted.name {
            LOG if self.log_bytes.is_none() => wanted.max_bytes = found.max_bytes,
            FILE if self.file_bytes.is_none() => wanted.max_bytes = found.max_bytes,
            WORK | HOST if self.queue.is_none() => wanted.max_messages = found.max_messages,
            _ => {}
        }
    }
}

/// Returns the settings of all streams.
pub(crate) fn streams(limits: &FleetLimits, replicas: usize) -> Vec<Config> {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let stream = |name: &str, subjects: &str| Config {
        name: name.to_owned(),
        subjects: vec![subjects.to_owned()],
        num_replicas: replicas,
        storage: StorageType::File,
        max_bytes: -1,
        max_messages: -1,
        max_messages_per_subject: -1,
        max_consumers: -1,
        metadata: HashMap::from([(VERSION_KEY.to_owned(), VERSION.to_string())]),
        ..Config::default()
    };
    // As clients of NATS make the streams of a bucket.
    let bucket = |name: &str| Config {
        max_messages_per_subject: 1,
        discard: DiscardPolicy::New,
        allow_rollup: true,
        deny_delete: true,
        allow_direct: true,
        allow_message_ttl: true,
        subject_delete_marker_ttl: Some(MARKER_AGE),
        ..stream(name, &format!("${}.>", name.replacen('_', ".", 1)))
    };
    let queue = |name: &str, subjects: &str| Config {
        discard: DiscardPolicy::New,
        max_messages: number(limits.queue.unwrap_or(100_000)),
        ..stream(name, subjects)
    };
    vec![
        // Its writers are all users, and by a rollup one could remove the records of all.
        Config {
            allow_rollup: false,
            subject_delete_marker_ttl: None,
            ..bucket(RUNS)
        },
        bucket(WORKERS),
        bucket(SESSIONS),
        bucket(HOLDS),
        Config {
            retention: RetentionPolicy::WorkQueue,
            ..queue(WORK, "tm.work.>")
        },
        // Not a work queue: the servers would keep copies of each worker's consumer.
        Config {
            max_messages_per_subject: 1,
            max_age: HINT_AGE,
            ..queue(HOST, "tm.host.>")
        },
        Config {
            allow_direct: true,
            max_age: LOG_AGE,
            max_bytes: number(limits.log_bytes.unwrap_or(4 << 30)),
            ..stream(LOG, "tm.log.>")
        },
        Config {
            allow_direct: true,
            max_messages_per_subject: 1,
            discard: DiscardPolicy::New,
            max_age: FILE_AGE,
            max_bytes: number(limits.file_bytes.unwrap_or(16 << 30)),
            ..stream(FILE, "tm.file.>")
        },
    ]
}

/// Returns the settings that differ, each as `name is X instead of Y`. Limits of sizes are the operator's.
pub(crate) fn differences(found: &Config, wanted: &Config) -> Vec<String> {
    let mut differences = Vec::new();
    macro_rules! compare {
        ($($field:ident),* $(,)?) => {
            $(if found.$field != wanted.$field {
                differences.push(format!(
                    "{} is {:?} instead of {:?}",
                    stringify!($field),
                    found.$field,
                    wanted.$field
                ));
            })*
        };
    }
    compare!(
        subjects,
        retention,
        discard,
        max_messages_per_subject,
        max_age,
        storage,
        allow_direct,
        allow_rollup,
        deny_delete,
        allow_message_ttl,
        subject_delete_marker_ttl,
        sealed,
        no_ack,
    );
    differences
}

/// Returns the version of the settings with which a stream was made; `None` if another program has made it.
pub(crate) fn version(found: &Config) -> Option<u32> {
    found.metadata.get(VERSION_KEY)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_named_by_its_field() {
        let wanted = streams(&FleetLimits::default(), 1);
        let log = wanted.iter().find(|stream| stream.name == LOG).unwrap();
        assert_eq!(differences(log, log), Vec::<String>::new());
        let mut found = log.clone();
        found.max_age = Duration::from_hours(24);
        found.max_bytes = 1;
        assert_eq!(
            differences(&found, log),
            ["max_age is 86400s instead of 604800s"]
        );
    }

    #[test]
    fn a_limit_that_is_not_given_stays_as_it_is() {
        let mut limits = FleetLimits {
            log_bytes: Some(50 << 30),
            ..FleetLimits::default()
        };
        let found = streams(&limits, 3);
        let again = |limits: &FleetLimits| {
            let mut wanted = streams(limits, 1);
            for (wanted, found) in wanted.iter_mut().zip(&found) {
                limits.keep(wanted, found);
            }
            let log = wanted.iter().find(|stream| stream.name == LOG).unwrap();
            (log.max_bytes, log.num_replicas)
        };
        assert_eq!(again(&FleetLimits::default()), (50 << 30, 3));
        limits.log_bytes = Some(1 << 30);
        limits.replicas = Some(1);
        assert_eq!(again(&limits), (1 << 30, 1));
    }

    #[test]
    fn buckets_have_the_subjects_of_their_names() {
        let wanted = streams(&FleetLimits::default(), 1);
        let subjects: Vec<_> = wanted.iter().map(|stream| &*stream.subjects[0]).collect();
        assert_eq!(
            subjects,
            [
                "$KV.tm_runs.>",
                "$KV.tm_workers.>",
                "$KV.tm_sessions.>",
                "$KV.tm_holds.>",
                "tm.work.>",
                "tm.host.>",
                "tm.log.>",
                "tm.file.>",
            ]
        );
    }
}
