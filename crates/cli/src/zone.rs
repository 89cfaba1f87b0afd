//! The time zone of this machine.

use std::sync::LazyLock;

use jiff::tz::TimeZone;

use crate::warn;

/// Returns the zone of `TZ`, or else the machine's. Falls back to UTC, with one warning if the name in `TZ` is unknown.
pub(crate) fn local() -> TimeZone {
    static ZONE: LazyLock<TimeZone> = LazyLock::new(|| {
        TimeZone::try_system().unwrap_or_else(|_| {
            if let Some(name) = std::env::var_os("TZ") {
                let name = name.display();
                warn(&[format!("TZ: unknown time zone {name}; using UTC")]);
            }
            TimeZone::UTC
        })
    });
    ZONE.clone()
}
