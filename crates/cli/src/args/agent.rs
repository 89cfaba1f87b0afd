//! Options of an agent: of a run, a chat and the sessions of an editor.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use clap_complete::ArgValueCandidates;
use teamster::{Container, Mount, PermissionMode};

use super::value::{self, named_values};
use super::{COMMON, EnvVar, Fallback, provider};
use crate::completion;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Model, permissions and session")]
pub(crate) struct ModelArgs {
    /// The model, by the CLI's own name
    #[arg(long, short, help_heading = COMMON, add = ArgValueCandidates::new(completion::models))]
    pub(crate) model: Option<String>,
    /// Reasoning effort, as the CLI names it, such as low or high
    #[arg(long, value_name = "LEVEL")]
    pub(crate) effort: Option<String>,
    /// Let the CLI change to this model while its own is overloaded
    #[arg(long, value_name = "MODEL")]
    pub(crate) fallback_model: Option<String>,
    /// Use this account of the agent, from `accounts.toml` (repeatable)
    ///
    /// The next one of the same agent takes over when the limit of the previous one is reached. `teamster accounts list`
    /// shows them.
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Vec<String>,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Model, permissions and session")]
pub(crate) struct PermissionArgs {
    /// Set what the agent may do without approval
    #[arg(
        long,
        value_name = "MODE",
        default_value = "default",
        value_parser = named_values(PERMISSIONS),
        help_heading = COMMON
    )]
    pub(crate) permission: PermissionMode,
    /// Allow a tool, such as "Bash(git *)" (repeatable)
    ///
    /// In the CLI's own syntax.
    #[arg(long, value_name = "TOOL", help_heading = COMMON)]
    pub(crate) allow_tool: Vec<String>,
    /// Forbid a tool, in the CLI's own syntax (repeatable)
    #[arg(long, value_name = "TOOL")]
    pub(crate) deny_tool: Vec<String>,
}

/// Options for the agent's own sessions.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Model, permissions and session")]
pub(crate) struct AgentSessionArgs {
    /// Resume this session
    ///
    /// `--session` is an alias.
    #[arg(
        long,
        value_name = "ID",
        alias = "session",
        help_heading = COMMON,
        add = ArgValueCandidates::new(completion::sessions)
    )]
    pub(crate) resume: Option<String>,
    /// With --resume: continue in a new session and leave the old one unchanged
    #[arg(long, requires = "resume")]
    pub(crate) fork: bool,
    /// Use this id for the new session
    #[arg(long, value_name = "UUID")]
    pub(crate) session_id: Option<String>,
    /// Name the run, and its session in the list of a CLI that has names
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) title: Option<String>,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Instructions and input")]
pub(crate) struct SystemArgs {
    /// Replace the CLI's system prompt
    #[arg(
        long,
        value_name = "TEXT",
        group = "system",
        allow_hyphen_values = true
    )]
    pub(crate) system_prompt: Option<String>,
    /// Replace the CLI's system prompt with the text of a file
    #[arg(long, value_name = "FILE", group = "system")]
    pub(crate) system_prompt_file: Option<PathBuf>,
    /// Append to the CLI's system prompt
    #[arg(
        long,
        value_name = "TEXT",
        group = "system",
        allow_hyphen_values = true
    )]
    pub(crate) append_system_prompt: Option<String>,
    /// Append the text of a file to the CLI's system prompt
    #[arg(long, value_name = "FILE", group = "system")]
    pub(crate) append_system_prompt_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Directories and environment")]
