//! Arguments of `teamster requests`.

use clap::Args;

/// List pending requests of detached runs
///
/// A detached run that needs permission for a tool waits up to its `--ask-timeout`, as it does for the question of
/// an MCP server. Answer with `teamster answer`, or at a terminal with `teamster attach`.
#[derive(Debug, Args)]
pub(crate) struct RequestsArgs {
    /// Only requests of these runs, each with all that it would do, by their ids or unique prefixes of them
    #[arg(value_name = "RUN")]
    pub(crate) ids: Vec<String>,
    /// Print one JSON object per line, with the whole input of each tool
    #[arg(long)]
    pub(crate) json: bool,
}
