//! `teamster mcp`.

pub(crate) mod args;
mod check;
mod list;
mod restore;
mod serve;

use crate::exit_code;
use crate::remote::Machine;
use args::McpCommand;

/// Runs the subcommand and returns the exit code.
pub(crate) fn main(command: McpCommand, machine: &Machine) -> anyhow::Result<u8> {
    let done = match command {
        McpCommand::List(args) => list::main(&args),
        McpCommand::Check(args) => check::main(&args),
        McpCommand::Serve(args) => serve::main(args, machine),
        McpCommand::Restore(args) => return restore::main(&args),
    };
    done.or_else(|error| match error {
        Failure::Usage(error) => {
            crate::report::fail(&error);
            Ok(exit_code::USAGE)
        }
        Failure::Other(error) => Err(error),
    })
}

/// An error of a subcommand.
#[derive(Debug)]
enum Failure {
    /// An error in the command line or in a configuration that it names.
    Usage(anyhow::Error),
    /// Any other error.
    Other(anyhow::Error),
}
