//! The time zone of this machine.

use std::sync::LazyLock;

use jiff::tz::TimeZone;

use crate::warn;

/// Returns the zone of `TZ`, or else the machine's. Falls back to UTC, with one warning if the name in `TZ` is unknown.
pub(crate) fn local() -> TimeZone {
    static ZONE: LazyLock<TimeZone> =
        LazyLock::new(|| teamster_host::local_zone(|text| warn(&[text])));
    ZONE.clone()
}
