//! Arguments of `teamster completions`.

use clap::Args;
use clap_complete::Shell;

/// Generate shell completions.
///
/// For example: teamster completions bash > ~/.local/share/bash-completion/completions/teamster
///
/// The script calls teamster, so it also completes the ids of runs, sessions and agents.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}
