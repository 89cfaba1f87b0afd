//! Schedules of a configuration: runs that start at times.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use cronexpr::{Crontab, MakeTimestamp};
use jiff::Timestamp;
use jiff::tz::TimeZone;
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

/// A schedule in the file.
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
        if let Some(directory) = &mut run.working_directory {
            *directory = super::without_dots(&folder.join(&*directory));
        }
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
        let far = || "it has no further time".to_owned();
        match &self.when {
            When::Cron(expression) => {
                let crontab = Crontab::from_str(expression)
                    .map_err(|error| format!("cron: {}", reason(&error.to_string())))?;
                let next = crontab.find_next(MakeTimestamp(last));
                next.map(|next| next.timestamp()).map_err(|_| far())
            }
            When::Every(every) => last.checked_add(*every).map_err(|_| far()),
        }
    }
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
