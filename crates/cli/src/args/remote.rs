//! Arguments that select a remote server.

use std::path::PathBuf;

use clap::Args;

/// The environment variable with the server's token, unless a file has it.
pub(crate) use teamster_host::REMOTE_TOKEN_VARIABLE;

/// The environment variable with the server's URL.
pub(crate) const REMOTE_VARIABLE: &str = "TEAMSTER_REMOTE";

/// A remote server, used instead of this machine.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Remote")]
pub(crate) struct RemoteArgs {
    /// Use the runs, sessions and agents of another machine: `ssh:HOST`, or a server of `teamster serve` at
    /// `https://HOST`, `http://127.0.0.1:7420` or `unix:/path`
    ///
    /// `ssh:HOST` (or `ssh://USER@HOST:PORT`) needs neither a server nor a token: ssh starts teamster there for this
    /// command, as your configuration of ssh has it. If it is not on the PATH there, name it: `ssh:HOST/~/bin/teamster`.
    ///
    /// The token of a server is read from the variable `TEAMSTER_REMOTE_TOKEN` or from a file (--remote-token-file).
    /// Paths, agents and the working directory are those of the other machine. A lost connection is restored, without
    /// loss of output.
    #[arg(
        long,
        value_name = "URL",
        env = "TEAMSTER_REMOTE",
        global = true,
        hide_short_help = true
    )]
    pub(crate) remote: Option<String>,
    /// With --remote: read the token from this file, which only you may read
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true)]
    pub(crate) remote_token_file: Option<PathBuf>,
}
