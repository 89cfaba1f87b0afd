//! Times at which a limit resets, in messages for people: `resets 3:45pm (Europe/Berlin)`, `regain access on 2027-01-01 at
//! 00:00 UTC`, `try again in 2h 5m`.

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan, Zoned};

/// Words before a time, in lower case. All were seen in messages of services and CLIs.
const BEFORE: &[&str] = &[
    "resets ",
    "reset at ",
    "reset on ",
    "regain access ",
    "try again at ",
    "try again on ",
    "try again after ",
    "available again ",
];
/// Text before a time in seconds since the Unix epoch, in older versions of Claude Code.
const BEFORE_EPOCH: &str = "limit reached|";
/// Words before the length of a wait, in lower case.
const BEFORE_WAIT: &[&str] = &[
    "resets in ",
    "reset in ",
    "try again in ",
    "retry in ",
    "available again in ",
    "available in ",
    "try again after ",
    "retry after ",
];
/// Maximum number of words of a time.
const WORDS: usize = 9;
/// Time for which a limit that has reset is reported by a message that is older than the reset, in minutes.
const JUST_PASSED: i64 = 5;
const MONTHS: &[&str] = &[
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const DAYS: &[&str] = &[
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// Returns the time in a message about a limit, in milliseconds since the Unix epoch. A time without a zone is in that
/// of this machine. One without a date is the next one, or the last one if that has just passed.
pub(crate) fn find(message: &str) -> Option<u64> {
    find_at(message, &Zoned::now())
}

fn find_at(message: &str, now: &Zoned) -> Option<u64> {
    let lower = message.to_ascii_lowercase();
    if let Some((_, rest)) = lower.split_once(BEFORE_EPOCH) {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        return digits.parse::<u64>().ok()?.checked_mul(1000);
    }
    let after = |before: &'static [&str]| {
        let found = before.iter().flat_map(|before| lower.match_indices(before));
        found.map(|(at, before)| &message[at + before.len()..])
    };
    let times = after(BEFORE).filter_map(|text| time(text, now));
    let waits = after(BEFORE_WAIT).filter_map(|text| wait(text, now));
    let time = times.chain(waits).min()?;
    u64::try_from(time.as_millisecond()).ok()
}

/// Parts of a time, as far as they were read.
#[derive(Debug, Default)]
struct Parts {
    year: Option<i16>,
    month: Option<i8>,
    day: Option<i8>,
    /// Days from today.
    later: Option<i8>,
    weekday: Option<Weekday>,
    time: Option<Time>,
    zone: Option<TimeZone>,
}

/// Returns the time at the beginning of a text.
fn time(text: &str, now: &Zoned) -> Option<Timestamp> {
    let words = text.split([' ', ',', '\u{a0}', '\u{202f}', '\n']);
    let mut words = words.filter(|word| !word.is_empty()).take(WORDS).peekable();
    let mut parts = Parts::default();
    while let Some(word) = words.next() {
        // A sentence ends with its time.
        let is_last = word.ends_with(['.', ';', '!']);
        let word = word.trim_matches(['.', ';', '!', '(', ')', '"', '\'']);
        if let Ok(time) = word.parse::<Timestamp>() {
            return Some(time);
        }
        let half = words.peek().map(|next| next.to_ascii_lowercase());
        let half = half
            .as_deref()
            .map(|half| half.trim_end_matches(['.', ')']));
        let half = half.filter(|half| matches!(*half, "am" | "pm"));
        match parts.word(word, half)? {
            Read::Part => {}
            Read::PartAndHalf => {
                words.next();
            }
            Read::Other => break,
        }
        if is_last && !(word.len() == 3 && parts.time.is_none()) {
            break;
        }
    }
    parts.time(now)
}

/// Returns the end of the wait whose length is at the beginning of a text: `3 h`, `2h 5m`, `45 minutes`.
fn wait(text: &str, now: &Zoned) -> Option<Timestamp> {
    let mut span = None;
    let mut length = String::new();
    for word in text.split_whitespace().take(WORDS) {
        let is_last = word.ends_with(['.', ';', '!', ')']);
        let word = word.trim_matches(['.', ',', ';', '!', '(', ')', '~']);
        match word.to_ascii_lowercase().as_str() {
            "about" | "approximately" | "and" => {}
            "a" | "an" => length.push_str("1 "),
            word => {
                length.push_str(word);
                length.push(' ');
                // A number alone is the beginning of the next part.
                span = length.trim_end().parse::<Span>().ok().or(span);
            }
        }
        if is_last {
            break;
        }
    }
    let span = span.filter(|span| !span.is_negative())?;
    Some(now.checked_add(span).ok()?.timestamp())
}

/// Outcome of a word.
enum Read {
    Part,
    /// The word and the `am` or `pm` after it.
    PartAndHalf,
    /// The word is not part of a time.
    Other,
}

impl Parts {
    /// Reads a word. `half` is a following `am` or `pm`. `None` if the text is not a time that is understood.
    fn word(&mut self, word: &str, half: Option<&str>) -> Option<Read> {
        let lower = word.to_ascii_lowercase();
        let is_start = |names: &[&str]| {
            let is_it = |name: &&str| lower.len() >= 3 && name.starts_with(&lower);
            names
                .iter()
                .position(is_it)
                .and_then(|at| i8::try_from(at).ok())
        };
        if let Some(time) = clock(&lower, half) {
            self.time = Some(time);
            let is_own = lower.ends_with('m');
            let uses_half = half.is_some() && !is_own;
            return Some(if uses_half {
                Read::PartAndHalf
            } else {
                Read::Part
            });
        }
        match &*lower {
            "at" | "on" | "the" | "after" => {}
            "today" => self.later = Some(0),
            "tomorrow" => self.later = Some(1),
            "midnight" => self.time = Some(Time::midnight()),
            "utc" | "gmt" => self.zone = Some(TimeZone::UTC),
            _ => {
                if let Ok(date) = lower.parse::<Date>() {
                    (self.year, self.month) = (Some(date.year()), Some(date.month()));
                    self.day = Some(date.day());
                } else if let Some(month) = is_start(MONTHS) {
                    self.month = Some(month + 1);
                } else if let Some(day) = is_start(DAYS) {
                    self.weekday = Weekday::from_monday_zero_offset(day).ok();
                } else if lower.starts_with(|c: char| c.is_ascii_digit()) {
                    self.number(&lower)?;
                } else if word.contains('/') {
                    self.zone = Some(TimeZone::get(word).ok()?);
                } else {
                    return Some(Read::Other);
                }
            }
        }
        Some(Read::Part)
    }

    /// Reads a day of a month, or a year.
    fn number(&mut self, word: &str) -> Option<()> {
        let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let number: i16 = digits.parse().ok()?;
        if number >= 1970 {
            self.year = Some(number);
        } else if self.day.is_none() {
            self.day = Some(i8::try_from(number).ok()?);
        } else {
            return None;
        }
        Some(())
    }

    /// Returns the time. `None` if there is neither a date nor a time, or no such one.
    fn time(self, now: &Zoned) -> Option<Timestamp> {
        let now = now.with_time_zone(self.zone.unwrap_or_else(|| now.time_zone().clone()));
        let today = now.date();
        let at = |date: Date| {
            let time = self.time.unwrap_or_else(Time::midnight);
            date.to_datetime(time)
                .to_zoned(now.time_zone().clone())
                .ok()
        };
        let earliest = now.checked_sub(JUST_PASSED.minutes()).ok()?;
        let next = |days: &mut dyn Iterator<Item = i32>| {
            let dates = days.filter_map(|day| today.checked_add(day.days()).ok());
            dates.filter_map(at).find(|time| *time >= earliest)
        };
        let time = match (self.month, self.day) {
            (Some(month), Some(day)) => {
                let date = Date::new(self.year.unwrap_or(today.year()), month, day).ok()?;
                let is_past = self.year.is_none() && date < today;
                let has_just_passed = || at(date).is_some_and(|time| time >= earliest);
                if is_past && !has_just_passed() {
                    at(date.checked_add(1.year()).ok()?)
                } else {
                    at(date)
                }
            }
            (None, None) => match (self.later, self.weekday) {
                (Some(later), _) => at(today.checked_add(later.days()).ok()?),
                (None, Some(weekday)) => {
                    let is_it = |date: Date| date.weekday() == weekday;
                    let is_on = |day: &i32| today.checked_add(day.days()).is_ok_and(is_it);
                    next(&mut (-1..=7).filter(is_on))
                }
                (None, None) => {
                    self.time?;
                    next(&mut (-1..=1))
                }
            },
            _ => return None,
        };
        Some(time?.timestamp())
    }
}

/// Returns a time of day: `3pm`, `3:45 PM` (with `half` as the second word), `15:45`.
fn clock(word: &str, half: Option<&str>) -> Option<Time> {
    let (digits, half) = match (word.strip_suffix("am"), word.strip_suffix("pm")) {
        (Some(digits), _) => (digits, Some("am")),
        (_, Some(digits)) => (digits, Some("pm")),
        _ => (word, half),
    };
    let (hour, minute) = match digits.split_once(':') {
        Some((hour, minute)) => (hour, minute.split(':').next()?),
        // A number alone is a day or a year.
        None if half.is_none() => return None,
        None => (digits, "0"),
    };
    let (hour, minute): (i8, i8) = (hour.parse().ok()?, minute.parse().ok()?);
    let hour = match half {
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some("pm") => hour % 12 + 12,
        Some(_) => hour % 12,
        None => hour,
    };
    Time::new(hour, minute, 0, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Friday, noon in UTC.
    fn now() -> Zoned {
        "2026-11-27T12:00:00[UTC]".parse().unwrap()
    }

    fn found(message: &str) -> Option<String> {
        let time = find_at(message, &now())?;
        let time = Timestamp::from_millisecond(i64::try_from(time).unwrap()).unwrap();
        Some(time.to_string())
    }

    #[test]
    fn the_time_at_which_a_limit_resets() {
        for (message, expected) in [
            // Anthropic's API: the cap of a key.
            (
                "API Error: 400 You have reached your specified API usage limits. You will regain access on 2027-01-01 at 00:00 UTC.",
                "2027-01-01T00:00:00Z",
            ),
            // Claude Code.
            (
                "You've hit your session limit · resets 3pm (UTC)",
                "2026-11-27T15:00:00Z",
            ),
            (
                "You've hit your limit · resets 3:45pm (UTC) · /upgrade",
                "2026-11-27T15:45:00Z",
            ),
            (
                "You've hit your session limit · resets 12am (UTC)",
                "2026-11-28T00:00:00Z",
            ),
            ("5-hour limit reached ∙ resets 11am", "2026-11-28T11:00:00Z"),
            ("limit · resets Nov 30, 9am (UTC)", "2026-11-30T09:00:00Z"),
            ("limit · resets Nov 30 at 9am (UTC)", "2026-11-30T09:00:00Z"),
            (
                "limit · resets Jan 2, 2028, 12:30pm (UTC)",
                "2028-01-02T12:30:00Z",
            ),
            ("Weekly limit · resets Jan 2", "2027-01-02T00:00:00Z"),
            (
                "Your weekly limit resets Monday at 08:00.",
                "2026-11-30T08:00:00Z",
            ),
            (
                "Claude AI usage limit reached|1796000000",
                "2026-11-30T00:53:20Z",
            ),
            // Codex.
            (
                "You’ve hit your usage limit. Visit https://x.test/a or try again at 9:44 PM.",
                "2026-11-27T21:44:00Z",
            ),
            (
                "or try again at Dec 3rd, 2026 9:44 PM.",
                "2026-12-03T21:44:00Z",
            ),
            // Others.
            (
                "quota exceeded, resets at 2026-12-01T00:00:00Z.",
                "2026-12-01T00:00:00Z",
            ),
            (
                "Daily limit: it resets at midnight UTC",
                "2026-11-28T00:00:00Z",
            ),
            ("It resets tomorrow at 7:05 am.", "2026-11-28T07:05:00Z"),
            ("resets at 15:00 (UTC)", "2026-11-27T15:00:00Z"),
        ] {
            assert_eq!(found(message).as_deref(), Some(expected), "{message}");
        }
    }

    // Made by hand: the lengths of waits in the forms that services use.
    #[test]
    fn the_end_of_a_wait_counts_from_now() {
        for (message, expected) in [
            ("Usage limit: resets in 3 h", "2026-11-27T15:00:00Z"),
            ("You can try again in 2h 5m.", "2026-11-27T14:05:00Z"),
            (
                "limit reached, try again in 45 minutes",
                "2026-11-27T12:45:00Z",
            ),
            ("resets in 3 days", "2026-11-30T12:00:00Z"),
            (
                "usage limit; try again in 3 days 4 hours 5 minutes.",
                "2026-11-30T16:05:00Z",
            ),
            (
                "Try again in 1 hour and 30 minutes, or upgrade",
                "2026-11-27T13:30:00Z",
            ),
            ("Please try again in 6m0s. Visit x", "2026-11-27T12:06:00Z"),
            ("available again in about an hour", "2026-11-27T13:00:00Z"),
            ("Please retry in 1.5s", "2026-11-27T12:00:01.5Z"),
            ("(resets in 2h14m) 5 left", "2026-11-27T14:14:00Z"),
            (
                "5-hour limit: resets in 90 min · /upgrade",
                "2026-11-27T13:30:00Z",
            ),
        ] {
            assert_eq!(found(message).as_deref(), Some(expected), "{message}");
        }
    }

    // The message is older than the time at which it is read.
    #[test]
    fn a_time_that_has_just_passed_is_not_tomorrow_s() {
        for (now, message, expected) in [
            (
                "2026-11-27T12:02[UTC]",
                "resets 12pm",
                "2026-11-27T12:00:00Z",
            ),
            (
                "2026-11-27T12:06[UTC]",
                "resets 12pm",
                "2026-11-28T12:00:00Z",
            ),
            (
                "2026-11-27T00:01[UTC]",
                "resets 11:59pm",
                "2026-11-26T23:59:00Z",
            ),
            (
                "2026-11-27T12:02[UTC]",
                "resets Friday at 12:00",
                "2026-11-27T12:00:00Z",
            ),
            (
                "2026-11-27T12:06[UTC]",
                "resets Friday at 12:00",
                "2026-12-04T12:00:00Z",
            ),
            (
                "2026-11-28T00:01[UTC]",
                "resets Friday at 23:58",
                "2026-11-27T23:58:00Z",
            ),
            (
                "2026-11-28T00:01[UTC]",
                "resets Nov 27, 11:59pm",
                "2026-11-27T23:59:00Z",
            ),
            (
                "2026-11-28T00:01[UTC]",
                "resets Nov 27, 11pm",
                "2027-11-27T23:00:00Z",
            ),
        ] {
            let time = find_at(message, &now.parse().unwrap()).unwrap();
            let time = Timestamp::from_millisecond(i64::try_from(time).unwrap()).unwrap();
            assert_eq!(time.to_string(), expected, "{message} at {now}");
        }
    }

    #[test]
    fn a_text_without_a_time_has_none() {
        for message in [
            "",
            "You've hit your limit",
            "The limit resets soon.",
            "resets 13pm",
            "resets at 25:00",
            "resets Feb 30",
            "resets in a while",
            "try again in 99999999999999999999 days",
            "retry in -3 h",
            "resets in 3",
            "resets 3pm (Nowhere/Atall)",
            "resets 1 2 3",
            "usage limit reached|",
            "resets é",
        ] {
            assert_eq!(found(message), None, "{message}");
        }
    }

    #[test]
    fn a_time_is_in_its_own_zone_or_else_in_that_of_the_machine() {
        if TimeZone::get("Europe/Berlin").is_err() {
            // Minimal systems have no database of zones.
            return;
        }
        let berlin = "resets 3pm (Europe/Berlin)";
        assert_eq!(found(berlin).as_deref(), Some("2026-11-27T14:00:00Z"));
        let now = now().in_tz("America/New_York").unwrap();
        let local = find_at("resets 3pm", &now).unwrap();
        assert_eq!(local, 1_795_809_600_000, "20:00 in UTC");
    }
}
