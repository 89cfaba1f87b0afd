//! Arguments of `teamster loop`.

use std::path::PathBuf;

use clap::Args;

use crate::args::StoreArgs;

const SHORT: &str = "\
Examples:
  teamster loop ~/agents/triage
  teamster loop ~/agents/triage --ticks 1     one tick, as a test
Settings, signals and the exit codes: teamster loop --help";

const EXAMPLES: &str = "\
Examples:
  teamster loop ~/agents/triage
  RUNTIME=copilot MIN_SLEEP=30 teamster loop ~/agents/triage
  teamster loop ~/agents/triage --ticks 1        one tick, as a test
  pkill -USR1 -L -F ~/agents/triage/.orchestrator/loop.lock      begin the next tick now

Settings, as variables of the environment or in `.env` of the agent's directory:
  RUNTIME               claude (default), another agent of `teamster doctor`, or 'acp:COMMAND'
  ADAPTER               hot: one process for all ticks; cold: one per tick. Default: hot if the CLI supports it
  MIN_SLEEP             seconds of sleep after a tick that did work (60)
  IDLE_STEP             seconds added by each idle tick (60)
  MAX_SLEEP             longest sleep in seconds (3600)
  TIMEOUT_SECS          longest turn in seconds (600)
  CLEAR_MIN_GAP         seconds between two clears of a session (600)
  CHROME                1: pass --chrome to Claude
  CLAUDE_MODEL, COPILOT_MODEL, ..., and CLAUDE_REASONING, COPILOT_REASONING, ...
  TEAMSTER_CLAUDE_BIN, TEAMSTER_COPILOT_BIN, ...   the CLI's program, if it is not the one on PATH
  FULL_PROMPT_FILE, LIGHT_PROMPT_FILE   files that replace the two prompts
  RETRIES, MAX_WAIT     retries of a tick that failed (0), and seconds it waits for a limit to reset
  FALLBACK              agents for a tick when this one fails, such as codex,opencode:MODEL
  MAX_TOKENS, MAX_BUDGET_USD, MAX_TURNS   limits of one tick
  TICK_LOGS             number of ticks whose logs are kept for `teamster attach` (100)
  TEAMSTER_PRICES       a file of prices for estimates
  KEEP_SESSION          1: resume the session also after a clean exit
  LOG_MAX_BYTES         size at which the log is rotated (10485760), at least 65536

Signals: SIGUSR1 begins the next tick, SIGTERM and SIGINT stop the loop; a second one stops it at
once.

Exit codes:
    0  stopped by request, or --ticks are done
    1  internal failure; with --ticks also: the last tick failed
    2  the directory or a setting cannot be used, or another loop runs there
    3  with --ticks: the last tick failed because the agent's CLI is not installed
  130  stopped at once by a second signal";

/// Run an agent in a polling loop.
///
/// The agent's directory has its instructions (CLAUDE.md or AGENTS.md), its `.env` and `.mcp.json`. Each
/// tick prompts it to do pending work. Flag files in `.orchestrator` decide what comes next: after
/// `did-work` the sleep is short, else it grows; `clear-session` gives the next tick an empty context,
/// `reset-session` a new process. The agent has all permissions: it can do everything that the user who runs
/// this can do.
#[derive(Debug, Args)]
#[command(after_help = SHORT, after_long_help = EXAMPLES)]
pub(crate) struct LoopArgs {
    /// The directory of the agent
    #[arg(value_name = "AGENT_DIR")]
    pub(crate) directory: PathBuf,
    /// End after this many ticks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) ticks: Option<u64>,
    /// Record the agent's CLI in a folder, for bug reports (may contain private text)
    ///
    /// Each of its processes gets a folder below it, with the next free number from 1: one process for each tick, or
    /// one for many (ADAPTER). It has the CLI's output, byte for byte, and meta.json. Review it before you share it:
    /// see `teamster run --help`. What is sent to a kept process is not recorded.
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
