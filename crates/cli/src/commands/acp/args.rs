//! Arguments of `teamster acp`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, Args, ValueHint};

use crate::args::provider::ProviderParser;
use crate::args::{
    COMMON, ChatLimitArgs, EnvironmentArgs, McpArgs, ModelArgs, PermissionArgs, StoreArgs,
    SystemArgs, TurnArgs, only_common, value,
};

const SHORT: &str = "\
Example, in the settings of an editor: teamster acp claude --fallback codex
Lines for Zed, JetBrains, Neovim and Emacs: docs/editors.md. All options: teamster acp --help";

const EXAMPLES: &str = "\
Examples, as the command of an agent in the settings of an editor:
  teamster acp                                   the editor chooses the agent
  teamster acp claude
  teamster acp claude --fallback codex --retries 2 --max-wait 5m
  teamster acp claude --model opus --permission accept-edits --max-budget-usd 5
  teamster acp claude --session-key editor:app   every thread continues one conversation
  teamster --remote https://box.example acp claude   agents and folders of another machine
  teamster --remote ssh:box acp claude --repo .      the same with the editor's folder, which goes along
  teamster --fleet acp claude --repo .               the same on a machine of a fleet

To check the setup: teamster doctor --try 'acp:teamster acp claude'

Exit codes:
    0  the editor ended the connection, or a signal did
    1  an internal failure
    2  the command line is wrong, or asks for what the agent cannot do";

/// Serve an agent to an editor, by the Agent Client Protocol.
///
/// The editor starts this command and communicates on stdin and stdout. Each of its threads is a session of the
/// agent's CLI, with the login, settings and tools that it has on this machine. Sessions have a log and an entry in
/// the history, so the editor can list and load them, and `teamster runs list --live` and `teamster attach` show
/// them. The end of stdin ends all of them.
///
/// With --remote, the sessions are those of a server, in folders of its machine that have the same paths; or, with
/// --repo, in copies of the editor's folders. Additional folders of the editor are not sent there. With --fleet, they are
/// on its machines in the same way: a session begins when one of them has a free slot.
///
/// Without AGENT, the editor has an option `Agent` for each thread, until its first prompt.
#[derive(Debug, Args)]
#[command(mut_args(of_editor), after_help = SHORT, after_long_help = EXAMPLES)]
pub(crate) struct AcpArgs {
    /// The agent
    #[arg(value_name = "AGENT", value_parser = ProviderParser)]
    pub(crate) agent: Option<String>,
    /// Resume the session of this conversation in every new thread, or start one
    ///
    /// The key is a channel, a user and a thread, as in `teamster run --session-key`. One thread at a time can
    /// use it.
    #[arg(long, value_name = "KEY", requires = "agent", hide_short_help = true)]
    pub(crate) session_key: Option<String>,
    /// Wait this long for an answer to a permission request, then deny it [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = value::wait_time, hide_short_help = true)]
    pub(crate) ask_timeout: Option<Duration>,
    /// Arguments passed to the agent's CLI unchanged
    #[arg(
        last = true,
        value_name = "CLI ARGS",
        requires = "agent",
        hide_short_help = true
    )]
    pub(crate) extra_args: Vec<String>,

    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) permissions: PermissionArgs,
    #[command(flatten)]
    pub(crate) system: SystemArgs,
    #[command(flatten)]
    pub(crate) mcp: McpArgs,
    #[command(flatten)]
    pub(crate) process: AcpProcessArgs,
    #[command(flatten)]
    pub(crate) limits: ChatLimitArgs,
    #[command(flatten)]
    pub(crate) turns: TurnArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Options for the agent's process. The editor sets its working directory.
#[derive(Debug, Args)]
#[command(next_help_heading = "Directories and environment")]
pub(crate) struct AcpProcessArgs {
    /// With --remote or --fleet: submit the repository of this directory, such as `.` for the editor's folder
    ///
    /// Its commits, its uncommitted and its untracked files are submitted with the first prompt of a thread, and the agent
    /// works in a git worktree of them. Its branch comes back when the thread is closed or the editor ends. The repository
    /// here is only read until then. A relative path is one in the editor's folder.
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with = "session_key",
        value_hint = ValueHint::DirPath
    )]
    pub(crate) repo: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) environment: EnvironmentArgs,
}

/// Changes an option of other commands to that of editors.
fn of_editor(arg: Arg) -> Arg {
    only_common(match arg.get_id().as_str() {
        "retries" | "max_budget_usd" => arg.help_heading(COMMON),
        "fallback" => arg.help_heading(COMMON).requires("agent"),
        "bin" => arg.requires("agent"),
        _ => arg,
    })
}
