//! Options of the output.

use clap::Args;

use super::COMMON;

/// Output options of a run.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print every event as one line of JSON
    ///
    /// Nothing else is printed on stdout. Errors in arguments, prompts and files go to stderr only, with an
    /// empty stdout and exit code 2.
    #[arg(long, help_heading = COMMON)]
    pub(crate) json: bool,
    /// With --json: add the CLI's own line to each event
    #[arg(long, requires = "json", hide_short_help = true)]
    pub(crate) native: bool,
    /// Print only the agent's last message, and errors
    ///
    /// Errors are on stderr.
    #[arg(long, short, conflicts_with_all = ["json", "verbose"], help_heading = COMMON)]
    pub(crate) quiet: bool,
    /// Also show thinking, sub-agents, output and notes
    #[arg(long, short, conflicts_with = "json", help_heading = COMMON)]
    pub(crate) verbose: bool,
}

/// Output options of a detached run.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct AttachOutputArgs {
    /// Print the entries of the run's log, one line of JSON each
    ///
    /// `seq` numbers them from 1 without gaps; `done` is the last. Every reader gets the same bytes.
    #[arg(long)]
    json: bool,
    /// Print only the agent's last message, and errors
    #[arg(long, short, conflicts_with_all = ["json", "verbose"])]
    quiet: bool,
    /// Also show thinking, sub-agents, output and notes
    #[arg(long, short, conflicts_with = "json")]
    verbose: bool,
}

impl From<AttachOutputArgs> for OutputArgs {
    fn from(args: AttachOutputArgs) -> Self {
        Self {
            json: args.json,
            native: false,
            quiet: args.quiet,
            verbose: args.verbose,
        }
    }
}
