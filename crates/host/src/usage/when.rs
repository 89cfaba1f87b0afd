//! Times of a query of usage.

use jiff::civil::{Date, DateTime, Time};
use jiff::{Span, Timestamp, Zoned};

use crate::value;

/// A point in time or a day, as a query of usage names it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum When {
    /// A day, as a number of days before today.
    DaysAgo(i64),
    /// A date in the local time zone.
    Day(Date),
    /// A date and time in the local time zone.
    Local(DateTime),
    /// An absolute point in time.
    At(Timestamp),
    /// An age, in milliseconds.
    Ago(i64),
}

impl When {
    /// Reads a date, a time, `today`, `yesterday`, or how long ago, such as `7d`.
    ///
    /// # Errors
    ///
    /// Fails with a description of what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            "expected a date such as 2026-11-22, a time such as \"2026-11-22 09:30\", `today`, \
             `yesterday`, or how long ago, such as 24h or 7d"
                .to_owned()
        };
        match text {
            "today" => return Ok(Self::DaysAgo(0)),
            "yesterday" => return Ok(Self::DaysAgo(1)),
            // `value::limit` would parse these as no limit.
            "off" | "0" => return Err(wrong()),
            _ => {}
        }
        // A plain number is ambiguous: a year or seconds.
        let is_number = text.chars().all(|c| c.is_ascii_digit());
        if !is_number && let Ok(ago) = value::limit(text) {
            let ago = i64::try_from(ago.as_millis()).map_err(|_| wrong())?;
            return Ok(Self::Ago(ago));
        }
        if is_number || !text.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(wrong());
        }
        let (plain, zone) = text.split_at(text.find('[').unwrap_or(text.len()));
        let when = match (plain.contains(['T', 't', ' ']), zone) {
            (false, "") => plain.parse().map(Self::Day),
            (false, _) => return Err(wrong()),
            (true, "") => match plain.parse() {
                Ok(at) => Ok(Self::At(at)),
                Err(_) => plain.parse().map(Self::Local),
            },
            (true, _) => text.parse().map(|at: Zoned| Self::At(at.timestamp())),
        };
        when.map_err(|_| wrong())
    }

    /// Returns the point in time; for a day, its beginning. `None` if it cannot be represented.
    pub fn begin(&self, now: &Zoned) -> Option<Timestamp> {
        let zone = now.time_zone();
        let day = |date: Date| {
            let midnight = date.to_datetime(Time::midnight());
            Some(midnight.to_zoned(zone.clone()).ok()?.timestamp())
        };
        match self {
            Self::DaysAgo(days) => day(now
                .date()
                .checked_sub(Span::new().try_days(*days).ok()?)
                .ok()?),
            Self::Day(date) => day(*date),
            Self::Local(at) => Some(at.to_zoned(zone.clone()).ok()?.timestamp()),
            Self::At(at) => Some(*at),
            Self::Ago(ms) => {
                let span = Span::new().try_milliseconds(*ms).ok()?;
                now.timestamp().checked_sub(span).ok()
            }
        }
    }

    /// Returns the point in time as the end of a range; for a day, the beginning of the next day.
    pub fn end(&self, now: &Zoned) -> Option<Timestamp> {
        let next = |date: Date| Self::Day(date.tomorrow().ok()?).begin(now);
        match self {
            Self::DaysAgo(days) => {
                let today = now.date();
                next(today.checked_sub(Span::new().try_days(*days).ok()?).ok()?)
            }
            Self::Day(date) => next(*date),
            _ => self.begin(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-22 10:30 at UTC+1.
    fn now() -> Zoned {
        let zone = jiff::tz::TimeZone::fixed(jiff::tz::offset(1));
        let now: Timestamp = "2026-11-22T09:30:00Z".parse().unwrap();
        now.to_zoned(zone)
    }

    fn begin(text: &str) -> String {
        When::parse(text)
            .unwrap()
            .begin(&now())
            .unwrap()
            .to_string()
    }

    fn end(text: &str) -> String {
        When::parse(text).unwrap().end(&now()).unwrap().to_string()
    }

    #[test]
    fn beginnings_are_resolved() {
        for (text, expected) in [
            ("today", "2026-11-21T23:00:00Z"),
            ("yesterday", "2026-11-20T23:00:00Z"),
            ("2026-11-20", "2026-11-19T23:00:00Z"),
            ("2026-11-20 08:15", "2026-11-20T07:15:00Z"),
            ("2026-11-20T08:15:30", "2026-11-20T07:15:30Z"),
            ("2026-11-20T08:15:30Z", "2026-11-20T08:15:30Z"),
            ("2026-11-20T08:15:30+02:00", "2026-11-20T06:15:30Z"),
            ("2026-11-20T08", "2026-11-20T07:00:00Z"),
            ("2026-11-20 08", "2026-11-20T07:00:00Z"),
            ("2026-11-20T0815", "2026-11-20T07:15:00Z"),
            ("2026-11-20T08:15[UTC]", "2026-11-20T08:15:00Z"),
            ("24h", "2026-11-21T09:30:00Z"),
            ("7d", "2026-11-15T09:30:00Z"),
            ("1h30m", "2026-11-22T08:00:00Z"),
        ] {
            assert_eq!(begin(text), expected, "{text}");
        }
    }

    #[test]
    fn the_end_of_a_day_is_the_next_midnight() {
        for (text, expected) in [
            ("today", "2026-11-22T23:00:00Z"),
            ("yesterday", "2026-11-21T23:00:00Z"),
            ("2026-11-20", "2026-11-20T23:00:00Z"),
            ("2026-11-20 08:15", "2026-11-20T07:15:00Z"),
            ("2026-11-20 08", "2026-11-20T07:00:00Z"),
            ("24h", "2026-11-21T09:30:00Z"),
        ] {
            assert_eq!(end(text), expected, "{text}");
        }
    }

    #[test]
    fn invalid_times_are_rejected() {
        for text in [
            "",
            "0",
            "off",
            "7",
            "2026",
            "2026-13-01",
            "7x",
            "-7d",
            "tomorrow",
            "09:30",
            "2026-11-20 25:00",
            "2026-11-20T",
            "2026-11-20+01:00",
            "2026-11-20[UTC]",
            "2026-11-20T08:15[Nowhere/Here]",
        ] {
            assert!(When::parse(text).is_err(), "{text}");
        }
        // Out of range: `None` or an error, but no panic.
        for text in ["9999-12-31", "99999999d", "-009999-01-01"] {
            let when = When::parse(text);
            let _ = when.map(|when| (when.begin(&now()), when.end(&now())));
        }
    }
}
