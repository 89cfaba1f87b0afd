//! What time it is.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use tokio::time::Instant;

/// Waits.
pub type Waiting<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// The only source of time of a loop.
pub trait Clock: Send + Sync {
    /// The time of day.
    fn now(&self) -> Timestamp;

    /// Time since some moment. It never goes back.
    fn elapsed(&self) -> Duration;

    /// Waits so long.
    fn sleep(&self, duration: Duration) -> Waiting<'_>;
}

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock {
    begun: Instant,
}

impl SystemClock {
    /// A clock that begins now.
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
        // A clock outside the years that can be written is as good as none.
        Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Waiting<'_> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// A clock that follows Tokio's, from a given time of day on: with Tokio's time paused, a day is over as
/// soon as nothing is left to do in it.
#[derive(Debug)]
pub struct TokioClock {
    start: Timestamp,
    begun: Instant,
}

impl TokioClock {
    /// It is `start` now.
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

    fn sleep(&self, duration: Duration) -> Waiting<'_> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// Waits until it is so much later by either clock: the time of day also advances while the machine is
/// suspended, and the other one also when the time of day is set back.
pub(crate) async fn rest(clock: &dyn Clock, seconds: u64) {
    /// How often the time of day is looked at.
    const LOOK: Duration = Duration::from_secs(30);
    let duration = Duration::from_secs(seconds);
    let begun = clock.elapsed();
    let until = clock.now().as_second().saturating_add_unsigned(seconds);
    loop {
        let left = duration.saturating_sub(clock.elapsed().saturating_sub(begun));
        if left.is_zero() || clock.now().as_second() > until {
            return;
        }
        clock.sleep(left.min(LOOK)).await;
    }
}

/// A time as in the log: `2026-11-21T20:00:00Z`.
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

    /// The machine is suspended in the second sleep: the time of day advances, the other clock does not.
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
