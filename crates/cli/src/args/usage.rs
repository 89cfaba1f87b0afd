//! Arguments of `teamster usage`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use jiff::civil::{Date, DateTime, Time};
use jiff::{Span, Timestamp, Zoned};
use teamster::usage::Provider;
use teamster_api::usage::Dimension;

use super::{StoreArgs, value};

const SHORT: &str = "\
Examples:
  teamster usage --by month --models
  teamster usage --watch                  today's, while agents work
All options, more examples and the exit codes: teamster usage --help";

const EXAMPLES: &str = "\
Examples:
  teamster usage                               tokens and cost by day
  teamster usage --by month --models           each month, and its models
  teamster usage --watch                       today's, while agents work, and how fast it grows
  teamster usage --limits                      what is used of a subscription
  teamster usage --by model --since 7d
  teamster usage --by agent --since today      per agent, by its directory
  teamster usage --by session --since \"2026-11-22 09:00\" --until \"2026-11-22 12:00\"
  teamster usage --provider claude --since yesterday --until yesterday
  teamster usage --since 30d --json | jq .total.spentUsd

Exit codes:
    0  printed, or there was nothing to print
    1  the store or the price file cannot be read, or an internal failure
    2  the command line is wrong
  130  Ctrl-C or SIGTERM ended --watch, or the reader of the output is gone";

/// Show tokens and cost of all agents on this machine.
///
/// Reads the CLIs' own files, such as the transcripts of Claude Code, so usage without teamster is
/// included. Each request counts once, however many copies of it there are. Runs that are in no file
/// are taken from the history of runs. SPENT is the cost that a CLI reported, else an estimate at list
/// prices, marked with `~`: with a subscription it is not what was paid. Nothing is written, and
/// nothing is sent over the network.
#[derive(Debug, Clone, Args)]
#[command(after_help = SHORT, after_long_help = EXAMPLES)]
pub(crate) struct UsageArgs {
    /// Group by [default: day, with --watch provider]
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<By>,
    /// Start: a date, a time, `today`, `yesterday`, or an age such as 24h or 7d
    #[arg(long, value_name = "WHEN", value_parser = When::parse)]
    pub(crate) since: Option<When>,
    /// End, in the same forms; a day is included
    #[arg(long, value_name = "WHEN", value_parser = When::parse, hide_short_help = true)]
    pub(crate) until: Option<When>,
    /// Only this CLI (repeatable)
    #[arg(long = "provider", value_name = "NAME", value_parser = provider())]
    pub(crate) providers: Vec<Provider>,
    /// Show the models of each group below it
    #[arg(long)]
    pub(crate) models: bool,
    /// Show subscription limits instead: used share and reset time (Codex)
    #[arg(long, conflicts_with_all = ["statusline", "csv", "models"])]
    pub(crate) limits: bool,
    /// Print a status line for Claude Code, from the JSON that it writes to stdin
    #[arg(long, conflicts_with_all = ["csv", "json", "models"], hide_short_help = true)]
    pub(crate) statusline: bool,
    /// Refresh every INTERVAL (5s), with the burn rates of the last 15 and 60 minutes, until Ctrl-C;
    /// shows today unless --since is given
    ///
    /// A terminal is redrawn in place; a pipe or file gets a line each time.
    #[arg(
        long, value_name = "INTERVAL", value_parser = interval, num_args = 0..=1, require_equals = true,
        default_missing_value = "5s", conflicts_with_all = ["limits", "statusline", "csv", "json", "until"]
    )]
    pub(crate) watch: Option<Duration>,
    /// Prices in TOML that override the built-in table [default: `teamster/prices.toml`
    /// in `$XDG_CONFIG_HOME`, else in `~/.config`, if it exists]
    #[arg(
        long,
        value_name = "FILE",
        env = "TEAMSTER_PRICES",
        hide_env_values = true,
        hide_short_help = true
    )]
    pub(crate) prices: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Print comma-separated values with a heading, tokens and USD in full
    #[arg(long, conflicts_with = "json", hide_short_help = true)]
    pub(crate) csv: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Values of `usage --by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// The day, in the time zone of this machine
    Day,
    /// The week, by its Monday
    Week,
    /// The month
    Month,
    /// The model, as its CLI writes it
    Model,
    /// The agent: the directory in which its session began
    Agent,
    /// The project: the directory in which the request was made
    Project,
    /// The session
    Session,
    /// The CLI
    Provider,
    /// The key of `--session-key`
    Key,
}

impl By {
    pub(crate) fn dimension(self) -> Dimension {
        match self {
            Self::Day => Dimension::Day,
            Self::Week => Dimension::Week,
            Self::Month => Dimension::Month,
            Self::Model => Dimension::Model,
            Self::Agent => Dimension::Agent,
            Self::Project => Dimension::Project,
            Self::Session => Dimension::Session,
            Self::Provider => Dimension::Provider,
            Self::Key => Dimension::Key,
        }
    }

    /// Returns the value for a dimension.
    pub(crate) fn of(dimension: Dimension) -> Option<Self> {
        let mut all = Self::value_variants().iter();
        all.find(|by| by.dimension() == dimension).copied()
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Model => "model",
            Self::Agent => "agent",
            Self::Project => "project",
            Self::Session => "session",
            Self::Provider => "provider",
            Self::Key => "key",
        }
    }
}

/// Parses a refresh interval between 1 second and 24 hours.
fn interval(text: &str) -> Result<Duration, String> {
    match value::limit(text) {
        Ok(every) if (Duration::from_secs(1)..=Duration::from_hours(24)).contains(&every) => {
            Ok(every)
        }
        _ => Err("expected a time between 1s and 24h".to_owned()),
    }
}

fn provider() -> impl TypedValueParser<Value = Provider> {
    PossibleValuesParser::new(Provider::ALL.map(Provider::id))
        .try_map(|name| name.parse::<Provider>())
}

/// A point in time or a day, as given on the command line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum When {
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
    fn parse(text: &str) -> Result<Self, String> {
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
    pub(crate) fn begin(&self, now: &Zoned) -> Option<Timestamp> {
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
    pub(crate) fn end(&self, now: &Zoned) -> Option<Timestamp> {
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
