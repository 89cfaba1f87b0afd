//! Arguments of `teamster run`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap_complete::ArgValueCandidates;

use crate::args::provider::{self, ProviderParser};
use crate::args::value;
use crate::args::{
    AgentSessionArgs, AskTimeoutArgs, COMMON, Fallback, McpArgs, ModelArgs, OutputArgs,
    PermissionArgs, PlacementArgs, ProcessArgs, ResultArgs, StdinMode, StoreArgs, SystemArgs,
    TimeoutArgs, only_common,
};
use crate::{completion, exit_code};

const SHORT: &str = "\
Example: git diff | teamster run claude \"Review this diff\"
All options, more examples and the exit codes: teamster run --help";

const EXAMPLES: &str = "\
Examples:
  teamster run claude \"What does this repository do?\" --permission read-only
  teamster run claude \"Fix the failing test\" --permission accept-edits --allow-tool \"Bash(cargo *)\"
  teamster run claude --prompt-file task.md --max-turns 20 --max-budget-usd 2
  git diff | teamster run claude \"Review this diff\" --permission read-only
  teamster run claude \"Which issues are open?\" --mcp-config .mcp.json --mcp \"tracker=tracker-mcp\"
  teamster run claude \"And now the docs\" --resume 15a95919-ea0a-4b0d-a4a0-45e8d7697535
  teamster run claude \"List the crates\" --json | jq -c 'select(.type == \"tool_use\")'
  teamster run claude \"Name three colours\" --quiet --output-schema colours.schema.json

A terminal shows the run as it happens. A pipe or file gets the agent's text only, each message once
it can no longer be retracted; with --retries, --fallback or --max-wait usually at the end of the run.
Everything else goes to stderr. Ctrl-C stops the agent cleanly, a second one at once.";

/// Run an agent on a prompt.
///
/// The agent's CLI runs with the login, settings and tools that it has on this machine. It never waits
/// for a person: a tool that needs approval is denied, unless --permission or --allow-tool allows it. With
/// --detach, it waits for an answer instead (--ask-timeout).
#[derive(Debug, Args)]
#[command(
    mut_args(only_common),
    after_help = SHORT,
    after_long_help = format!("{EXAMPLES}\n\n{}", exit_code::HELP),
)]
pub(crate) struct RunArgs {
    /// The agent
    ///
    /// Any agent that speaks the Agent Client Protocol can be named by its command: 'acp:my-agent --acp'
    /// (`teamster doctor --try` checks it). Any program that prints text can be one too, as in
    /// 'cmd:my-agent {prompt}': `{prompt}` is the prompt as an argument, `{prompt_file}` a file with it,
    /// `{model}` the value of --model. Without the first two, the prompt is written to its stdin.
    #[arg(value_name = "AGENT", value_parser = ProviderParser)]
    pub(crate) provider: String,
    /// The prompt; `-` reads it from stdin
    ///
    /// Pass a one-word prompt that begins with a dash on stdin or by --prompt-file. Some CLIs, such as
    /// Claude Code, include files that a prompt names with `@`.
    #[arg(
        value_parser = super::prompt::unmarked,
        required_unless_present = "prompt_file",
        conflicts_with = "prompt_file"
    )]
    pub(crate) prompt: Option<String>,
    /// Read the prompt from a file
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) prompt_file: Option<PathBuf>,
    /// Record the run in a folder, for bug reports (may contain private text)
    ///
    /// The folder is created if missing; one with a recording is refused. It gets the CLI's output, byte for
    /// byte, and meta.json with the prompt, the arguments, the variables set for the run, and how it
    /// ended. Values named like credentials or belonging to an MCP server are left out of meta.json. The
    /// agent's output is not redacted and may contain anything that it has read: review it before you
    /// share it. Only you can read the files. `cargo xtask replay DIR` in teamster's repository plays it.
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["retries", "fallback", "max_wait"],
        hide_short_help = true
    )]
    pub(crate) record: Option<PathBuf>,
    /// Also write the agent's last message to a file
    ///
    /// A file that cannot be written is an error before the agent starts. It is replaced atomically at the
    /// end of the run; a run that fails without an answer does not touch it.
    #[arg(
        long = "output",
        short = 'o',
        value_name = "FILE",
        conflicts_with = "lifecycle",
        hide_short_help = true
    )]
    pub(crate) output_file: Option<PathBuf>,
    /// Run in the background and print the run's id
    ///
    /// The id is the only line on stdout. It is printed when the run is accepted; from then on the run outlives
    /// this terminal. `teamster attach ID` shows it from its beginning, `teamster wait ID` waits for its end and
    /// `teamster cancel ID` stops it.
    #[arg(
        long,
        short = 'd',
        conflicts_with_all = ["json", "native", "verbose", "lifecycle"],
        help_heading = COMMON
    )]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) ask: AskTimeoutArgs,
    /// Arguments passed to the agent's CLI unchanged; teamster does not interpret them
    #[arg(last = true, value_name = "CLI ARGS", hide_short_help = true)]
    pub(crate) extra_args: Vec<String>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) permissions: PermissionArgs,
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) mcp: McpArgs,
    #[command(flatten)]
    pub(crate) process: ProcessArgs,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) retry: RetryArgs,
    #[command(flatten)]
    pub(crate) fleet: RunPlacementArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Model, permissions and session")]
