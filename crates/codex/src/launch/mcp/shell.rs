//! Environment variables of a server that is a program.
//!
//! In the CLI's arguments and files their values could be read by others, so the CLI has them in its own
//! environment. A variable of the server's own name there could mean something to the CLI, or to another
//! server, and the CLI hands variables on by their own names only. So they have names that mean nothing,
//! and a shell gives them their own before it becomes the server.

use std::fmt::Write;

/// The shell that every Unix has.
const SHELL: Option<&str> = if cfg!(unix) { Some("/bin/sh") } else { None };

/// Variables that a shell keeps for itself, by what dash and bash were seen to do: it refuses the
/// assignment, computes with it, or the program sees another value.
const OF_THE_SHELL: &[&str] = &[
    "DIRSTACK",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "FUNCNAME",
    "GROUPS",
    "HISTCMD",
    "LINENO",
    "OPTIND",
    "PPID",
    "RANDOM",
    "SECONDS",
    "SHELLOPTS",
    "SHLVL",
    "SRANDOM",
    "UID",
    "_",
];

/// A program to start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) command: String,
    pub(super) args: Vec<String>,
}

/// A server's program, with its variables taken from those of the names beside them. The error names
/// the field.
pub(super) fn with_variables(
    server: &str,
    command: &str,
    args: &[String],
    variables: &[(&str, String)],
) -> Result<Program, String> {
    if variables.is_empty() {
        return Ok(Program {
            command: command.to_owned(),
            args: args.to_vec(),
        });
    }
    let Some(shell) = SHELL else {
        return Err(
            "env: Codex can give it to a server without showing it to others on Unix only; let the \
             server read it from a file"
                .to_owned(),
        );
    };
    if command.starts_with('-') {
        return Err(
            "command: it begins with `-`, so the shell that sets env takes it for an \
                    option; put its directory before it"
                .to_owned(),
        );
    }
    let mut script = String::new();
    for (name, source) in variables {
        check(name)?;
        // Writing to a string cannot fail.
        let _ = write!(script, "export {name}=\"${source}\"; unset {source}; ");
    }
    script.push_str("exec \"$@\"");
    // After the script comes the name that the shell has in its messages.
    let mut all = vec![
        "-c".to_owned(),
        script,
        server.to_owned(),
        command.to_owned(),
    ];
    all.extend_from_slice(args);
    Ok(Program {
        command: shell.to_owned(),
        args: all,
    })
}

/// Refuses a name to which a shell cannot assign.
fn check(name: &str) -> Result<(), String> {
    let is_identifier = !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !is_identifier {
        return Err(format!(
            "env: {name:?} is no name that a shell can set (letters, digits and `_`), and Codex \
             has no other way that does not show the value to others; let the server's own script \
             set it"
        ));
    }
    let of_bash = name.starts_with("BASH") && name != "BASH_ENV";
    if of_bash || OF_THE_SHELL.contains(&name) {
        return Err(format!(
            "env: {name} is a variable that shells keep for themselves, and Codex has no other \
             way that does not show the value to others; let the server's own script set it"
        ));
    }
    Ok(())
}
