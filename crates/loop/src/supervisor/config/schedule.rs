//! Schedules of a configuration: runs that start at times.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use cronexpr::{Crontab, MakeTimestamp};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use teamster_api::RunSpec;

/// The shortest interval of a schedule.
const SHORTEST: Duration = Duration::from_secs(1);

/// A run that starts at times.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ScheduleConfig {
    /// Id of the schedule, which is the title of its runs unless they have another.
    pub id: String,
    /// The times.
    pub when: When,
    /// What happens if a time has passed while no supervisor was running, everything was stopped or the machine slept.
    pub missed: Missed,
    /// The run.
    pub run: RunSpec,
}

/// Times of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum When {
    /// A cron expression of five fields, followed by the name of a time zone.
    Cron(String),
    /// An interval, which begins when the schedule is first seen.
    Every(Duration),
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cron(expression) => f.write_str(expression),
            Self::Every(every) => write!(
                f,
                "every {}",
                humantime_serde::re::humantime::format_duration(*every)
            ),
        }
    }
}

/// Policy for times that were missed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Missed {
    /// The next time counts.
    #[default]
    Skip,
    /// One run starts at once, however many times were missed.
    Run,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object")]
pub(super) struct RawSchedule {
    pub(super) id: String,
    cron: Option<String>,
    time_zone: Option<String>,
    #[serde(default, with = "humantime_serde")]
    every: Option<Duration>,
    #[serde(default)]
    missed: Missed,
    run: RunSpec,
}

impl ScheduleConfig {
    /// Reads a schedule of a file in this folder. The error is a problem and its fix.
    pub(super) fn of(raw: RawSchedule, folder: &Path) -> Result<Self, String> {
        let when = match (raw.cron, raw.every, raw.time_zone) {
            (Some(cron), None, zone) => When::Cron(with_zone(&cron, zone)?),
            (None, Some(every), None) if every >= SHORTEST => When::Every(every),
            (None, Some(_), None) => return Err("`every` is less than a second".to_owned()),
            (None, Some(_), Some(_)) => {
                return Err("`timeZone` belongs to `cron`: leave it out".to_owned());
            }
            _ => {
                return Err(
                    "write either `cron`, such as \"0 2 * * 1-5\", or `every`, such as \"30m\""
                        .to_owned(),
                );
            }
        };
        let mut run = raw.run;
        run.directories_from(folder);
        run.check().map_err(|error| format!("run: {error}"))?;
        run.title.get_or_insert_with(|| raw.id.clone());
        let schedule = Self {
            id: raw.id,
            when,
            missed: raw.missed,
            run,
        };
        schedule.next_after(Timestamp::now())?;
        Ok(schedule)
    }

    /// Returns the first time after this one. The error is that of a cron expression.
    pub(crate) fn next_after(&self, last: Timestamp) -> Result<Timestamp, String> {
        let far = || "it never runs again".to_owned();
        match &self.when {
            When::Cron(expression) => {
                let (fields, zone) = expression.rsplit_once(' ').unwrap_or((expression, "UTC"));
                let zone = TimeZone::get(zone).map_err(|error| format!("`timeZone`: {error}"))?;
                // In UTC, no time is left out and none comes twice. The crate's search in a zone does not end at a change of
                // half an hour.
                let clock = parsed(&format!("{fields} UTC"))?;
                let hours = fields.split_whitespace().nth(1).unwrap_or_default();
                let next = if hours.starts_with('*') {
                    next_shown(&clock, &zone, last)
                } else {
                    next_planned(&clock, &zone, last)
                };
                next.ok_or_else(far)
            }
            When::Every(every) => last.checked_add(*every).map_err(|_| far()),
        }
    }
}

/// Returns a time of a clock on the wall as if that clock were in UTC.
fn as_utc(time: DateTime) -> Option<Timestamp> {
    TimeZone::UTC.to_timestamp(time).ok()
}

/// Returns the first time after this one that the clock on the wall shows, of an expression in UTC: one that it leaves out is
/// none, and one that comes twice is two.
fn next_shown(clock: &Crontab, zone: &TimeZone, last: Timestamp) -> Option<Timestamp> {
    let mut offset = zone.to_offset(last);
    let mut shown = as_utc(offset.to_datetime(last))?;
    let next_in = |shown, offset: Offset| {
        let next = clock.find_next(MakeTimestamp(shown)).ok()?;
        offset.to_timestamp(next.datetime()).ok()
    };
    for change in zone.following(last) {
        let due = next_in(shown, offset)?;
        if due < change.timestamp() {
            return Some(due);
        }
        offset = change.offset();
        // The moment of the change counts too.
        let changed = as_utc(offset.to_datetime(change.timestamp()))?;
        shown = changed.checked_sub(SignedDuration::from_mins(1)).ok()?;
    }
    next_in(shown, offset)
}

/// Returns the first time after this one of an expression in UTC with fixed hours, by the clock on the wall: a time that the
/// clock leaves out is the moment at which it is put forward, and one that comes twice is the first of the two.
fn next_planned(clock: &Crontab, zone: &TimeZone, last: Timestamp) -> Option<Timestamp> {
    let mut shown = as_utc(zone.to_datetime(last))?;
    loop {
        let next = clock.find_next(MakeTimestamp(shown)).ok()?;
        shown = next.timestamp();
        let time = zone.to_ambiguous_timestamp(next.datetime());
        let due = match time.offset() {
            AmbiguousOffset::Gap { .. } => {
                let before = time.earlier().ok();
                before.and_then(|before| Some(zone.following(before).next()?.timestamp()))
            }
            _ => time.earlier().ok(),
        };
        match due {
            Some(due) if due <= last => {}
            due => return due,
        }
    }
}

