//! The time zone of this machine.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::report::warn;

/// Returns the zone of `TZ`, or else the machine's. Falls back to UTC, with one warning if the name in `TZ` is unknown.
pub(crate) fn local() -> TimeZone {
    static ZONE: LazyLock<TimeZone> =
        LazyLock::new(|| teamster_host::local_zone(|text| warn(&[text])));
    ZONE.clone()
}

/// Formats a time, in milliseconds since the Unix epoch, in the local time zone.
pub(crate) fn local_time(ms: u64, format: &str) -> String {
    i64::try_from(ms)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok())
        .map(|at| at.to_zoned(local()).strftime(format).to_string())
        .unwrap_or_default()
}
