//! Limits of subscriptions, from the files that CLIs leave on disk.

use std::time::SystemTime;

use crate::lines;
use crate::source::Sources;
use crate::{Locations, Provider};

/// Size of the part that is read at the end of a file, in bytes.
const END: u64 = 1 << 20;

/// Maximum number of files that are read, newest first.
const FILES: usize = 32;

/// A limit of a subscription, and how much of it is used.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Limit {
    /// The CLI whose service has the limit.
    pub provider: Provider,
    /// The length of the window in minutes: 300 for five hours, 10,080 for a week.
    pub window_minutes: Option<u64>,
    /// The used part of the limit, in percent.
    pub used_percent: f64,
    /// Time at which the window ends and the limit resets.
    pub resets_at: Option<SystemTime>,
    /// Time at which the service reported the limit.
    pub at: SystemTime,
}

impl Limit {
    /// Creates a limit with this usage at this time.
    pub fn new(provider: Provider, used_percent: f64, at: SystemTime) -> Self {
        Self {
            provider,
            window_minutes: None,
            used_percent,
            resets_at: None,
            at,
        }
    }
}

/// Reads the limits in a line. Most lines have none.
pub(crate) type ReadLimits = fn(&[u8]) -> Vec<Limit>;

/// Returns the most recently reported limits of each CLI that keeps them on disk.
pub fn limits(locations: &Locations) -> Vec<Limit> {
    let all = Provider::ALL.into_iter();
    all.filter_map(|provider| Some(last(provider, provider.traits().limits?, locations)))
        .flatten()
        .collect()
}

/// Returns the most recently reported limits of a CLI.
fn last(provider: Provider, of_line: ReadLimits, locations: &Locations) -> Vec<Limit> {
    let mut sources = Sources::new(None);
    provider.sources(locations, &mut sources);
    let mut files: Vec<_> = sources
        .found
        .into_iter()
        .map(|source| {
            let changed = source.path.metadata().and_then(|found| found.modified());
            (changed.unwrap_or(SystemTime::UNIX_EPOCH), source)
        })
        .collect();
    files.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.path.cmp(&other.path)));
    let mut last: Vec<Limit> = Vec::new();
    for (changed, source) in files.into_iter().take(FILES) {
        // A file has no content newer than its last change.
        if last.first().is_some_and(|limit| limit.at > changed) {
            break;
        }
        // A file that cannot be read has no limits.
        let _ = lines::read_before(&source.path, source.size, END, &mut |line| {
            let found = of_line(line);
            let newer = match (found.first(), last.first()) {
                (Some(found), Some(last)) => found.at >= last.at,
                (found, _) => found.is_some(),
            };
            if newer {
                last = found;
            }
        });
    }
    last
}