/// Parses a cron expression with a time zone.
fn parsed(expression: &str) -> Result<Crontab, String> {
    Crontab::from_str(expression).map_err(|error| format!("cron: {}", reason(&error.to_string())))
}

/// Returns a cron expression with its time zone: that of the machine without one.
fn with_zone(cron: &str, zone: Option<String>) -> Result<String, String> {
    let fields = cron.split_whitespace().count();
    let zone = match zone {
        Some(zone) if TimeZone::get(&zone).is_err() => {
            return Err(format!(
                "`timeZone`: unknown time zone {zone:?}: write a name such as \"Europe/Berlin\""
            ));
        }
        Some(zone) => zone,
        None => {
            let system = TimeZone::system();
            system.iana_name().unwrap_or("UTC").to_owned()
        }
    };
    match fields {
        5 => Ok(format!("{} {zone}", cron.trim())),
        _ => Err(format!(
            "`cron` has {fields} fields instead of 5: minute, hour, day of month, month, day of week, such as \
             \"0 2 * * 1-5\""
        )),
    }
}

/// Returns the reason of a parser's error, without its drawing of the expression.
fn reason(message: &str) -> &str {
    message
        .rsplit_once("^ ")
        .map_or(message, |(_, reason)| reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the first times after `last` in Berlin.
    fn times(cron: &str, last: &str, count: usize) -> Vec<String> {
        times_in("Europe/Berlin", cron, last, count)
    }

    fn times_in(zone: &str, cron: &str, last: &str, count: usize) -> Vec<String> {
        let schedule = ScheduleConfig {
            id: "s".to_owned(),
            when: When::Cron(format!("{cron} {zone}")),
            missed: Missed::Skip,
            run: RunSpec::new("claude", "x"),
        };
        let mut last: Timestamp = last.parse().unwrap();
        let mut times = Vec::new();
        while times.len() < count {
            last = schedule.next_after(last).unwrap();
            times.push(last.to_string());
        }
        times
    }

    /// On 2027-03-28, 03:00 follows 02:00 there, at 01:00 in UTC.
    #[test]
    fn time_that_the_clock_leaves_out_is_when_it_is_put_forward() {
        let next = ["2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"];
        assert_eq!(times("30 2 * * *", "2027-03-27T01:30:00Z", 2), next);
        let next = ["2027-03-28T01:00:00Z", "2027-03-29T00:15:00Z"];
        assert_eq!(times("15,45 2 * * *", "2027-03-27T22:00:00Z", 2), next);
        let next = ["2027-03-28T01:00:00Z", "2027-03-29T00:00:00Z"];
        assert_eq!(times("0 2,3 * * *", "2027-03-27T22:00:00Z", 2), next);
        let next = ["2027-03-28T01:00:00Z", "2027-03-28T02:00:00Z"];
        assert_eq!(times("0 * * * *", "2027-03-28T00:00:00Z", 2), next);
    }

    /// On 2027-10-31, 02:00 follows 03:00 there, at 01:00 in UTC.
    #[test]
    fn time_that_comes_twice_is_the_first_of_the_two() {
        let next = ["2027-10-31T00:30:00Z", "2027-11-01T01:30:00Z"];
        assert_eq!(times("30 2 * * *", "2027-10-30T00:30:00Z", 2), next);
        // Within the second hour.
        assert_eq!(times("30 2 * * *", "2027-10-31T01:10:00Z", 1), next[1..]);
        let next = [
            "2027-10-31T00:30:00Z",
            "2027-10-31T01:00:00Z",
            "2027-10-31T01:30:00Z",
            "2027-10-31T02:00:00Z",
        ];
        assert_eq!(times("*/30 * * * *", "2027-10-31T00:00:00Z", 4), next);
    }

    /// There, on 2027-04-04, 01:30 follows 02:00, at 15:00 in UTC, and on 2027-10-03, 02:30 follows 02:00, at 15:30 in UTC.
    #[test]
    fn change_of_half_an_hour_is_followed() {
        let times = |cron, last, count| times_in("Australia/Lord_Howe", cron, last, count);
        let next = ["2027-04-03T15:30:00Z", "2027-04-03T17:30:00Z"];
        assert_eq!(times("0 */2 * * *", "2027-04-03T13:30:00Z", 2), next);
        let next = [
            "2027-04-03T14:30:00Z",
            "2027-04-03T15:00:00Z",
            "2027-04-03T15:30:00Z",
        ];
        assert_eq!(times("*/30 * * * *", "2027-04-03T14:00:00Z", 3), next);
        let next = ["2027-10-02T15:30:00Z", "2027-10-03T15:15:00Z"];
        assert_eq!(times("15 2 * * *", "2027-10-01T16:00:00Z", 2), next);
        let next = ["2027-10-02T15:30:00Z", "2027-10-02T16:00:00Z"];
        assert_eq!(times("*/30 * * * *", "2027-10-02T15:00:00Z", 2), next);
    }

    /// There, 2011-12-31 follows 2011-12-29, on 2011-12-30 at 10:00 in UTC.
    #[test]
    fn day_that_the_clock_leaves_out_is_one_moment() {
        let times = |cron, count| times_in("Pacific/Apia", cron, "2011-12-29T22:00:00Z", count);
        let next = ["2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"];
        assert_eq!(times("0 12 * * *", 2), next);
        let next = ["2011-12-30T04:00:00Z", "2011-12-30T10:00:00Z"];
        assert_eq!(times("0 */6 * * *", 2), next);
    }

    #[test]
    fn times_of_a_zone_without_changes_follow_each_other() {
        let next = ["2027-03-28T02:00:00Z", "2027-03-28T04:00:00Z"];
        let times = times_in("UTC", "0 */2 * * *", "2027-03-28T00:00:00Z", 2);
        assert_eq!(times, next);
    }
}
