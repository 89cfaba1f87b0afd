//! The program `teamster`, with the built-in providers.

use std::process::ExitCode;

use teamster::Providers;

fn main() -> ExitCode {
    teamster_cli::main_with(Providers::builtin())
}
