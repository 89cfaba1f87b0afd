//! The arguments of `teamster loop`.

use std::path::PathBuf;

use clap::Args;

const SHORT: &str = "\
Examples:
  teamster loop ~/agents/triage
  teamster loop ~/agents/triage --ticks 1     one tick, to see whether it works
Settings, signals and the exit codes: teamster loop --help";

const EXAMPLES: &str = "\
Examples:
  teamster loop ~/agents/triage
  RUNTIME=copilot MIN_SLEEP=30 teamster loop ~/agents/triage
  teamster loop ~/agents/triage --ticks 1        one tick, to see whether it works
  pkill -USR1 -L -F ~/agents/triage/.orchestrator/loop.lock      the next tick, now

Settings, as variables of the environment or in `.env` of the agent's directory:
  RUNTIME               claude (default), codex, copilot, gemini, opencode, or 'acp:COMMAND'
  ADAPTER               hot: one process for all ticks; cold: one for each. Usually hot, for copilot cold
  MIN_SLEEP             seconds of sleep after a tick that did something (60)
  IDLE_STEP             seconds that each idle tick adds (60)
  MAX_SLEEP             the longest sleep in seconds (3600)
  TIMEOUT_SECS          the longest turn in seconds (600)
  CLEAR_MIN_GAP         seconds between two clears in one session (600)
  CHROME                1: Claude gets --chrome
  CLAUDE_MODEL, COPILOT_MODEL, ..., and CLAUDE_REASONING, COPILOT_REASONING, ...
  TEAMSTER_CLAUDE_BIN, TEAMSTER_COPILOT_BIN, ...   the CLI's program, if it is not the one on PATH
  FULL_PROMPT_FILE, LIGHT_PROMPT_FILE   texts in place of the two prompts
  KEEP_SESSION          1: after an end in order, too, the next loop goes on with the session
  LOG_MAX_BYTES         the size at which the log begins anew (10485760), at least 65536

Signals: SIGUSR1 asks for a tick, SIGTERM and SIGINT for the end; a second one ends it at once.

Exit codes:
    0  it was asked to end, or has played its ticks
    1  something failed in teamster itself; with --ticks, or the last tick failed
    2  the directory or a setting cannot be used, or another loop runs there
    3  with --ticks: the last tick failed because the agent's CLI is not installed
  130  a second signal ended it at once";

/// Lets an agent work by itself, in ticks with a sleep between them.
///
/// The agent's directory has its instructions (CLAUDE.md or AGENTS.md), its `.env` and `.mcp.json`. In
/// each tick it is asked to do what there is to do. What it leaves in `.orchestrator` says what comes next:
/// after `did-work` the sleep is short, else it grows; with `clear-session` the next tick has an empty
/// context, with `reset-session` a new process. The agent is started with all permissions: it can do
/// whatever the user can who runs this.
#[derive(Debug, Args)]
#[command(after_help = SHORT, after_long_help = EXAMPLES)]
pub(crate) struct LoopArgs {
    /// The directory of the agent
    #[arg(value_name = "AGENT_DIR")]
    pub(crate) directory: PathBuf,
    /// End after so many ticks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) ticks: Option<u64>,
}
