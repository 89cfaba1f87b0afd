//! Arguments of `teamster trust`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

const EXAMPLES: &str = "\
Examples:
  teamster trust
  teamster trust ~/src/app --from origin/main
  teamster trust --list
  teamster trust --remove

Exit codes:
    0  done
    1  the file, or the list of what is trusted, cannot be read or written
    2  no repository, or it has no set-up commands";

/// Trust the set-up commands of a repository.
///
/// `setup` in `.teamster.toml` of a repository has shell commands that run in each worktree that is made for a run,
/// before its agent starts. They run only if you trust them: as they are now, in this repository, on this machine.
/// The commands are printed. After a change of the file they must be trusted again.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TrustArgs {
    /// A directory of the repository [default: the current one]
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: Option<PathBuf>,
    /// Read the file in this commit rather than in the working tree
    #[arg(long, value_name = "REF")]
    pub(crate) from: Option<String>,
    /// List what is trusted, in all repositories
    #[arg(long, conflicts_with_all = ["remove", "from", "directory"])]
    pub(crate) list: bool,
    /// Trust nothing in the repository any more
    #[arg(long, conflicts_with = "from")]
    pub(crate) remove: bool,
}
