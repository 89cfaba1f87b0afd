//! Arguments of `teamster chat`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::args::provider::ProviderParser;
use crate::args::{
    AgentSessionArgs, AskTimeoutArgs, COMMON, ChatLimitArgs, McpArgs, ModelArgs, OutputArgs,
    PermissionArgs, PlacementArgs, ProcessArgs, ResultArgs, StoreArgs, SystemArgs, TurnArgs,
    only_common, value,
};
use crate::exit_code;

const SHORT: &str = "\
Examples:
  teamster chat claude
  teamster chat claude --model opus --permission accept-edits
At the prompt, /help lists the commands. All options: teamster chat --help";

const EXAMPLES: &str = "\
Examples:
  teamster chat claude
  teamster chat claude --model opus --permission accept-edits -C ~/work/app
  teamster chat claude --resume 15a95919-ea0a-4b0d-a4a0-45e8d7697535
  printf '%s\\n' \"Run the tests\" \"Fix what fails\" | teamster chat claude --permission accept-edits
  id=$(teamster chat --detach claude)    and then: teamster attach $id, teamster say $id \"Run the tests\"
  teamster chat claude --json < messages.txt | jq -r 'select(.type == \"done\").result.finalMessage'

At the prompt, Enter sends the message. A line that ends with `\\` continues on the next one; pasted
text stays one message. Ctrl-R searches earlier messages, Tab completes commands. /help lists the
commands, such as /clear, /model, /cost and /quit; start a message with two slashes to send one.
Ctrl-C interrupts the agent. A second one ends its process: the next message restarts it and resumes
the session. At the prompt, Ctrl-C clears the line and Ctrl-D ends the chat.

Without a terminal on stdin, each line is a message or a command, tools that need approval are
denied, and Ctrl-C between two messages ends the chat.";

/// Chat with an agent in one long-lived process.
///
/// The agent's CLI runs with the login, settings and tools that it has on this machine, in one process
/// for all messages. Permission requests are shown here, if the CLI supports them.
/// The process starts with the first message and ends with the chat.
#[derive(Debug, Clone, Args)]
#[command(
    mut_args(only_common),
    after_help = SHORT,
    after_long_help = format!("{EXAMPLES}\n\n{}", exit_code::CHAT_HELP),
)]
pub(crate) struct ChatArgs {
    /// The agent
    ///
    /// Any agent that speaks the Agent Client Protocol can be named by its command: 'acp:my-agent --acp'.
    #[arg(value_name = "AGENT", value_parser = ProviderParser)]
    pub(crate) provider: String,
    /// Run the session in the background: print its id and return
    ///
    /// `teamster attach ID` shows it and sends prompts from a terminal, `teamster say ID PROMPT` sends one from a
    /// script, `teamster runs list --live` lists running sessions, `teamster cancel ID` ends it.
    #[arg(
        long,
        short = 'd',
        conflicts_with_all = ["json", "native", "verbose"],
        help_heading = COMMON
    )]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) ask: AskTimeoutArgs,
    /// With --detach: end the session after this long without a turn [default: off]
    #[arg(
        long,
        value_name = "TIME",
        value_parser = value::limit,
        requires = "detach",
        hide_short_help = true
    )]
    pub(crate) end_idle: Option<Duration>,
    /// Do not read or write the message history
    ///
    /// The history is `teamster/chat-history` in `$XDG_STATE_HOME`, else in `~/.local/state`; only you can
    /// read it. A message that begins with a space is not saved.
    #[arg(long, hide_short_help = true)]
    pub(crate) no_history: bool,
    /// Record the session in a folder, for bug reports (may contain private text)
    ///
    /// Each process of the agent's CLI gets a folder below it, `1` and up, with the CLI's output, byte for byte, and
    /// meta.json. The rules are those of `teamster run --record`. What is sent to the CLI is not recorded.
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with = "fallback",
        hide_short_help = true
    )]
    pub(crate) record: Option<PathBuf>,
    /// Arguments passed to the agent's CLI unchanged
    ///
    /// teamster does not interpret them.
    #[arg(last = true, value_name = "CLI ARGS", hide_short_help = true)]
    pub(crate) extra_args: Vec<String>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) permissions: PermissionArgs,
    #[command(flatten)]
    pub(crate) session: AgentSessionArgs,
    #[command(flatten)]
    pub(crate) system: SystemArgs,
    #[command(flatten)]
    pub(crate) mcp: McpArgs,
    #[command(flatten)]
    pub(crate) process: ProcessArgs,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
    #[command(flatten)]
    pub(crate) limits: ChatLimitArgs,
    #[command(flatten)]
    pub(crate) turns: TurnArgs,
    #[command(flatten)]
    pub(crate) placement: PlacementArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
