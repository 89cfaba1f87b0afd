//! Times as the wire form has them: whole milliseconds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time of day by the system's clock, in milliseconds since the Unix epoch. 0 if the clock is before it.
pub fn epoch_ms() -> u64 {
    epoch_ms_of(SystemTime::now())
}

/// This time, in milliseconds since the Unix epoch. 0 if it is before it.
pub fn epoch_ms_of(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, millis)
}

/// A duration in whole milliseconds, rounded down; `u64::MAX` if it is longer than that.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

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
