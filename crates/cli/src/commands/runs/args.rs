//! Arguments of `teamster runs`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use clap_complete::ArgValueCandidates;

use crate::args::{StoreArgs, provider, value};
use crate::completion;

const EXAMPLES: &str = "\
Examples:
  teamster runs list                     the last runs
  teamster runs list --status error --since 1h
  teamster runs list --cwd agents/triage the ticks of an agent in a loop
  teamster runs list --live              detached runs that are running
  teamster runs show 0199d1c2-7e3a       one run, by a prefix of its id
  teamster runs list --json | jq -s 'map(.costUsd // 0) | add'
  teamster runs forget 0199d1c2-7e3a     delete it
  teamster runs forget --older-than 90d --logs-over 2G";

/// List and delete run history.
///
/// Each `teamster run` has a row. A run whose process was killed is shown as interrupted.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true, subcommand_required = true)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    pub(crate) command: RunsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    List(RunsListArgs),
    Show(RunsShowArgs),
    Forget(RunsForgetArgs),
}

/// List runs, newest first.
#[derive(Debug, Args)]
pub(crate) struct RunsListArgs {
    /// Show at most this many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Only runs of this agent
    #[arg(long, value_name = "AGENT", value_parser = provider::ProviderParser)]
    pub(crate) provider: Option<String>,
    /// Only runs with this status
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<Status>,
    /// Only runs started within this time, such as 90s, 5m or 24h
    #[arg(long, value_name = "TIME", value_parser = value::limit)]
    pub(crate) since: Option<std::time::Duration>,
    /// Only runs in this directory, such as the ticks of the agent there
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) cwd: Option<PathBuf>,
    /// Only running detached runs, with their pending requests
    #[arg(long, conflicts_with_all = ["status", "since"])]
    pub(crate) live: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Show one run in full.
#[derive(Debug, Args)]
pub(crate) struct RunsShowArgs {
    /// The run's id, or a unique prefix of it
    #[arg(add = ArgValueCandidates::new(completion::runs))]
    pub(crate) id: String,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Delete ended runs from the history, and the logs of detached runs.
///
/// Sessions and runs that are still running are kept.
#[derive(Debug, Args)]
pub(crate) struct RunsForgetArgs {
    /// The runs' ids, or unique prefixes of them
    #[arg(
        value_name = "ID",
        required_unless_present_any = ["older_than", "logs_over"],
        conflicts_with_all = ["older_than", "logs_over"],
        add = ArgValueCandidates::new(completion::runs)
    )]
    pub(crate) ids: Vec<String>,
    /// Runs that ended longer ago than this, such as 12h or 30d; 0 for all
    #[arg(long, value_name = "TIME", value_parser = value::age)]
    pub(crate) older_than: Option<std::time::Duration>,
    /// Delete the oldest logs of detached runs until the rest takes at most this much, such as 500M or 2G; the
    /// history keeps their runs
    #[arg(long, value_name = "SIZE", value_parser = value::size)]
    pub(crate) logs_over: Option<u64>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Values of `runs list --status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Status {
    /// Still running
    Running,
    /// The agent finished
    #[value(alias = "success")]
    Completed,
    /// The agent failed
    #[value(alias = "error")]
    Failed,
    /// Stopped
    Aborted,
    /// Its process was killed
    Interrupted,
}
