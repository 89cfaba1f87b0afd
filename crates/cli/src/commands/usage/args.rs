//! Arguments of `teamster usage`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use teamster::usage::Provider;
use teamster_api::usage::Dimension;
use teamster_host::usage::When;

use crate::args::{StoreArgs, value};

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
    #[arg(long, value_name = "WHAT", value_parser = value::named_values(BY))]
    pub(crate) by: Option<Dimension>,
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

/// Values of `--by` with their help texts.
const BY: &[(Dimension, &str)] = &[
    (Dimension::Day, "The day, in the time zone of this machine"),
    (Dimension::Week, "The week, by its Monday"),
    (Dimension::Month, "The month"),
    (Dimension::Model, "The model, as its CLI writes it"),
    (
        Dimension::Agent,
        "The agent: the directory in which its session began",
    ),
    (
        Dimension::Project,
        "The project: the directory in which the request was made",
    ),
    (Dimension::Session, "The session"),
    (Dimension::Provider, "The CLI"),
    (Dimension::Key, "The key of `--session-key`"),
    (Dimension::Account, "The account of `--account`"),
];

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
