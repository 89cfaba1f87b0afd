//! Times in whole milliseconds, as in the wire format.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the time of the system clock, in milliseconds since the Unix epoch. 0 if the clock is before it.
pub fn epoch_ms() -> u64 {
    epoch_ms_of(SystemTime::now())
}

/// Converts a time to milliseconds since the Unix epoch. 0 if it is before that.
pub fn epoch_ms_of(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, millis)
}

/// Converts a duration to whole milliseconds, rounded down; `u64::MAX` on overflow.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the year, month and day of a day number, counted from 1970-01-01 in UTC.
///
/// ```
/// assert_eq!(teamster_core::time::date_of_day(19_782), (2024, 2, 29));
/// ```
pub fn date_of_day(days: u64) -> (u64, u64, u64) {
    // Eras of 400 years. Years begin in March, so that the leap day is the last day of a year.
    const BEFORE: u64 = 719_468;
    const ERA: u64 = 146_097;
    let days = days.saturating_add(BEFORE);
    let (era, of_era) = (days / ERA, days % ERA);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        for (day, date) in [
            (0, (1970, 1, 1)),
            (58, (1970, 2, 28)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (20_453, (2025, 12, 31)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(date_of_day(day), date, "{day}");
        }
    }

    #[test]
    fn a_duration_beyond_the_range_is_the_longest() {
        assert_eq!(millis(Duration::from_micros(1_999)), 1);
        assert_eq!(millis(Duration::MAX), u64::MAX);
        assert_eq!(epoch_ms_of(UNIX_EPOCH + Duration::from_micros(7_900)), 7);
        assert_eq!(epoch_ms_of(UNIX_EPOCH - Duration::from_secs(1)), 0);
    }

    #[test]
    fn the_time_of_day_is_that_of_this_century() {
        let year_2020 = 1_577_836_800_000;
        assert!(epoch_ms() > year_2020);
    }
}
