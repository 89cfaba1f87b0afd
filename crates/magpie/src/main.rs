//! The program `teamster` with one provider more.

use std::process::ExitCode;
use std::sync::Arc;

use teamster::Providers;
use teamster_magpie::Magpie;

fn main() -> ExitCode {
    // The registration.
    teamster_cli::main_with(Providers::builtin().with(Arc::new(Magpie)))
}
