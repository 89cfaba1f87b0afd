//! Arguments of `teamster supervise` and `teamster agents`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use teamster::agent_loop::supervisor::{FILE_NAME, FILE_VARIABLE};

use super::value;
use crate::completion;

const SUPERVISE_SHORT: &str = "\
Examples:
  teamster supervise                   the agents of ./agents.config.json
  teamster agents status               in another terminal: their state
The configuration, signals and the exit codes: teamster supervise --help";

const SUPERVISE_EXAMPLES: &str = "\
Examples:
  teamster supervise                             the agents of ./agents.config.json
  teamster supervise ~/company/agents.config.json
  teamster agents status                         in another terminal: their state

The smallest configuration, for an agent in ./agents/helper with its CLAUDE.md:
  {\"agents\": [{\"id\": \"helper\"}]}

Signals: SIGTERM and SIGINT stop the supervisor and its loops, a second one at once; SIGHUP
reloads the configuration.

Exit codes:
    0  stopped by request
    1  internal failure
    2  the configuration cannot be used, or its folder belongs to another one or to a running
       supervisor";

/// Run and restart the loops of many agents.
///
/// Starts `teamster loop` for every agent of the configuration. A loop that crashes is restarted, with a
/// backoff of 1 second to 5 minutes; one whose directory or settings cannot be used is retried from time
/// to time; one that exits cleanly is not restarted. `teamster agents` controls it. Stopped agents stay
/// stopped, also for the next supervisor. If the supervisor is killed, the loops keep running, and the
/// next supervisor adopts them.
#[derive(Debug, Args)]
#[command(after_help = SUPERVISE_SHORT, after_long_help = SUPERVISE_EXAMPLES)]
pub(crate) struct SuperviseArgs {
    /// The configuration
    #[arg(value_name = "FILE", env = FILE_VARIABLE, default_value = FILE_NAME, value_parser = config_path())]
    pub(crate) config: PathBuf,
    /// Kill a stopped loop that has not exited after this time, such as 5s or 1m; `0` kills at once,
    /// `off` waits without limit
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = grace)]
    pub(crate) grace: Duration,
    /// On exit, leave the loops running for the next supervisor
    #[arg(long)]
    pub(crate) keep_agents: bool,
}

const AGENTS_SHORT: &str = "\
Examples:
  teamster agents status               state of each agent
  teamster agents stop qa-bot          stop it until `start`
More examples and the exit codes: teamster agents --help";

const AGENTS_EXAMPLES: &str = "\
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
#[command(after_help = AGENTS_SHORT, after_long_help = AGENTS_EXAMPLES, arg_required_else_help = true, subcommand_required = true)]
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

/// Parses a grace period; `0` is none, and `off` is [`Duration::MAX`].
fn grace(text: &str) -> Result<Duration, String> {
    match text {
        "0" => Ok(Duration::ZERO),
        text => value::limit(text),
    }
}

/// Parses the path of a file. An empty path, as from an empty variable, is the default one.
fn config_path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(|path: OsString| {
        if path.is_empty() {
            FILE_NAME.into()
        } else {
            path.into()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_grace_is_not_unlimited() {
        assert_eq!(grace("0"), Ok(Duration::ZERO));
        assert_eq!(grace("off"), Ok(Duration::MAX));
        assert_eq!(grace("90s"), Ok(Duration::from_secs(90)));
    }
}
