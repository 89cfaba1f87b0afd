//! Clock of a loop.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use tokio::time::Instant;

/// Future of [`Clock::sleep`].
pub type Waiting<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Source of time of a loop.
pub trait Clock: Send + Sync {
    /// Returns the wall-clock time.
    fn now(&self) -> Timestamp;

    /// Returns the time since a fixed moment. It never decreases.
    fn elapsed(&self) -> Duration;

    /// Waits for this duration. Default: by Tokio's clock.
    fn sleep(&self, duration: Duration) -> Waiting<'_> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// System clock.
#[derive(Debug)]
pub struct SystemClock {
    begun: Instant,
}

impl SystemClock {
    /// Creates a clock whose [`elapsed`](Clock::elapsed) starts at zero.
    pub fn new() -> Self {
        Self {
            begun: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // A clock beyond the range of `Timestamp` is wrong.
        Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}

/// Clock that follows Tokio's, from a given wall-clock time. With Tokio's time paused, tests need no real time.
#[derive(Debug)]
pub struct TokioClock {
    start: Timestamp,
    begun: Instant,
}

impl TokioClock {
    /// Creates a clock that shows `start` now.
    pub fn new(start: Timestamp) -> Self {
        Self {
            start,
            begun: Instant::now(),
        }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        let since = jiff::SignedDuration::try_from(self.begun.elapsed()).unwrap_or_default();
        self.start.checked_add(since).unwrap_or(Timestamp::MAX)
    }

    fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}

/// Waits until either clock has advanced by these seconds. The wall clock advances while the machine is
/// suspended; the monotonic one is not affected when the wall clock is set back.
pub(crate) async fn rest(clock: &dyn Clock, seconds: u64) {
    /// Interval at which the wall clock is read.
    const READ_INTERVAL: Duration = Duration::from_secs(30);
    let duration = Duration::from_secs(seconds);
    let begun = clock.elapsed();
    let until = clock.now().as_second().saturating_add_unsigned(seconds);
    loop {
        let left = duration.saturating_sub(clock.elapsed().saturating_sub(begun));
        if left.is_zero() || clock.now().as_second() > until {
            return;
        }
        clock.sleep(left.min(READ_INTERVAL)).await;
    }
}

/// Formats a time as in the log: `2026-11-21T20:00:00Z`.
pub(crate) fn stamp(now: Timestamp) -> impl std::fmt::Display {
    now.strftime("%Y-%m-%dT%H:%M:%SZ")
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_rest_takes_its_time() {
        let clock = TokioClock::new(Timestamp::UNIX_EPOCH);
        rest(&clock, 3601).await;
        assert_eq!(clock.elapsed(), Duration::from_secs(3601));
        assert_eq!(clock.now().to_string(), "1970-01-01T01:00:01Z");
    }

    /// Clock of a machine that is suspended in the second sleep: only the wall clock advances.
    struct Suspended(Mutex<(i64, u32)>);

    impl Clock for Suspended {
        fn now(&self) -> Timestamp {
            Timestamp::from_second(self.0.lock().unwrap().0).unwrap()
        }

        fn elapsed(&self) -> Duration {
            Duration::from_secs(u64::from(self.0.lock().unwrap().1) * 30)
        }

        fn sleep(&self, _: Duration) -> Waiting<'_> {
            let mut state = self.0.lock().unwrap();
            state.1 += 1;
            state.0 += if state.1 == 2 { 7200 } else { 30 };
            Box::pin(std::future::ready(()))
        }
    }

    #[tokio::test]
    async fn a_machine_that_was_suspended_does_not_make_the_rest_longer() {
        let clock = Suspended(Mutex::new((0, 0)));
        rest(&clock, 3600).await;
        assert_eq!(clock.0.lock().unwrap().1, 2);
    }

    #[test]
    fn a_stamp_is_in_utc_to_the_second() {
        let now: Timestamp = "2026-11-21T21:00:00.9+01:00".parse().unwrap();
        assert_eq!(stamp(now).to_string(), "2026-11-21T20:00:00Z");
    }
}
