//! The hostile, scriptable fake agent as a program of its own.

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    teamster_testkit::fake_agent::main(std::env::args_os().skip(1))
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    // Signals, sessions and inherited pipes are the whole point, and they are Unix.
    ExitCode::from(2)
}
