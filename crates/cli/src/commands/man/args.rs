//! Arguments of `teamster man`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Write the manual pages into a directory.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct ManArgs {
    /// The directory, created if it is missing
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
}
