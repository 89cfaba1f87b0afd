//! `teamster mcp`, and the servers that a run is given.

mod check;
mod list;
mod restore;
mod serve;
mod servers;
mod typed;

use crate::args::McpCommand;
use crate::exit_code;

pub(crate) use restore::{Left, left, restore_quietly};
pub(crate) use servers::{Given, given, sources};

/// Does what is asked; the exit code.
pub(crate) fn main(command: &McpCommand) -> anyhow::Result<u8> {
    let done = match command {
        McpCommand::List(args) => list::main(args),
        McpCommand::Check(args) => check::main(args),
        McpCommand::Serve(args) => serve::main(args),
        McpCommand::Restore(args) => return restore::main(args),
    };
    done.or_else(|error| match error {
        Failure::Usage(error) => {
            crate::fail(&error);
            Ok(exit_code::USAGE)
        }
        Failure::Other(error) => Err(error),
    })
}

/// Why a command did not get to its end.
#[derive(Debug)]
enum Failure {
    /// The command line, or a configuration that it names, is wrong.
    Usage(anyhow::Error),
    /// Anything else.
    Other(anyhow::Error),
}
