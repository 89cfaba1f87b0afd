//! The program `teamster` with one additional provider.

use std::process::ExitCode;
use std::sync::Arc;

use teamster::Providers;
use teamster_magpie::Magpie;

fn main() -> ExitCode {
    // Registers the provider.
    teamster_cli::main_with(Providers::builtin().with(Arc::new(Magpie)))
}
