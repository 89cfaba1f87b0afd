//! The scriptable fake agent as a program.

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    teamster_testkit::fake_agent::main(std::env::args_os().skip(1))
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    // The fake agent depends on Unix signals, sessions and inherited pipes.
    ExitCode::from(2)
}
