//! Arguments of `teamster agents`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use teamster::agent_loop::supervisor::{FILE_NAME, FILE_VARIABLE};

use crate::args::value::config_path;
use crate::completion;

const SHORT: &str = "\
Examples:
  teamster agents status               state of each agent
  teamster agents stop qa-bot          stop it until `start`
More examples and the exit codes: teamster agents --help";

const EXAMPLES: &str = "\
Examples:
  teamster agents status                 state of each agent
  teamster agents stop qa-bot            stop it until `start`
  teamster agents wake pm-bot            begin its next tick now
  teamster agents logs pm-bot --follow
  teamster agents stop --all             stop all until `start --all`

Exit codes:
    0  done; for status: all enabled agents run
    1  the command had no effect on an agent, no supervisor is running, or an internal failure;
       for status: an enabled agent fails or does not run
    2  unknown agent, or the configuration cannot be used
    4  for status: nothing is wrong except that an agent waits for a service limit
  130  the reader of the output is gone";

/// Control the agents of a supervisor.
///
/// Talks to the supervisor over a Unix socket beside the configuration, which only its user can reach.
/// Without a supervisor, `status` and `logs` read the files.
#[derive(Debug, Args)]
#[command(after_help = SHORT, after_long_help = EXAMPLES, arg_required_else_help = true, subcommand_required = true)]
pub(crate) struct AgentsArgs {
    /// The configuration
    #[arg(long, value_name = "FILE", env = FILE_VARIABLE, default_value = FILE_NAME, value_parser = config_path(), global = true)]
    pub(crate) config: PathBuf,
    #[command(subcommand)]
    pub(crate) command: AgentsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    Status(AgentsStatusArgs),
    /// Start agents, and wait until they run
    Start(AgentsSelection),
    /// Stop agents until they are started again
    ///
    /// With --all nothing is started until `start --all`, regardless of the switches of single agents.
    /// Starting one of them then disables all others.
    Stop(AgentsSelection),
    /// Restart the loops of agents
    ///
    /// With --all, only those that are not stopped.
    Restart(AgentsSelection),
    /// Wake sleeping agents: the next tick begins now
    ///
    /// An agent in a tick begins the next one right after it.
    Wake(AgentsSelection),
    /// Reload the configuration
    Reload,
    Watch(AgentsWatchArgs),
    Logs(AgentsLogsArgs),
}

/// Show the state of the agents.
#[derive(Debug, Args)]
pub(crate) struct AgentsStatusArgs {
    /// Only these agents
    #[arg(value_name = "ID", add = ArgValueCandidates::new(completion::agents))]
    pub(crate) agents: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Selection of agents.
#[derive(Debug, Args)]
#[group(id = "selection", required = true, multiple = false)]
pub(crate) struct AgentsSelection {
    /// The agents' ids
    #[arg(value_name = "ID", group = "selection", num_args = 1.., add = ArgValueCandidates::new(completion::agents))]
    pub(crate) agents: Vec<String>,
    /// All agents
    #[arg(long, group = "selection")]
    pub(crate) all: bool,
}

/// Print state changes as they happen.
#[derive(Debug, Args)]
pub(crate) struct AgentsWatchArgs {
    /// Print each update of the socket, one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print the log of an agent's loop.
#[derive(Debug, Args)]
pub(crate) struct AgentsLogsArgs {
    /// The agent's id
    #[arg(value_name = "ID", add = ArgValueCandidates::new(completion::agents))]
    pub(crate) agent: String,
    /// Print this many of the last lines
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    pub(crate) lines: usize,
    /// Keep printing new lines
    #[arg(long, short)]
    pub(crate) follow: bool,
}
