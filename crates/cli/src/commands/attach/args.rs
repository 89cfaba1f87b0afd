//! Arguments of `teamster attach`.

use clap::Args;

use crate::args::AttachOutputArgs;
use crate::exit_code;

const EXAMPLES: &str = "\
Examples:
  id=$(teamster run --detach claude \"Fix the failing test\")
  teamster attach $id
  teamster attach agents/triage          the current tick of an agent in a loop
  teamster attach 0199d1c2-7e3a --json | jq -c 'select(.type == \"tool_use\")'";

/// Show a detached run or session as it happens
///
/// The output is that of `teamster run`, from the beginning. Any number of terminals can attach to a run, which does
/// not depend on them. Ctrl-C detaches; `teamster cancel` stops the run.
///
/// At a terminal, each line is a prompt to the session, and /help lists the commands. Turns come one at a time, and
/// all terminals see them. Ctrl-C interrupts the turn in progress; between two turns Ctrl-C and Ctrl-D detach.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit_code::ATTACH_HELP))]
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
