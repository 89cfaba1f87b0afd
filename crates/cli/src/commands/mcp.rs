//! `teamster mcp`.

pub(crate) mod args;
mod check;
mod list;
mod restore;
mod serve;

use crate::remote::Machine;
use args::McpCommand;

/// Runs the subcommand and returns the exit code.
pub(crate) fn main(command: McpCommand, machine: &Machine) -> anyhow::Result<u8> {
    match command {
        McpCommand::List(args) => list::main(&args),
        McpCommand::Check(args) => check::main(&args),
        McpCommand::Serve(args) => serve::main(args, machine),
        McpCommand::Restore(args) => restore::main(&args),
    }
}
