//! Arguments of `teamster worker`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

const SHORT: &str = "\
Example: teamster worker tls://nats.example --slots 4
SIGTERM or Ctrl-C drains it. More examples and the exit codes: teamster worker --help";

const EXAMPLES: &str = "\
Examples:
  teamster worker tls://nats.example             runs of the pool `default`, one at a time
  teamster worker --slots 4 --pool gpu --pool default
  teamster worker --policy worker.toml           what runs may do on this machine
  TEAMSTER_FLEET_CREDS=worker.creds teamster worker tls://nats.example --name mini

The agents' programs and logins are those of this machine: `teamster doctor` lists them. SIGTERM or
Ctrl-C drains, as `teamster fleet drain NAME` does from anywhere: the worker takes no more runs, and
ends with those that it has. A second one ends it at once; its runs continue, and the next worker
with its name follows them.

Exit codes:
    0  it was drained
    1  the fleet's server cannot be reached or refuses it, or an internal failure
    2  the command line is wrong, or another process is the worker of this name
  130  a second signal ended it";

/// Carry out runs of a fleet on this machine.
///
/// It takes runs from the queue, one for each free slot, for the agents that are installed and logged in here. They are
/// ordinary detached runs of this machine: `teamster runs list --live` shows them here, too.
#[derive(Debug, Args)]
#[command(after_help = SHORT, after_long_help = EXAMPLES)]
pub(crate) struct WorkerArgs {
    /// The fleet's servers, such as `tls://nats.example` [default: those of `teamster fleet use`]
    #[arg(value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Take runs of this pool (repeatable) [default: those of --policy, else `default`]
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Vec<String>,
    /// Carry out at most this many runs at once [default: that of --policy, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) slots: Option<u16>,
    /// The name of this worker [default: that of this machine]
    ///
    /// It stays the same after a restart: the next worker with this name continues its runs.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Interrupt the runs that are left after this long of draining, such as 10m; `off` waits for their ends
    /// [default: off]
    #[arg(long, value_name = "TIME", value_parser = crate::args::value::limit)]
    pub(crate) drain_timeout: Option<Duration>,
    /// Let runs do here what this file in TOML allows: agents, repositories, directories, permission modes, time
    ///
    /// Without it, runs work in a new empty directory, or in a repository that they bring along or name by its URL.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) policy: Option<PathBuf>,
    /// The file with the credentials of this worker, from the operator of the fleet: `.creds`, or the seed of an nkey
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) creds: Option<PathBuf>,
    /// The certificate in PEM of the authority that signs those of the servers [default: those that this machine trusts]
    #[arg(long, value_name = "FILE", hide_short_help = true, value_hint = ValueHint::FilePath)]
    pub(crate) ca: Option<PathBuf>,
    /// Have figures for Prometheus at this address, such as 127.0.0.1:9464, at /metrics
    ///
    /// They need no token, so let only your network reach it.
    #[arg(long, value_name = "ADDRESS", hide_short_help = true)]
    pub(crate) metrics: Option<SocketAddr>,
}
