//! Environment variables of a server that is a program.
//!
//! Others could read their values in the CLI's arguments and files, so the values are in the CLI's environment. A
//! server's own variable name could have a meaning there to the CLI or to another server, and the CLI passes
//! variables on only under the same name. So the values get neutral names, and a shell assigns the server's own names
//! before it executes the server.

use std::fmt::Write;

/// Path of the shell that every Unix has.
const SHELL: &str = "/bin/sh";

/// Variables that a shell reserves, as seen in dash and bash: it refuses or evaluates the assignment, or the program
/// gets another value.
const OF_THE_SHELL: &str = "
    DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME GROUPS HISTCMD LINENO OPTIND PPID RANDOM
    SECONDS SHELLOPTS SHLVL SRANDOM UID _
";

/// A program to start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) command: String,
    pub(super) args: Vec<String>,
}

/// Returns a server's program with its variables, whose values are read from the variables named beside them. The
/// error names the field.
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
    // The word after the script is the shell's name in its messages.
    let mut all = vec![
        "-c".to_owned(),
        script,
        server.to_owned(),
        command.to_owned(),
    ];
    all.extend_from_slice(args);
    Ok(Program {
        command: SHELL.to_owned(),
        args: all,
    })
}

/// Refuses a name to which a shell cannot assign.
fn check(name: &str) -> Result<(), String> {
    let is_identifier = !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !is_identifier {
        return Err(format!(
            "env: a shell cannot set {name:?} (only letters, digits and `_`), and any other way would \
             show the value to other users; let the server's own script \
             set it"
        ));
    }
    let of_bash = name.starts_with("BASH") && name != "BASH_ENV";
    let mut of_the_shell = OF_THE_SHELL.split_ascii_whitespace();
    if of_bash || of_the_shell.any(|own| own == name) {
        return Err(format!(
            "env: shells reserve the variable {name}, and any other way would show the value to other \
             users; let the server's own script set it"
        ));
    }
    Ok(())
}
