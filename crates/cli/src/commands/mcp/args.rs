//! Arguments of `teamster mcp`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use teamster::PermissionMode;

use crate::args::provider::ProviderParser;
use crate::args::value::{self, named_values};
use crate::args::{PERMISSION_LIMITS, ServerArgs};

const LIST_EXAMPLES: &str = "\
Examples:
  teamster mcp list                                the servers of ./.mcp.json
  teamster mcp list --mcp-config team.json --json";

const CHECK_EXAMPLES: &str = "\
Examples:
  teamster mcp check                                  the servers of ./.mcp.json
  teamster mcp check tracker --timeout 5s             only this one
  teamster mcp check --mcp \"docs=npx -y docs-mcp\"     test one that is in no file yet
  teamster mcp check --mcp \"fake=teamster fake-mcp\"   try it without any server of your own

Exit codes:
    0  every started server answered
    1  a server is missing, failed or did not answer
    2  the command line or a configuration is wrong; nothing was started
  130  stopped by a signal; the servers were ended";

const SERVE_SHORT: &str = "\
Example: claude mcp add agents -- teamster mcp serve
Codex and other clients, and the exit codes: teamster mcp serve --help";

const SERVE_EXAMPLES: &str = "\
Examples, as the command of an MCP server:
  teamster mcp serve                                     runs that only read
  teamster mcp serve --agent codex --permission accept-edits --max-budget-usd 2

  claude mcp add agents -- teamster mcp serve            in Claude Code
  codex mcp add agents -- teamster mcp serve             in Codex
  teamster run claude \"Ask codex\" --mcp \"agents=teamster mcp serve\"

Exit codes:
    0  the client ended the connection, or a signal did
    1  an internal failure
    2  the command line is wrong";

const RESTORE_EXAMPLES: &str = "\
Examples:
  teamster mcp restore --dry-run                   list what killed runs left
  teamster mcp restore                             restore it
  teamster mcp restore ~/work/app/opencode.json    in this file only

Exit codes:
    0  nothing is left to restore
    1  a file could not be restored; stderr has the reason
    5  with --dry-run: something is left to restore";

/// Check MCP servers, serve agents as one, and restore configuration files.
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
    Serve(McpServeArgs),
    Restore(McpRestoreArgs),
}

/// List MCP servers, and the agents that cannot use them.
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

/// Start MCP servers, or connect to them, and list their tools.
///
/// Every program is started in the working directory, with teamster's environment and its own
/// variables; agent CLIs may give it less. A server at an address gets its own headers, and redirects are
/// not followed. All are checked at once, and all have ended when the command ends.
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(crate) struct McpCheckArgs {
    /// Only servers with these names
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) servers: ServerArgs,
    /// Limit until a server answers, such as 5s; `off` disables it
    /// [default: the server's own limit for its start, or 30s]
    #[arg(long, value_name = "TIME", value_parser = value::limit)]
    pub(crate) timeout: Option<Duration>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Serve agents as tools of an MCP server, on stdin and stdout.
///
/// Any MCP client, such as another agent, can run an agent on a prompt, start several, wait for them, answer what they
/// ask for and stop them. Each is a detached run with a log and a place in the history.
///
/// Runs are read-only unless --permission allows more. An agent that was started here cannot start others beyond
/// --max-depth. When the client disconnects, its runs are stopped.
#[derive(Debug, Args)]
#[command(after_help = SERVE_SHORT, after_long_help = SERVE_EXAMPLES)]
pub(crate) struct McpServeArgs {
    /// Offer only this agent (repeatable) [default: all but those named by a command]
    #[arg(long = "agent", value_name = "AGENT", value_parser = ProviderParser)]
    pub(crate) agents: Vec<String>,
    /// Limit what a run may do without approval
    #[arg(
        long,
        value_name = "MODE",
        default_value = "read-only",
        value_parser = named_values(PERMISSION_LIMITS)
    )]
    pub(crate) permission: PermissionMode,
    /// Limit the depth of runs that start runs: at 1, only the client starts runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) max_depth: u32,
    /// Start no run once all runs together have cost this much, and stop the one that exceeds it
    #[arg(long, value_name = "USD", value_parser = value::usd)]
    pub(crate) max_budget_usd: Option<f64>,
    /// Start no run once all runs together have used this many tokens, and stop the one that exceeds it
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// Stop a run after this time
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = value::limit, hide_short_help = true)]
    pub(crate) max_time: Duration,
    /// Limit the number of concurrent runs
    #[arg(long, value_name = "N", default_value_t = 8, hide_short_help = true)]
    pub(crate) max_runs: usize,
    /// Let runs continue when the client disconnects
    #[arg(long, hide_short_help = true)]
    pub(crate) keep_runs: bool,
}

/// Restore configuration files that killed runs left changed.
///
/// A run with `--mcp-via project-config` or `user-config` puts its servers into a file of the agent's
/// CLI and removes them at its end. If it was killed, this command removes them; so does the next run
/// of that CLI. Running runs keep theirs.
///
/// Without FILE, it checks the files of this directory and of this user that such a run can have changed,
/// and removes the private files of killed runs.
#[derive(Debug, Args)]
#[command(after_help = RESTORE_EXAMPLES)]
pub(crate) struct McpRestoreArgs {
    /// A configuration file that a run changed
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Only print what would be restored
    #[arg(long)]
    pub(crate) dry_run: bool,
}
