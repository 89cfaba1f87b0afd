//! Times at which a limit resets, in messages for people: `resets 3:45pm (Europe/Berlin)`, `regain access on 2027-01-01 at
//! 00:00 UTC`, `try again in 2h 5m`.

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::{Offset, TimeZone};
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
    "wait until ",
    "renews on ",
    "next reset: ",
    "reset time: ",
    // A field of the service's JSON.
    "resets_at\":",
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
    "reset after ",
    "resets after ",
    "please wait ",
];
/// Maximum number of words of a time.
const WORDS: usize = 9;
/// Time for which a limit that has reset is reported by a message that is older than the reset, in minutes.
const JUST_PASSED: i64 = 5;
/// Time from now of a reset that has just passed, in milliseconds.
const MOMENT_MS: u64 = 1000;
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
/// Abbreviations and names of zones in messages for people in North America and Europe, in lower case. That of the zone
/// of Chicago in winter is also China's, so it is not here.
const ZONES: &[(&[&str], &str)] = &[
    (&["pt", "pst", "pdt", "pacific"], "America/Los_Angeles"),
    (&["mt", "mst", "mdt", "mountain"], "America/Denver"),
    (&["ct", "cdt", "central"], "America/Chicago"),
    (&["et", "est", "edt", "eastern"], "America/New_York"),
    (&["bst"], "Europe/London"),
    (&["cet", "cest"], "Europe/Berlin"),
    (&["jst"], "Asia/Tokyo"),
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
/// of this machine. One without a date is the next one. A time that has just passed counts as a moment from now.
pub fn limit_reset_ms(message: &str) -> Option<u64> {
    let now = Zoned::now();
    Some(ahead(find_at(message, &now)?, &now))
}

/// Returns a time shortly after now for one that has just passed: a reset in the past is not waited for.
fn ahead(time: u64, now: &Zoned) -> u64 {
    let now = u64::try_from(now.timestamp().as_millisecond()).unwrap_or_default();
    if time >= now.saturating_sub(JUST_PASSED.unsigned_abs() * 60_000) {
        time.max(now + MOMENT_MS)
    } else {
        time
    }
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
        let word = word.trim_matches(['.', ';', '!', ':', '(', ')', '"', '\'']);
        if let Some(time) = word.parse().ok().or_else(|| since_epoch(word)) {
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

/// Returns the time that a number of seconds or milliseconds since the Unix epoch means.
fn since_epoch(word: &str) -> Option<Timestamp> {
    let number: i64 = word.parse().ok()?;
    match number {
        1_000_000_000..10_000_000_000 => Timestamp::from_second(number).ok(),
        1_000_000_000_000..10_000_000_000_000 => Timestamp::from_millisecond(number).ok(),
        _ => None,
    }
}

/// Returns the end of the wait whose length is at the beginning of a text: `3 h`, `2h 5m`, `45 minutes`.
fn wait(text: &str, now: &Zoned) -> Option<Timestamp> {
    let mut span = None;
    let mut length = String::new();
    for word in text.split_whitespace().take(WORDS) {
        let is_last = word.ends_with(['.', ';', '!', ')']);
        let word = word.trim_matches(['.', ',', ';', '!', '(', ')', '~']);
        match word.to_ascii_lowercase().as_str() {
            "about" | "approximately" | "and" | "less" | "than" => {}
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
            // "Central European Time" is not that of Chicago.
            "european" => return None,
            _ => {
                if let Ok(date) = lower.parse::<Date>() {
                    (self.year, self.month) = (Some(date.year()), Some(date.month()));
                    self.day = Some(date.day());
                    if lower.contains('t') {
                        self.time = Some(lower.parse::<DateTime>().ok()?.time());
                    }
                } else if let Some(zone) = offset(&lower) {
                    self.zone = Some(zone);
                } else if let Some(month) = is_start(MONTHS) {
                    self.month = Some(month + 1);
                } else if let Some(day) = is_start(DAYS) {
                    self.weekday = Weekday::from_monday_zero_offset(day).ok();
                } else if let Some((_, zone)) =
                    ZONES.iter().find(|(names, _)| names.contains(&&*lower))
                {
                    self.zone = Some(TimeZone::get(zone).ok()?);
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
                // In January, a day of December may be last year's.
                let last = date.checked_sub(1.year()).ok().and_then(at);
                let last = last.filter(|time| self.year.is_none() && *time >= earliest);
                if last.is_some() {
                    last
                } else if is_past && !has_just_passed() {
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

/// Returns the zone of an offset from UTC: `gmt+2`, `utc-3:30`.
fn offset(word: &str) -> Option<TimeZone> {
    let rest = word
        .strip_prefix("gmt")
        .or_else(|| word.strip_prefix("utc"))?;
    let (sign, rest) = match rest.strip_prefix('+') {
        Some(rest) => (1, rest),
        None => (-1, rest.strip_prefix('-')?),
    };
    let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "0"));
    let (hours, minutes): (u8, u8) = (hours.parse().ok()?, minutes.parse().ok()?);
    let seconds = (i32::from(hours) * 60 + i32::from(minutes)) * 60;
    Some(TimeZone::fixed(Offset::from_seconds(sign * seconds).ok()?))
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
mod tests;
