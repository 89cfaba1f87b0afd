//! Arguments of `teamster demo`.

use clap::Args;

use crate::args::{OutputArgs, provider, value};

/// Demonstrate a run, with a scripted model or a recording.
///
/// If an agent CLI is installed, the demo runs it in a temporary folder, with its real tools, against a
/// scripted model on 127.0.0.1. Its home is temporary and its key is made up, so none of your files is
/// read or changed. Without a CLI, or if it fails, a stand-in prints the recorded output of a real run
/// of Claude Code; everything else is as in `teamster run`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The agent [default: the first installed of claude, codex, gemini, opencode, copilot]
    #[arg(long, value_name = "NAME", value_parser = provider::ProviderParser, conflicts_with = "recording")]
    pub(crate) provider: Option<String>,
    /// Play the recording, even if a CLI is installed
    #[arg(long)]
    pub(crate) recording: bool,
    /// Playback speed: 2 is twice as fast, 0 is without pauses
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = value::speed)]
    pub(crate) speed: f64,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
