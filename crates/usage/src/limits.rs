//! The limits of a subscription, as far as a CLI leaves them on the disk.

use std::time::SystemTime;

use jiff::Timestamp;

use crate::lines;
use crate::source::Sources;
use crate::{Places, Provider};

/// How much of the end of a file is read, in bytes.
const END: u64 = 1 << 20;

/// How many files are read at most, the last changed ones first.
const FILES: usize = 32;

/// A limit of a subscription, and how much of it is used.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Limit {
    /// The CLI whose service has the limit.
    pub provider: Provider,
    /// The length of the window in minutes: 300 for five hours, 10,080 for a week.
    pub window_minutes: Option<u64>,
    /// The part of the limit that was used, in percent.
    pub used_percent: f64,
    /// When the window ends and the limit is whole again.
    pub resets_at: Option<Timestamp>,
    /// When the service reported it.
    pub at: Timestamp,
}

impl Limit {
    /// A limit of which so much was used at this time.
    pub fn new(provider: Provider, used_percent: f64, at: Timestamp) -> Self {
        Self {
            provider,
            window_minutes: None,
            used_percent,
            resets_at: None,
            at,
        }
    }
}

/// Reads the limits in a line; none if it has none.
pub(crate) type ReadLimits = fn(&[u8]) -> Vec<Limit>;

/// The limits that were reported last, of each CLI that keeps them on the disk.
pub fn limits(places: &Places) -> Vec<Limit> {
    let all = Provider::ALL.into_iter();
    all.filter_map(|provider| Some(last(provider, provider.traits().limits?, places)))
        .flatten()
        .collect()
}

/// The limits in the line of a CLI's that has them last.
fn last(provider: Provider, of_line: ReadLimits, places: &Places) -> Vec<Limit> {
    let mut sources = Sources::new(None);
    provider.sources(places, &mut sources);
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
        // A file's content is no newer than the file.
        if last
            .first()
            .is_some_and(|limit| SystemTime::from(limit.at) > changed)
        {
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
