//! `teamster man`.

pub(crate) mod args;

use std::path::Path;
use std::{fs, io};

use clap_mangen::Man;

use crate::exit_code;
use args::ManArgs;

/// Writes the manual of a command line and returns the exit code.
pub(crate) fn main(args: &ManArgs, command_line: clap::Command) -> anyhow::Result<u8> {
    exit_code::of_printed(write_manual(command_line, &args.directory))
}

/// Writes the manual pages of a command line into a folder: one for the program and one for each command.
fn write_manual(command_line: clap::Command, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut program = command_line.disable_help_subcommand(true);
    program.build();
    write_page(program, folder)
}

/// Writes the pages of a command and of its commands. Hidden ones have none.
fn write_page(command: clap::Command, folder: &Path) -> io::Result<()> {
    for inner in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        write_page(inner.clone(), folder)?;
    }
    let page = Man::new(command);
    let mut text = Vec::new();
    page.render(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    // Justified text has wide gaps beside the long names of flags, which hyphens would cut. The title before it
    // resets both.
    let text = text.replacen(".SH NAME\n", ".ad l\n.nh\n.SH NAME\n", 1);
    fs::write(folder.join(page.get_filename()), text)
}
