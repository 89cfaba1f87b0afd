//! The time of the server, by which all machines date what they write: the clock of one may be wrong.

use std::time::Duration;

use async_nats::datetime;
use bytes::Bytes;
use serde::Deserialize;
use teamster_core::sync::lock;
use teamster_core::time::{epoch_ms, millis};
use tokio::time::{Instant, timeout};

use crate::Fleet;
use crate::roles::USER_INFO;

/// The largest difference between a clock and that of the server that is not reported, in milliseconds.
const CLOCKS: u64 = 5_000;
/// Time in which the server must answer.
const ANSWER: Duration = Duration::from_secs(2);
/// Time after which the server's time is read again.
const READ_AGAIN: Duration = Duration::from_mins(5);
/// The same, if it has not answered.
const RETRY: Duration = Duration::from_secs(10);

/// A look at both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    at: Instant,
    /// The time of this machine, in milliseconds since the Unix epoch.
    own: u64,
    /// How far this machine is ahead of the server, in milliseconds; `None` if the server's time is not known.
    ahead: Option<i64>,
    /// Time for which it is used.
    valid: Duration,
}

impl Reading {
    /// Returns whether the clock of this machine was not changed since then, which a sleep of the machine looks like.
    fn is_steady(&self, elapsed: Duration, own: u64) -> bool {
        let expected = self.own.saturating_add(millis(elapsed));
        expected.abs_diff(own) <= CLOCKS / 5
    }

    /// Returns the server's time when this machine has that of `own`, `elapsed` after the reading; `None` if it must be read
    /// again.
    fn server_time(&self, elapsed: Duration, own: u64) -> Option<u64> {
        if elapsed > self.valid || !self.is_steady(elapsed, own) {
            return None;
        }
        Some(own.saturating_add_signed(-self.ahead.unwrap_or_default()))
    }
}

/// The server's report about a user, of which its time is needed.
#[derive(Deserialize)]
struct Info {
    server: Server,
}

#[derive(Deserialize)]
struct Server {
    /// RFC 3339.
    time: String,
}

/// Returns the server's time in its report about a user, in milliseconds since the Unix epoch.
pub(crate) fn time_of_report(json: &[u8]) -> Option<u64> {
    let info: Info = serde_json::from_slice(json).ok()?;
    let time = datetime::parse_rfc3339(&info.server.time).ok()?;
    u64::try_from(time.unix_timestamp_nanos() / 1_000_000).ok()
}

/// Returns how far this machine is ahead of the server, which has reported its time between these two, in milliseconds.
/// A difference that the way of the answer may explain is none.
fn ahead(before: u64, after: u64, server: u64) -> i64 {
    let signed = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    if server < before {
        signed(before - server)
    } else {
        -signed(server.saturating_sub(after))
    }
}

/// Returns a difference of clocks that is reported: none below 5 s.
pub(crate) fn reported(ahead: i64) -> Option<i64> {
    Some(ahead).filter(|ahead| ahead.unsigned_abs() > CLOCKS)
}

/// Describes a difference between the clock of a machine and that of the server.
pub(crate) fn in_words(ahead: i64) -> String {
    let seconds = ahead.unsigned_abs() / 1000;
    let direction = if ahead > 0 { "ahead of" } else { "behind" };
    format!("{seconds} s {direction} that of the server")
}

impl Fleet {
    /// Returns the server's time, in milliseconds since the Unix epoch; that of this machine if the server does not report
    /// its own.
    pub(crate) async fn now(&self) -> u64 {
        let known = *lock(&self.clock);
        let known = known.and_then(|known| known.server_time(known.at.elapsed(), epoch_ms()));
        match known {
            Some(now) => now,
            None => {
                // The answer takes a while: the time is that after it.
                let ahead = self.read_clock().await.unwrap_or_default();
                epoch_ms().saturating_add_signed(-ahead)
            }
        }
    }

    /// Returns how far the clock of this machine is ahead of the server's, in milliseconds, if that is more than 5 s.
    pub(crate) async fn clock_ahead(&self) -> Option<i64> {
        self.now().await;
        let known = *lock(&self.clock);
        known.and_then(|known| reported(known.ahead?))
    }

    /// Reads the server's time. Returns how far this machine is ahead, in milliseconds; `None` if that is not known.
    pub(crate) async fn read_clock(&self) -> Option<i64> {
        let before = epoch_ms();
        let asked = self.client.request(USER_INFO, Bytes::new());
        let asked = self.unless_refused(USER_INFO, timeout(ANSWER, asked));
        let (server, valid) = match asked.await {
            Ok(Ok(Ok(answer))) => (time_of_report(&answer.payload), READ_AGAIN),
            Ok(_) => (None, RETRY),
            // This user may not ask.
            Err(_) => (None, READ_AGAIN),
        };
        let own = epoch_ms();
        let mut known = lock(&self.clock);
        let steady = known.filter(|known| known.is_steady(known.at.elapsed(), own));
        let ahead = match server {
            Some(server) => Some(ahead(before, own, server)),
            None => steady.and_then(|known| known.ahead),
        };
        *known = Some(Reading {
            at: Instant::now(),
            own,
            ahead,
            valid,
        });
        ahead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;

    #[test]
    fn the_servers_time_is_known_until_a_clock_was_changed() {
        let reading = |ahead| Reading {
            at: Instant::now(),
            own: 10 * HOUR,
            ahead,
            valid: READ_AGAIN,
        };
        let second = Duration::from_secs(1);
        let own = 10 * HOUR + 1000;
        let of = |ahead| reading(Some(ahead)).server_time(second, own);
        assert_eq!(of(0), Some(own));
        let hour = i64::try_from(HOUR).unwrap();
        assert_eq!(of(hour), Some(9 * HOUR + 1000));
        assert_eq!(of(-hour), Some(11 * HOUR + 1000));
        assert_eq!(reading(None).server_time(second, own), Some(own));
        // The clock was set, or the machine was asleep.
        for other in [own + HOUR, own - HOUR, own + 1001] {
            assert_eq!(reading(Some(0)).server_time(second, other), None, "{other}");
        }
        let later = Duration::from_secs(301);
        assert_eq!(reading(Some(0)).server_time(later, own + 300_000), None);
    }

    #[test]
    fn the_way_of_an_answer_is_no_difference() {
        assert_eq!(ahead(1000, 3000, 2000), 0);
        assert_eq!(ahead(1000, 3000, 1000), 0);
        assert_eq!(ahead(HOUR, HOUR + 2000, 1000), 3_599_000);
        assert_eq!(ahead(1000, 3000, HOUR), -3_597_000);
        assert_eq!(reported(5000), None);
        assert_eq!(reported(-5001), Some(-5001));
        assert_eq!(in_words(3_599_000), "3599 s ahead of that of the server");
        assert_eq!(in_words(-6000), "6 s behind that of the server");
    }
}
