//! The arguments about MCP servers.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use teamster::McpDelivery;

use super::value::{self, spelled};

const LIST_EXAMPLES: &str = "\
Examples:
  teamster mcp list                                the servers of ./.mcp.json
  teamster mcp list --mcp-config team.json --json";

const CHECK_EXAMPLES: &str = "\
Examples:
  teamster mcp check                                  the servers of ./.mcp.json
  teamster mcp check tracker --timeout 5s             only this one of them
  teamster mcp check --mcp \"docs=npx -y docs-mcp\"     before it is written down anywhere
  teamster mcp check --mcp \"fake=teamster fake-mcp\"   what it looks like; nothing else is needed

Exit codes:
    0  every server that was started answered
    1  a server is missing, failed or did not answer
    2  the command line or a configuration is wrong; nothing was started
  130  stopped by a signal; the servers were ended";

const RESTORE_EXAMPLES: &str = "\
Examples:
  teamster mcp restore --dry-run                   what killed runs have left
  teamster mcp restore                             undo it
  teamster mcp restore ~/work/app/opencode.json    in this file only

Exit codes:
    0  nothing is left to undo
    1  a file could not be restored; why is said on stderr
    5  with --dry-run: something is there to undo";

/// Shows, tries and cleans up after MCP servers.
///
/// Servers are named as in `teamster run`: --mcp-config takes the JSON that Claude Code and others
/// have in `.mcp.json`, --mcp a command or an address.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct McpCommandArgs {
    #[command(subcommand)]
    pub(crate) command: McpCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    List(McpListArgs),
    Check(McpCheckArgs),
    Restore(McpRestoreArgs),
}

/// Shows servers and for which agents they cannot be used.
///
/// For every server: how it is reached, the names of its variables and headers, and the agent CLIs
/// that cannot take it as it is, with the reason. No value of a variable or a header is shown, and
/// nothing is started.
#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub(crate) struct McpListArgs {
    #[command(flatten)]
    pub(crate) servers: ServerArgs,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Starts servers, asks each for its tools and ends it.
///
/// Every server is started in the working directory, with teamster's environment and its own
/// variables; agent CLIs may give it less. All are tried at once. When the command ends, none of them
/// is left. Servers at an address are not contacted.
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(crate) struct McpCheckArgs {
    /// Only the servers of these names
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) servers: ServerArgs,
    /// How long a server may take to answer, such as 5s; `off` for ever
    /// [default: the server's own limit for its start, or 30s]
    #[arg(long, value_name = "TIME", value_parser = value::limit)]
    pub(crate) timeout: Option<Duration>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Undoes what killed runs have left in configuration files.
///
/// A run with `--mcp-via project-config` or `user-config` puts its servers into a file of the agent's
/// CLI and takes them out at its end. If it was killed, this does. The next run that changes the same
/// file does it too. Runs that are alive keep theirs.
///
/// Without FILE, it looks at the files of this directory and of this user that such a run can have
/// changed, and removes the private files of killed runs.
#[derive(Debug, Args)]
#[command(after_help = RESTORE_EXAMPLES)]
pub(crate) struct McpRestoreArgs {
    /// A configuration file that a run changed
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Only say what there is to undo
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Which servers.
#[derive(Clone, Default, Args)]
pub(crate) struct ServerArgs {
    /// MCP servers from a file in the form of `.mcp.json`, or the JSON itself (repeatable)
    ///
    /// `${NAME}` and `${NAME:-default}` in it stand for environment variables.
    #[arg(
        long,
        value_name = "FILE|JSON",
        value_hint = ValueHint::FilePath,
        hide_short_help = true
    )]
    pub(crate) mcp_config: Vec<String>,
    /// An MCP server: its command as in a shell, or its address (repeatable)
    ///
    /// For example: --mcp "tracker=tracker-mcp --read-only" --mcp docs=https://example.com/mcp.
    /// Variables may come before the command; `${NAME}` in single quotes keeps a secret out of
    /// teamster's own arguments: --mcp 'tracker=TOKEN=${TOKEN} tracker-mcp'.
    #[arg(long, value_name = "NAME=COMMAND", hide_short_help = true)]
    pub(crate) mcp: Vec<String>,
}

/// Without what may be secret.
impl fmt::Debug for ServerArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerArgs").finish_non_exhaustive()
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "MCP servers")]
pub(crate) struct McpArgs {
    #[command(flatten)]
    pub(crate) servers: ServerArgs,
    /// How the servers reach the agent's CLI
    #[arg(
        long,
        value_name = "WAY",
        default_value = "private",
        value_parser = spelled(WAYS),
        hide_short_help = true
    )]
    pub(crate) mcp_via: McpDelivery,
    /// Only these servers, none of the user's own
    #[arg(long, hide_short_help = true)]
    pub(crate) mcp_strict: bool,
}

/// How MCP servers reach the agent's CLI.
const WAYS: &[(McpDelivery, &str)] = &[
    (
        McpDelivery::Private,
        "Without a change to any file of the user's",
    ),
    (
        McpDelivery::ProjectConfig,
        "In the CLI's configuration file in the working directory, until the run is over; other runs of \
         the same CLI that read it meanwhile get these servers too, already approved",
    ),
    (
        McpDelivery::UserConfig,
        "In the user's own configuration file, until the run is over; other runs of the same CLI that \
         read it meanwhile get these servers too, already approved",
    ),
];
