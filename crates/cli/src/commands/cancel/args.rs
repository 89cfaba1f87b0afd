//! Arguments of `teamster cancel`.

use clap::Args;

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
