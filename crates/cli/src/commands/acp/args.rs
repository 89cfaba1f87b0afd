//! Arguments of `teamster acp`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use clap_complete::ArgValueCandidates;

use crate::args::provider::{self, ProviderParser};
use crate::args::{
    COMMON, ChatLimitArgs, ContainerArgs, EnvVar, Fallback, McpArgs, ModelArgs, PermissionArgs,
    StoreArgs, SystemArgs, only_common, value,
};
use crate::completion;

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
#[command(mut_args(only_common), after_help = SHORT, after_long_help = EXAMPLES)]
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
    pub(crate) turns: AcpTurnArgs,
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
    /// Another directory that the agent may use (repeatable)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Set an environment variable for the agent (repeatable)
    ///
    /// `KEY` alone takes the value from teamster's own environment.
    #[arg(long, value_name = "KEY[=VALUE]", value_parser = value::env_var)]
    pub(crate) env: Vec<EnvVar>,
    /// Start the agent with a nearly empty environment
    ///
    /// It gets the variables set by --env, and `PATH HOME USER LOGNAME SHELL LANG LC_ALL TZ TERM TMPDIR`.
    #[arg(long)]
    pub(crate) clean_env: bool,
    /// The CLI's program, if not the one on PATH
    ///
    /// The variable `TEAMSTER_<AGENT>_BIN`, such as `TEAMSTER_CLAUDE_BIN`, does the same.
    #[arg(long, value_name = "PATH", requires = "agent")]
    pub(crate) bin: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) container: ContainerArgs,
}

/// Retry, fallback and budget options of a session's turns.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits, retry and fallback")]
pub(crate) struct AcpTurnArgs {
    /// Retry transient failures of a turn up to N times
    ///
    /// Once a tool that can change things has run, the prompt is not sent again: the agent is asked to continue.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = COMMON)]
    pub(crate) retries: u32,
    /// Use this agent when the previous ones fail in the first turn of a session (repeatable)
    ///
    /// The session stays with the first agent that has answered: another would not know the conversation.
    #[arg(
        long,
        value_name = "AGENT",
        value_parser = provider::fallback,
        requires = "agent",
        help_heading = COMMON,
        add = ArgValueCandidates::new(completion::fallbacks)
    )]
    pub(crate) fallback: Vec<Fallback>,
    /// Wait at most this long for a limit to reset, such as 90s or 1h
    /// [default: 5m with --retries, else no waiting]
    #[arg(long, value_name = "TIME", value_parser = value::limit)]
    pub(crate) max_wait: Option<Duration>,
    /// Begin no turn once all turns of a session together have cost this much, and stop the one that exceeds it
    #[arg(long, value_name = "USD", value_parser = value::usd, help_heading = COMMON)]
    pub(crate) max_budget_usd: Option<f64>,
    /// Begin no turn once all turns of a session together have used this many tokens, and stop the one that exceeds it
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// Begin no turn once all turns of a session together have taken this long, and stop the one that exceeds it
    #[arg(long, value_name = "TIME", value_parser = value::limit)]
    pub(crate) max_time: Option<Duration>,
}
