//! The MCP server for tests as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args = std::env::args_os().skip(1);
    teamster_testkit::fake_mcp_server::main(args.map(|arg| arg.to_string_lossy().into_owned()))
}