pub(crate) struct ResultArgs {
    /// Keep files of the working directory at the end, such as 'target/*.html' (repeatable)
    ///
    /// A `*` stays in its directory, `**` does not, and a directory stands for all that is in it. Files that git
    /// ignores are kept too; symbolic links are not followed. `teamster runs files ID` lists and copies them.
    #[arg(long, value_name = "GLOB")]
    pub(crate) artifact: Vec<String>,
    /// With --worktree or --repo URL: push the commits to a branch of a remote at the end [default: the run's branch]
    ///
    /// REMOTE is a name, as `git remote` lists them. Without force, and git asks for nothing. If it fails, there is a
    /// warning and the commits are kept.
    #[arg(long, value_name = "REMOTE[:BRANCH]")]
    pub(crate) push: Option<String>,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Directories and environment")]
pub(crate) struct ProcessArgs {
    /// The agent's working directory
    #[arg(long, short = 'C', value_name = "DIR", help_heading = COMMON, value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<PathBuf>,
    /// Work in a new git worktree, on a new branch [default: `teamster/` and the run's id]
    ///
    /// It begins at the last commit and is created in `teamster/worktrees` of `$XDG_STATE_HOME`, else of
    /// `~/.local/state`. At the end it is removed if it has no changes, else kept; stderr reports which.
    #[arg(
        long,
        value_name = "BRANCH",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        conflicts_with = "resume"
    )]
    pub(crate) worktree: Option<String>,
    /// Start the worktree at this commit, such as origin/main; implies --worktree [default: HEAD]
    ///
    /// With --repo: the name of a branch or a tag, or the full hash of a commit.
    #[arg(long, value_name = "REF", conflicts_with = "resume")]
    pub(crate) worktree_from: Option<String>,
    /// Fetch the repository with this URL, or submit that of this directory with --remote, and work in a new git worktree
    ///
    /// A URL is fetched by the machine that runs the agent, with the credentials that git has there, and never prompts; one
    /// with a password or token in it is refused. The worktree begins at --worktree-from.
    ///
    /// A directory, such as `.`, is for --remote: its commits, its uncommitted and its untracked files are submitted, and the
    /// agent's branch comes back at the end. The repository here is only read until then.
    ///
    /// With --cwd, the agent works in that directory of the repository.
    #[arg(long, value_name = "URL|DIR", conflicts_with_all = ["resume", "worktree", "empty_dir"])]
    pub(crate) repo: Option<String>,
    /// Work in a new, empty directory
    ///
    /// It is created in `teamster/worktrees` of `$XDG_STATE_HOME`, else of `~/.local/state`. At the end it is
    /// removed if it is still empty, else kept; stderr reports which.
    #[arg(long, conflicts_with_all = ["resume", "cwd", "worktree", "worktree_from"])]
    pub(crate) empty_dir: bool,
    /// Run this shell command in the agent's working directory before the agent starts, such as "npm ci"
    ///
    /// Its output is in the run's notices. If it fails, the run ends without an agent. Without this option, the
    /// commands of `.teamster.toml` in the repository run, if the workspace is made for the run and
    /// `teamster trust` trusts them. `off` runs none.
    #[arg(long, value_name = "CMD")]
    pub(crate) setup: Option<String>,
    /// Limit the time of the set-up, such as 90s or 1h; `off` disables it [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = value::limit)]
    pub(crate) setup_timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) environment: EnvironmentArgs,
    /// Leave background processes of the agent's tools running after the run
    #[arg(long)]
    pub(crate) keep_background: bool,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Limits, retry and fallback")]
