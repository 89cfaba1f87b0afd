//! The scriptable fake agent as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    teamster_testkit::fake_agent::main(std::env::args_os().skip(1))
}
