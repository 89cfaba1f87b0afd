//! Arguments of `teamster supervise`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use teamster::agent_loop::supervisor::{FILE_NAME, FILE_VARIABLE};

use crate::args::value::{self, config_path};

const SHORT: &str = "\
Examples:
  teamster supervise                   the agents of ./agents.config.json
  teamster agents status               in another terminal: their state
The configuration, signals and the exit codes: teamster supervise --help";

const EXAMPLES: &str = "\
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
#[command(after_help = SHORT, after_long_help = EXAMPLES)]
pub(crate) struct SuperviseArgs {
    /// The configuration
    #[arg(value_name = "FILE", env = FILE_VARIABLE, default_value = FILE_NAME, value_parser = config_path())]
    pub(crate) config: PathBuf,
    /// Kill a stopped loop that has not exited after this time, such as 5s or 1m; `0` kills at once,
    /// `off` waits without limit
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = value::wait_time)]
    pub(crate) grace: Duration,
    /// On exit, leave the loops running for the next supervisor
    #[arg(long)]
    pub(crate) keep_agents: bool,
}
