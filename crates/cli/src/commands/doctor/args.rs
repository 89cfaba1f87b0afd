//! Arguments of `teamster doctor`.

use clap::Args;

use crate::args::value;

/// List the installed agent CLIs and check whether they can be used.
///
/// For each supported CLI: its path, its version, whether it is logged in, and the versions that teamster
/// is tested with; for a missing one, how to install it. Also lists processes that earlier runs left
/// behind, and configuration files that killed runs left changed.
///
/// No agent is started and nothing is sent over the network: each CLI only prints its version. One that npm has
/// installed, and that Node.js runs, is not even started if its `package.json` and Node.js show that it works; `--start`
/// starts it too. Logins are detected by the CLI's files and the environment; if a keychain may hold a login, it is
/// `unknown`. The exit code is 0 if at least one CLI can be used, else 3.
///
/// With `--remote`, the agents are those of another machine, with the version of teamster there; with `--fleet`, those
/// of all its workers, as they report them.
///
/// With `--try`, one agent is started instead: any command that speaks the Agent Client Protocol. It must open a
/// session; no prompt is sent. The exit code is 0 if it did, 1 if it is not an ACP agent or needs a login, 3 if it
/// cannot be started, 4 if it did not answer in time.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Check this ACP agent: `acp:COMMAND`, or the name of an agent that uses ACP
    #[arg(long = "try", value_name = "AGENT", conflicts_with = "kill_leftovers")]
    pub(crate) agent: Option<String>,
    /// Limit until the agent answers, such as 5s; `off` disables it
    #[arg(long, value_name = "DURATION", default_value = "30s", requires = "agent", value_parser = value::limit)]
    pub(crate) limit: std::time::Duration,
    /// Start every CLI, also where its package.json has the version
    #[arg(long, conflicts_with = "agent")]
    pub(crate) start: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// End the processes that earlier runs left behind
    #[arg(long)]
    pub(crate) kill_leftovers: bool,
}
