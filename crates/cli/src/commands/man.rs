//! `teamster man`.

pub(crate) mod args;

use std::path::Path;

use crate::exit_code;
use args::ManArgs;

/// Writes the manual of a command line and returns the exit code.
pub(crate) fn main(args: &ManArgs, command_line: clap::Command) -> anyhow::Result<u8> {
    exit_code::of_printed(write_manual(command_line, &args.directory))
}

/// Writes the manual pages of a command line into a folder: one for the program and one for each command.
fn write_manual(command_line: clap::Command, folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(command_line, folder)
}