pub(crate) struct SessionArgs {
    #[command(flatten)]
    pub(crate) agent: AgentSessionArgs,
    /// Resume the session of this conversation, or start one
    ///
    /// The key is a channel, a user and a thread, such as `slack`, `slack:U42` or `slack:U42:7`; `_`
    /// omits one, and `%3A` is a `:`. Each agent has its own session per key. A session that was not used
    /// for 7 days is forgotten.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["resume", "session_id"])]
    pub(crate) session_key: Option<String>,
    /// With --session-key: forget the session and start the conversation over
    #[arg(long, requires = "session_key")]
    pub(crate) new: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Instructions and input")]
pub(crate) struct InputArgs {
    #[command(flatten)]
    pub(crate) system: SystemArgs,
    /// JSON Schema of the answer: a file, or the schema itself
    #[arg(long, value_name = "FILE|JSON")]
    pub(crate) output_schema: Option<String>,
    /// Attach an image: png, jpg, gif or webp (repeatable)
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Vec<PathBuf>,
    /// Add text on stdin to the prompt
    ///
    /// Piped text follows the prompt in a block `<stdin>`, as in
    /// `git diff | teamster run claude "Review this"`. A terminal or /dev/null is never read.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) stdin: StdinMode,
    /// Let the CLI treat a prompt that begins with `/` as a command of its own
    #[arg(long)]
    pub(crate) slash_commands: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits, retry and fallback")]
pub(crate) struct LimitArgs {
    /// End the run after this many turns
    ///
    /// Turns of all attempts count.
    #[arg(long, value_name = "N", help_heading = COMMON, hide_short_help = true)]
    pub(crate) max_turns: Option<u32>,
    /// End the run when it has cost this much
    ///
    /// The cost of all attempts counts.
    #[arg(long, value_name = "USD", value_parser = value::usd, help_heading = COMMON)]
    pub(crate) max_budget_usd: Option<f64>,
    /// Limit the CLI's own retries of a failed request
    #[arg(long, value_name = "N")]
    pub(crate) cli_retries: Option<u32>,
    #[command(flatten)]
    pub(crate) timeouts: TimeoutArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits, retry and fallback")]
pub(crate) struct RetryArgs {
    /// Retry transient failures up to N times
    ///
    /// With exponential backoff, or at the time that the service names. Once a tool that can change things has run,
    /// the prompt is not sent again: the session is resumed.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = COMMON)]
    pub(crate) retries: u32,
    /// Use this agent when the previous ones fail (repeatable)
    ///
    /// Such as `codex` or, with a model, `codex:gpt-5.1`.
    /// It gets the same prompt, its own default model and as many retries. Options that depend on the first
    /// agent's CLI (--model, --effort, --allow-tool, --bin, CLI ARGS) are not passed on; --deny-tool and
    /// --resume cannot be dropped, so they are refused. Set its program with `TEAMSTER_<AGENT>_BIN`.
    /// With --session-key, an agent that does not know the conversation is skipped if the first agent
    /// does. Once a tool that can change things has run, no other agent starts.
    #[arg(
        long,
        value_name = "AGENT",
        value_parser = provider::fallback,
        help_heading = COMMON,
        add = ArgValueCandidates::new(completion::fallbacks)
    )]
    pub(crate) fallback: Vec<Fallback>,
    /// Wait at most this long for a limit to reset, such as 90s or 1h; else fall back or fail
    /// [default: 5m with --retries, else no waiting]
    ///
    /// Without --retries, only failures by a limit that resets within this time are retried.
    #[arg(long, value_name = "TIME", value_parser = value::limit)]
    pub(crate) max_wait: Option<Duration>,
    /// End the run after this much time, waiting included (exit code 4)
    #[arg(long, value_name = "TIME", value_parser = value::limit)]
    pub(crate) max_time: Option<Duration>,
    /// End the run when it has used this many tokens
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// With --json: print lifecycle events of the run instead of the agent's events
    ///
    /// They are `run:start`, `run:attempt`, `run:hold`, `assistant:chunk`, `assistant:message`, `tool:start`,
    /// `tool:end`, `run:retry`, `run:fallback`, `run:error` and `run:end`. `seq` counts the entries of the
    /// run's log, the agents' own events included; an `assistant:` or `tool:` event has the `seq` of the
    /// entry before it.
    #[arg(long, requires = "json", conflicts_with = "native")]
    pub(crate) lifecycle: bool,
    /// Use this id for the run [default: a new UUID]
    #[arg(long, value_name = "ID")]
    pub(crate) run_id: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Remote")]
pub(crate) struct RunPlacementArgs {
    #[command(flatten)]
    pub(crate) placement: PlacementArgs,
    /// In a fleet: start the run over, as a new one, if its machine is lost; it may cost twice
    ///
    /// Requires --permission read-only, without --allow-tool. Tools of the machine's MCP servers are not restricted by that:
    /// a run that uses them may act twice.
    #[arg(long)]
    pub(crate) rerun_if_lost: bool,
}
