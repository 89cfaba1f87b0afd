//! The arguments that name the store, and those of `teamster runs`.

use clap::{Args, Subcommand, ValueEnum};

use super::value;

/// What names the store.
pub(crate) const STORE_VARIABLE: &str = "TEAMSTER_STORE";

/// Where sessions and the history of runs are kept.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Store")]
pub(crate) struct StoreArgs {
    /// Where sessions and the history of runs are kept: a file, `postgres://...`, or `off`
    /// [default: `teamster/store.db` in `$XDG_STATE_HOME`, else in `~/.local/state`]
    ///
    /// The history has one row a run: a hash of the prompt and never the prompt, the agent, times,
    /// tokens, cost, and how it ended. A URL with a password belongs into the variable: arguments can be
    /// read by every user of the machine.
    #[arg(
        long = "store",
        value_name = "FILE|URL|off",
        env = STORE_VARIABLE,
        hide_env_values = true,
        hide_short_help = true
    )]
    pub(crate) url: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  teamster runs list                     the last runs
  teamster runs list --status error --since 1h
  teamster runs show 0199d               one of them, by the beginning of its id
  teamster runs list --json | jq -s 'map(.costUsd // 0) | add'
  teamster runs forget 0199d             this one
  teamster runs forget --older-than 90d";

/// Shows the history of runs, and forgets it.
///
/// Every `teamster run` has a row in it. A run whose process was killed is shown as interrupted.
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

/// Lists runs, the newest first.
#[derive(Debug, Args)]
pub(crate) struct RunsListArgs {
    /// How many at most
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Only those of this agent
    #[arg(long, value_name = "AGENT", value_parser = super::provider::ProviderParser)]
    pub(crate) provider: Option<String>,
    /// Only those that ended like this
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<Status>,
    /// Only those that began within this time, such as 90s, 5m or 24h
    #[arg(long, value_name = "TIME", value_parser = value::limit)]
    pub(crate) since: Option<std::time::Duration>,
    /// Print each as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Shows one run with all that is known of it.
#[derive(Debug, Args)]
pub(crate) struct RunsShowArgs {
    /// Its id, or the beginning of it
    pub(crate) id: String,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Forgets runs that are over, and says how many.
///
/// Sessions are kept, and so are runs that go on.
#[derive(Debug, Args)]
pub(crate) struct RunsForgetArgs {
    /// These, each by its id or the beginning of it
    #[arg(
        value_name = "ID",
        required_unless_present = "older_than",
        conflicts_with = "older_than"
    )]
    pub(crate) ids: Vec<String>,
    /// Those that ended longer ago than this, such as 12h or 30d; 0 for all
    #[arg(long, value_name = "TIME", value_parser = value::age)]
    pub(crate) older_than: Option<std::time::Duration>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Status {
    /// It goes on
    Running,
    /// It went well
    Success,
    /// It failed
    Error,
    /// It was stopped
    Aborted,
    /// Its process was killed
    Interrupted,
}
