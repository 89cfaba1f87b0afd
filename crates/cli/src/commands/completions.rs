//! `teamster completions`.

pub(crate) mod args;

use std::io::{self, Write};

use clap_complete::env::Shells;

use crate::completion::VARIABLE;
use crate::exit_code;
use args::CompletionsArgs;

/// Prints the completion script of a shell and returns the exit code.
pub(crate) fn main(args: &CompletionsArgs) -> anyhow::Result<u8> {
    // The script is in memory, so that a lost reader is not an error of the generator.
    let script = script(args.shell);
    exit_code::of_printed(script.and_then(|script| io::stdout().write_all(&script)))
}

fn script(shell: clap_complete::Shell) -> io::Result<Vec<u8>> {
    let mut script = Vec::new();
    let name = shell.to_string();
    if let Some(shell) = Shells::builtins().completer(&name) {
        shell.write_registration(VARIABLE, "teamster", "teamster", "teamster", &mut script)?;
    }
    Ok(script)
}
