//! The arguments of `teamster supervise` and `teamster agents`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Subcommand};
use teamster::agent_loop::supervisor::{FILE_NAME, FILE_VARIABLE};

use super::value;

const SUPERVISE_SHORT: &str = "\
Examples:
  teamster supervise                   the agents of ./agents.config.json
  teamster agents status               in another terminal: what they do
The configuration, signals and the exit codes: teamster supervise --help";

const SUPERVISE_EXAMPLES: &str = "\
Examples:
  teamster supervise                             the agents of ./agents.config.json
  teamster supervise ~/company/agents.config.json
  teamster agents status                         in another terminal: what they do

The least that a configuration can be, for an agent in ./agents/helper with its CLAUDE.md:
  {\"agents\": [{\"id\": \"helper\"}]}

Signals: SIGTERM and SIGINT end it with its loops, a second one at once; SIGHUP reads the
configuration again.

Exit codes:
    0  it was asked to end
    1  something failed in teamster itself
    2  the configuration cannot be used, or its folder is that of another one or of a supervisor
       that is running";

/// Keeps the loops of many agents running.
///
/// Starts `teamster loop` for every agent of the configuration. A loop that crashes is started again,
/// after a delay that grows from 1 second to 5 minutes; one whose directory or settings cannot be used is
/// tried again from time to time; one that ends in order is not. `teamster agents` tells it what to do.
/// What was stopped stays stopped, also for the next supervisor. If this one is killed, the loops go on,
/// and the next one takes them over.
#[derive(Debug, Args)]
#[command(after_help = SUPERVISE_SHORT, after_long_help = SUPERVISE_EXAMPLES)]
pub(crate) struct SuperviseArgs {
    /// The configuration
    #[arg(value_name = "FILE", env = FILE_VARIABLE, default_value = FILE_NAME, value_parser = file())]
    pub(crate) config: PathBuf,
    /// How long a loop that is stopped may take to end before it is killed, such as 5s or 1m; `0` for not at all,
    /// `off` for as long as it takes
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = grace)]
    pub(crate) grace: Duration,
    /// Leave the loops running at the end, for the next supervisor
    #[arg(long)]
    pub(crate) keep_agents: bool,
}

const AGENTS_SHORT: &str = "\
Examples:
  teamster agents status               what each of them does
  teamster agents stop qa-bot          until it is started again
More examples and the exit codes: teamster agents --help";

const AGENTS_EXAMPLES: &str = "\
Examples:
  teamster agents status                 what each of them does
  teamster agents stop qa-bot            until it is started again
  teamster agents wake pm-bot            the next tick, now
  teamster agents logs pm-bot --follow
  teamster agents stop --all             all of them, until `start --all`

Exit codes:
    0  it was done; of status: all agents that are switched on run
    1  an agent does not do what was asked for, no supervisor is running, or something failed in
       teamster itself; of status: an agent that is switched on fails or does not run
    2  there is no such agent, or the configuration cannot be used
    4  of status: nothing is wrong but that an agent waits for a limit of the service
  130  the reader of the output is gone";

/// Shows the agents of a supervisor, and tells it what to do.
///
/// It is asked over a Unix socket beside the configuration, which only its own user can reach. `status`
/// and `logs` read the files where no supervisor is running.
#[derive(Debug, Args)]
#[command(after_help = AGENTS_SHORT, after_long_help = AGENTS_EXAMPLES, arg_required_else_help = true, subcommand_required = true)]
pub(crate) struct AgentsArgs {
    /// The configuration
    #[arg(long, value_name = "FILE", env = FILE_VARIABLE, default_value = FILE_NAME, value_parser = file(), global = true)]
    pub(crate) config: PathBuf,
    #[command(subcommand)]
    pub(crate) command: AgentsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    Status(AgentsStatusArgs),
    /// Starts agents, and waits until they run
    Start(AgentsSelection),
    /// Stops agents, until they are started again
    ///
    /// With --all nothing is started any more, whatever the switches of single agents say, until
    /// `start --all`. To start one of them then turns off all others.
    Stop(AgentsSelection),
    /// Ends the loops of agents and starts new ones
    ///
    /// With --all only of those that are not stopped.
    Restart(AgentsSelection),
    /// Ends the sleep of agents: the next tick begins now
    ///
    /// One that is in a tick begins the next one when that is over.
    Wake(AgentsSelection),
    /// Has the configuration read again
    Reload,
    Watch(AgentsWatchArgs),
    Logs(AgentsLogsArgs),
}

/// Shows what the agents do.
#[derive(Debug, Args)]
pub(crate) struct AgentsStatusArgs {
    /// Only these
    #[arg(value_name = "ID")]
    pub(crate) agents: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which agents are meant.
#[derive(Debug, Args)]
#[group(id = "selection", required = true, multiple = false)]
pub(crate) struct AgentsSelection {
    /// These
    #[arg(value_name = "ID", group = "selection", num_args = 1..)]
    pub(crate) agents: Vec<String>,
    /// All of them
    #[arg(long, group = "selection")]
    pub(crate) all: bool,
}

/// Shows what changes, as it changes.
#[derive(Debug, Args)]
pub(crate) struct AgentsWatchArgs {
    /// Print each update of the socket, one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows what the loop of an agent has written.
#[derive(Debug, Args)]
pub(crate) struct AgentsLogsArgs {
    /// Which
    #[arg(value_name = "ID")]
    pub(crate) agent: String,
    /// How many lines from the end
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    pub(crate) lines: usize,
    /// Show what comes, too
    #[arg(long, short)]
    pub(crate) follow: bool,
}

/// How long a loop may take to end.
fn grace(text: &str) -> Result<Duration, String> {
    match text {
        "0" => Ok(Duration::ZERO),
        text => value::limit(text),
    }
}

/// A file's path. A variable that is empty is as good as none.
fn file() -> impl TypedValueParser<Value = PathBuf> {
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
    fn no_grace_is_not_an_endless_one() {
        assert_eq!(grace("0"), Ok(Duration::ZERO));
        assert_eq!(grace("off"), Ok(Duration::MAX));
        assert_eq!(grace("90s"), Ok(Duration::from_secs(90)));
    }
}