pub(crate) struct TimeoutArgs {
    /// Limit until the CLI's first line, such as 90s or 5m; `off` disables it
    /// [default: 2m]
    #[arg(long = "startup-timeout", value_name = "TIME", value_parser = value::limit)]
    pub(crate) startup: Option<Duration>,
    /// Limit of silence while no tool runs [default: 5m, more for CLIs that are
    /// silent for longer]
    #[arg(long = "idle-timeout", value_name = "TIME", value_parser = value::limit)]
    pub(crate) idle: Option<Duration>,
    /// Limit of silence while a tool runs [default: 30m]
    #[arg(long = "tool-timeout", value_name = "TIME", value_parser = value::limit)]
    pub(crate) tool: Option<Duration>,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Limits, retry and fallback")]
pub(crate) struct ChatLimitArgs {
    /// Limit the CLI's own retries of a failed request
    #[arg(long, value_name = "N")]
    pub(crate) cli_retries: Option<u32>,
    #[command(flatten)]
    pub(crate) timeouts: TimeoutArgs,
    /// End the agent's process after this long without a message, such as 30m; the next message restarts
    /// it and resumes the session [default: off]
    #[arg(long, value_name = "TIME", value_parser = value::limit)]
    pub(crate) idle_exit: Option<Duration>,
}

/// The surroundings of an agent's process.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Directories and environment")]
pub(crate) struct EnvironmentArgs {
    /// Another directory that the agent may use (repeatable)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Set an environment variable for the agent (repeatable)
    ///
    /// `KEY` alone takes the value from teamster's own environment. Use that for secrets: arguments are
    /// visible to every user of the machine and stay in the shell's history. The agent gets
    /// `TEAMSTER_STORE` only if it is named here.
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
    #[arg(long, value_name = "PATH")]
    pub(crate) bin: Option<PathBuf>,
    /// Run the agent's CLI in a container of this image: docker:IMAGE or podman:IMAGE [default: `TEAMSTER_IN`]
    ///
    /// The CLI comes from the image. It has the agent's directories at the same paths, an empty home, and the variables of
    /// --env alone: its login comes by --env or --in-mount.
    #[arg(long = "in", value_name = "ENGINE:IMAGE", value_parser = value::container)]
    pub(crate) container: Option<Container>,
    /// Mount a file or directory of this machine into the container (repeatable)
    ///
    /// Such as `~/.claude:/home/agent/.claude`, with --env HOME=/home/agent; with `:ro` at the end, the agent cannot change it.
    #[arg(long, value_name = "HOST:CONTAINER", value_parser = value::mount, requires = "container")]
    pub(crate) in_mount: Vec<Mount>,
}

/// Retry, fallback and budget options of a session's turns.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Limits, retry and fallback")]
pub(crate) struct TurnArgs {
    /// Retry transient failures of a turn up to N times
    ///
    /// Once a tool that can change things has run, the prompt is not sent again: the agent is asked to continue.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) retries: u32,
    /// Use this agent when the previous ones fail in the first turn of the session (repeatable)
    ///
    /// The session stays with the first agent that has answered: another would not know the conversation.
    #[arg(
        long,
        value_name = "AGENT",
        value_parser = provider::fallback,
        add = ArgValueCandidates::new(completion::fallbacks)
    )]
    pub(crate) fallback: Vec<Fallback>,
    /// Wait at most this long for a limit to reset, such as 90s or 1h
    /// [default: 5m with --retries, else no waiting]
    #[arg(long, value_name = "TIME", value_parser = value::limit)]
    pub(crate) max_wait: Option<Duration>,
    /// Begin no turn once all turns of the session together have cost this much, and stop the one that exceeds it if
    /// the agent reports costs meanwhile
    #[arg(long, value_name = "USD", value_parser = value::usd)]
    pub(crate) max_budget_usd: Option<f64>,
    /// Begin no turn once all turns of the session together have used this many tokens, and stop the one that exceeds
    /// it
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// Begin no turn once all turns of the session together have taken this long, and stop the one that exceeds it
    #[arg(long, value_name = "TIME", value_parser = value::limit)]
    pub(crate) max_time: Option<Duration>,
}

/// Options for the permission requests of a detached run or session.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct AskTimeoutArgs {
    /// With --detach: wait this long for an answer to a permission request, then deny it [default: 1h]
    ///
    /// `teamster requests` lists pending requests; `teamster answer`, or `teamster attach` at a terminal, answers
    /// them. `0` denies at once; `off` waits without limit.
    #[arg(
        long,
        value_name = "TIME",
        value_parser = value::wait_time,
        requires = "detach",
        hide_short_help = true
    )]
    pub(crate) ask_timeout: Option<Duration>,
}

/// Values of `--permission` with their help texts.
pub(crate) const PERMISSIONS: &[(PermissionMode, &str)] = &[
    (PermissionMode::Default, "As the CLI's settings allow"),
    (
        PermissionMode::ReadOnly,
        "No built-in tool that changes anything (MCP tools stay allowed)",
    ),
    (PermissionMode::AcceptEdits, "File changes as well"),
    (PermissionMode::Bypass, "Everything; use only in a sandbox"),
    (
        PermissionMode::Plan,
        "What the CLI allows in its plan mode: it reads, and answers with a plan",
    ),
];

/// Those that are more or less than others, so that one can be a limit.
pub(crate) const PERMISSION_LIMITS: &[(PermissionMode, &str)] = PERMISSIONS.split_at(4).0;

/// Values of `--stdin`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StdinMode {
    /// Read a file, or a pipe that sends something within 3 seconds; a pipe that then pauses for a minute
    /// is an error
    Auto,
    /// Read to the end, without a time limit
    Wait,
    /// Do not read stdin, for example in a shell's `while read` loop
    Ignore,
}
