//! The program `teamster`, with the CLIs of this build.

use std::process::ExitCode;

use teamster::Providers;

fn main() -> ExitCode {
    teamster_cli::main_with(Providers::builtin())
}
