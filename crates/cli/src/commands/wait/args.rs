//! Arguments of `teamster wait`.

use clap::Args;

use crate::exit_code;

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
