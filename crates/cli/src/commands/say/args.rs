//! Arguments of `teamster say`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::args::{AttachOutputArgs, StdinMode};
use crate::exit_code;

const EXAMPLES: &str = "\
Examples:
  id=$(teamster chat --detach claude)
  teamster say $id \"Run the tests\"
  git diff | teamster say $id \"Review this diff\" --quiet
  teamster say $id \"And the docs, too\" --steer     while it works
  teamster say $id \"Why does it look so?\" --image screen.png";

/// Send a prompt to a session, and show the turn
///
/// The session is one of `teamster chat --detach`. Output and exit code are those of the turn, as in `teamster run`.
/// Ctrl-C interrupts the turn; a second one ends it by force. The session continues.
///
/// While another turn is in progress, a prompt is refused, unless it waits (--queue) or is sent to that turn
/// (--steer).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit_code::HELP))]
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
    /// Attach an image to the prompt (repeatable)
    ///
    /// The file is read here: with --remote, it goes along. The agent must be one that takes images.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "steer",
        hide_short_help = true,
        value_hint = ValueHint::FilePath
    )]
    pub(crate) image: Vec<PathBuf>,
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
