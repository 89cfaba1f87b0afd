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
  teamster runs diff 0199d1c2-7e3a       what it has changed in its worktree
  teamster runs apply 0199d1c2-7e3a      take these changes over into the files here
  teamster runs fetch 0199d1c2-7e3a fix  make a branch `fix` of its commits
  cd \"$(teamster runs open 0199d1c2-7e3a)\"
  teamster runs forget 0199d1c2-7e3a     delete it
  teamster runs forget --older-than 90d --logs-over 2G";

/// The history of runs, and what they have changed.
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
    Rename(RunsRenameArgs),
    Again(RunsAgainArgs),
    Diff(RunsDiffArgs),
    Apply(RunsApplyArgs),
    Fetch(RunsFetchArgs),
    Files(RunsFilesArgs),
    Open(RunsOpenArgs),
    Forget(RunsForgetArgs),
}

/// The run that a command is about.
#[derive(Debug, Args)]
pub(crate) struct RunIdArgs {
    /// The run's id, or a unique prefix of it
    #[arg(add = ArgValueCandidates::new(completion::runs))]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Give a run another title.
///
/// Every run has one from its start: that of --title, or the first line of its prompt.
#[derive(Debug, Args)]
pub(crate) struct RunsRenameArgs {
    #[command(flatten)]
    pub(crate) run: RunIdArgs,
    /// The title [default: the first one again]
    #[arg(value_name = "TITLE")]
    pub(crate) title: Option<String>,
}

/// Start a run again, as a new detached one.
///
/// It has the same prompt and options, and its id is printed. A session that was resumed is not resumed again, unless by
/// its --session-key. Values that may be secret, such as of --env, are not kept: a run with such an option is started by
/// `teamster run`.
#[derive(Debug, Args)]
pub(crate) struct RunsAgainArgs {
    // Without --store: the new run has that of its spec.
    /// The run's id, or a unique prefix of it
    #[arg(add = ArgValueCandidates::new(completion::runs))]
    pub(crate) id: String,
}

/// Show what a run has changed in its worktree.
///
/// Committed changes and others alike, so far while the run is live. A pipe or file gets a patch that
/// `git apply` takes.
#[derive(Debug, Args)]
pub(crate) struct RunsDiffArgs {
    #[command(flatten)]
    pub(crate) run: RunIdArgs,
    /// Show the number of changed lines of each file
    #[arg(long)]
    pub(crate) stat: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Only files at these paths of the repository, and below them
    #[arg(last = true, value_name = "PATH")]
    pub(crate) paths: Vec<String>,
}

/// Apply the changes of a run to the files of the repository here.
///
/// All of them, or none: where a file does not fit, nothing is changed. Neither commits nor the index are
/// touched.
#[derive(Debug, Args)]
pub(crate) struct RunsApplyArgs {
    #[command(flatten)]
    pub(crate) run: RunIdArgs,
    /// Also add the changes to the index
    #[arg(long)]
    pub(crate) index: bool,
}

/// Make a branch of a run's commits in the repository here.
///
/// A branch that exists is moved forward, unless it has other commits or is checked out. What the run has not
/// committed becomes a commit on top, which only the ref `refs/teamster/ID/wip` has.
#[derive(Debug, Args)]
pub(crate) struct RunsFetchArgs {
    #[command(flatten)]
    pub(crate) run: RunIdArgs,
    /// The branch [default: that of the run]
    #[arg(value_name = "BRANCH")]
    pub(crate) branch: Option<String>,
}

/// List or copy the files that were collected at the end of a run (`teamster run --artifact`).
#[derive(Debug, Args)]
pub(crate) struct RunsFilesArgs {
    #[command(flatten)]
    pub(crate) run: RunIdArgs,
    /// Copy the files into this folder, which is created if missing; files that exist are not replaced
    #[arg(long, short = 'o', value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long, conflicts_with = "output")]
    pub(crate) json: bool,
}

/// Print the directory of a run: its worktree, or where the agent worked.
#[derive(Debug, Args)]
pub(crate) struct RunsOpenArgs {
    #[command(flatten)]
    pub(crate) run: RunIdArgs,
}

/// List runs, newest first.
#[derive(Debug, Args)]
pub(crate) struct RunsListArgs {
    /// Show at most this many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Only runs whose title has these words, in any order
    #[arg(long, value_name = "WORDS")]
    pub(crate) text: Option<String>,
    /// Only runs of this agent
    #[arg(long, visible_alias = "agent", value_name = "AGENT", value_parser = provider::ProviderParser)]
    pub(crate) provider: Option<String>,
    /// Only runs with this status
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<Status>,
    /// Only runs started within this time, such as 90s, 5m or 24h
    #[arg(long, value_name = "TIME", value_parser = value::limit)]
    pub(crate) since: Option<std::time::Duration>,
    /// Only runs in this directory or below it, such as the ticks of the agent there
    #[arg(long, visible_alias = "directory", value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
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
