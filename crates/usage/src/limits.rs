//! The limits of a subscription, as far as a CLI leaves them on the disk.

use std::time::SystemTime;

use jiff::Timestamp;
use memchr::memmem;
use serde::Deserialize;

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
    /// When the service said so.
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

#[derive(Deserialize)]
struct Line {
    timestamp: Timestamp,
    payload: Payload,
}

#[derive(Deserialize)]
struct Payload {
    r#type: String,
    rate_limits: Option<RateLimits>,
}

#[derive(Deserialize)]
struct RateLimits {
    primary: Option<Window>,
    secondary: Option<Window>,
}

#[derive(Deserialize)]
struct Window {
    used_percent: f64,
    #[serde(rename = "window_minutes")]
    minutes: Option<u64>,
    /// In seconds since 1970-01-01 UTC.
    resets_at: Option<i64>,
}

/// The limits that were reported last, as Codex's rollouts have them. The other CLIs keep none on the disk.
pub fn limits(places: &Places) -> Vec<Limit> {
    let mut sources = Sources::new(None);
    Provider::Codex.sources(places, &mut sources);
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
        // What a file says is no younger than the file.
        if last
            .first()
            .is_some_and(|limit| SystemTime::from(limit.at) > changed)
        {
            break;
        }
        // A file that cannot be read says nothing.
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

/// The limits of a line; none if it says nothing of them.
fn of_line(line: &[u8]) -> Vec<Limit> {
    if memmem::find(line, b"\"rate_limits\"").is_none() {
        return Vec::new();
    }
    let Ok(line) = serde_json::from_slice::<Line>(line) else {
        return Vec::new();
    };
    let limits = line.payload.rate_limits;
    let Some(limits) = limits.filter(|_| line.payload.r#type == "token_count") else {
        return Vec::new();
    };
    let windows = [limits.primary, limits.secondary].into_iter().flatten();
    windows
        .map(|window| Limit {
            provider: Provider::Codex,
            window_minutes: window.minutes,
            used_percent: window.used_percent,
            resets_at: window
                .resets_at
                .and_then(|at| Timestamp::from_second(at).ok()),
            at: line.timestamp,
        })
        .collect()
}
