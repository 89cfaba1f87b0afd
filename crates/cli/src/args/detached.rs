//! Arguments of the commands for detached runs.

use std::time::Duration;

use clap::Args;

use super::{OutputArgs, StdinMode, value};
use crate::exit_code;

const ATTACH_EXAMPLES: &str = "\
Examples:
  id=$(teamster run --detach claude \"Fix the failing test\")
  teamster attach $id
  teamster attach agents/triage          the current tick of an agent in a loop
  teamster attach 0199d1c2-7e3a --json | jq -c 'select(.type == \"tool_use\")'";

/// Show a detached run or session, from its beginning and then as it happens
///
/// The output is that of `teamster run`. Any number of terminals can attach to a run, which does not depend on
/// them. Ctrl-C detaches; `teamster cancel` stops the run.
///
/// At a terminal, each line is a prompt to the session, and /help lists the commands. Turns come one at a time, and
/// all terminals see them. Ctrl-C interrupts the turn in progress; between two turns Ctrl-C and Ctrl-D detach.
#[derive(Debug, Args)]
#[command(after_help = ATTACH_EXAMPLES, after_long_help = format!("{ATTACH_EXAMPLES}\n\n{}", exit_code::ATTACH_HELP))]
pub(crate) struct AttachArgs {
    /// The run's id, or a unique prefix of it; or the directory of an agent in a loop
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Skip the entries of the log up to this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) after: u64,
    /// At a terminal attached to a session: do not read or write the message history
    #[arg(long)]
    pub(crate) no_history: bool,
    #[command(flatten)]
    pub(crate) output: AttachOutputArgs,
}

const SAY_EXAMPLES: &str = "\
Examples:
  id=$(teamster chat --detach claude)
  teamster say $id \"Run the tests\"
  git diff | teamster say $id \"Review this diff\" --quiet
  teamster say $id \"And the docs, too\" --steer     while it works";

/// Send a prompt to a session, and show the turn
///
/// The session is one of `teamster chat --detach`. Output and exit code are those of the turn, as in `teamster run`.
/// Ctrl-C interrupts the turn; a second one ends it by force. The session continues.
///
/// While another turn is in progress, a prompt is refused, unless it waits (--queue) or is sent to that turn
/// (--steer).
#[derive(Debug, Args)]
#[command(after_help = SAY_EXAMPLES, after_long_help = format!("{SAY_EXAMPLES}\n\n{}", exit_code::HELP))]
pub(crate) struct SayArgs {
    /// The session's id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The prompt; `-` reads it from stdin
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: String,
    /// Wait for the end of the turn in progress first
    #[arg(long, conflicts_with = "steer")]
    pub(crate) queue: bool,
    /// Send the prompt to the turn in progress, if the CLI supports it
    #[arg(long)]
    pub(crate) steer: bool,
    /// Print the turn's id and return
    #[arg(long, conflicts_with_all = ["steer", "json", "quiet", "verbose"])]
    pub(crate) no_wait: bool,
    /// Add text on stdin to the prompt
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        hide_short_help = true
    )]
    pub(crate) stdin: StdinMode,
    #[command(flatten)]
    pub(crate) output: AttachOutputArgs,
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

/// Output options of a detached run.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct AttachOutputArgs {
    /// Print the entries of the run's log, one line of JSON each
    ///
    /// `seq` numbers them from 1 without gaps; `done` is the last. Every reader gets the same bytes.
    #[arg(long)]
    json: bool,
    /// Print only the agent's last message, and errors
    #[arg(long, short, conflicts_with_all = ["json", "verbose"])]
    quiet: bool,
    /// Also show thinking, sub-agents and notes
    #[arg(long, short, conflicts_with = "json")]
    verbose: bool,
}

impl From<AttachOutputArgs> for OutputArgs {
    fn from(args: AttachOutputArgs) -> Self {
        Self {
            json: args.json,
            native: false,
            quiet: args.quiet,
            verbose: args.verbose,
        }
    }
}

/// Wait until detached runs have ended
///
/// The exit code is that of `teamster run`; for several runs, that of the first one that did not complete. Errors
/// are on stderr.
#[derive(Debug, Args)]
#[command(after_long_help = exit_code::HELP)]
pub(crate) struct WaitArgs {
    /// The runs, by their ids or unique prefixes of them; or turns, by the ids that `say --no-wait` prints
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}

/// Stop detached runs
///
/// The agent's CLI may clean up, as after Ctrl-C. Returns when the run has ended.
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The runs, by their ids or unique prefixes of them
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
    /// Kill the agent at once
    #[arg(long)]
    pub(crate) kill: bool,
}

/// List pending requests of detached runs
///
/// A detached run that needs permission for a tool waits up to its `--ask-timeout`, as it does for the question of
/// an MCP server. Answer with `teamster answer`, or at a terminal with `teamster attach`.
#[derive(Debug, Args)]
pub(crate) struct RequestsArgs {
    /// Only requests of these runs, by their ids or unique prefixes of them
    #[arg(value_name = "RUN")]
    pub(crate) ids: Vec<String>,
    /// Print one JSON object per line, with the whole input of each tool
    #[arg(long)]
    pub(crate) json: bool,
}

const ANSWER_EXAMPLES: &str = "\
Examples:
  teamster requests
  teamster answer 0199d1c2-7e3a/1 allow
  teamster answer 0199d1c2-7e3a deny --reason \"use cargo nextest\"    if the run asks for one thing only";

/// Answer a request of a detached run
///
/// `allow` allows it this once, `always` for the rest of the session, `deny` denies it. The question of an MCP
/// server takes the text of the answer, or a JSON object with all its fields. The first answer counts.
///
/// The request's id, as `teamster requests` prints it, is the run's id, `/` and a number. The run's id, or a
/// unique prefix of it, is enough while the run has only one pending request.
#[derive(Debug, Args)]
#[command(
    after_help = ANSWER_EXAMPLES,
    override_usage = "teamster answer [OPTIONS] <RUN> [REQUEST] <allow|always|deny|TEXT>"
)]
pub(crate) struct AnswerArgs {
    /// The request and its answer
    #[arg(value_name = "REQUEST> <ANSWER", num_args = 2..=3, required = true)]
    pub(crate) words: Vec<String>,
    /// With deny: the reason, which is sent to the agent
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// With allow: run the tool with this input instead, as JSON
    #[arg(long, value_name = "JSON")]
    pub(crate) input: Option<String>,
}
