//! Launch of a CLI.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::Timeouts;

/// The environment variable that marks the processes of a run. Leftovers of a killed owner are found by it.
/// Providers need the name if a CLI does not pass its whole environment on.
pub const RUN_ID_VARIABLE: &str = "TEAMSTER_RUN_ID";

/// Variables that bind git to one repository: what `git rev-parse --local-env-vars` lists (git 2.47), and
/// `GIT_QUARANTINE_PATH` and `GIT_INTERNAL_SUPER_PREFIX`, which git sets for hooks of a push and did set for commands in
/// submodules.
pub const LOCAL_GIT_VARIABLES: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Launch of a CLI: program, arguments, environment and files.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// Arguments, without the program.
    pub args: Vec<OsString>,
    /// Values that are too large or too private for the command line.
    pub private_files: Vec<PrivateFile>,
    /// True if the CLI leaves files in the directory for temporary files. It then gets its own (`TMPDIR`), which only
    /// this user can enter and which is removed after the run. A `TMPDIR` of the caller takes precedence.
    pub private_tmp: bool,
    /// Environment variables of the provider. They override inherited ones; the caller's override them.
    pub env: Vec<(String, String)>,
    /// Variables that override the caller's too: those that hold several settings, into which the provider has merged
    /// the caller's.
    pub env_merged: Vec<(String, String)>,
    /// Inherited variables to remove, because they would make the CLI assume that it runs inside another agent's
    /// session. Variables that the caller sets are kept.
    pub env_remove: Vec<&'static str>,
    /// Input on stdin.
    pub stdin: Stdin,
    /// The stream that carries the events.
    pub events_on: EventsOn,
    /// A step of stopping before SIGTERM, for a CLI that cleans up better with it.
    pub stop_first: Option<StopStep>,
    /// Time that the process may live after the end of its output. Default: the engine's.
    pub exit_grace: Option<Duration>,
    /// Time limits that fit this CLI better than the engine's.
    pub timeouts: Timeouts,
    /// Servers for a CLI that only reads them from its own configuration file.
    pub config: Option<ConfigEdit>,
    /// Files of this machine that the CLI does not read if a private file is there. A run is refused where one exists,
    /// because its settings would be lost. A container does not have them.
    pub displaced: Vec<DisplacedFile>,
    /// Tables whose servers the CLI would mix with one of this run of the same name. A run with such a name is
    /// refused.
    pub names_taken: Vec<ConfigTable>,
}

/// A file of settings whose place a private file takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisplacedFile {
    /// The parameter with the content of the private file, such as `hooks`.
    pub parameter: &'static str,
    /// The variable that names the file, if the CLI inherits it.
    pub variable: &'static str,
    /// The file without that variable. It need not exist.
    pub default: PathBuf,
}

/// A table of named servers in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigTable {
    /// The file. It need not exist.
    pub file: PathBuf,
    /// Format of the file.
    pub format: ConfigFormat,
    /// The key of the table at the top of the file, such as `mcpServers`.
    pub key: &'static str,
}

/// Format of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigFormat {
    /// JSON, possibly with comments and trailing commas.
    Json,
    /// TOML.
    Toml,
}

/// Entries of a configuration file for the time of a run.
///
/// Values MUST NOT hold secrets: in the user's file, others could read or commit them. Secrets are in
/// [`Launch::env`], and the entry names the variable.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigEdit {
    /// The table to add the entries to.
    pub table: ConfigTable,
    /// Name and definition of each.
    pub entries: Vec<(String, Value)>,
    /// Further content of a file that has to be created, such as a schema that the CLI would otherwise add. A file that
    /// was changed during the run is not removed after it. Usually empty.
    pub new_file: &'static str,
    /// Location of the changed file.
    pub location: ConfigLocation,
}

/// Location of a changed configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigLocation {
    /// The original file: changed before the run and restored after it, byte for byte.
    Lease,
    /// A private copy of its folder.
    PrivateHome(PrivateHome),
}

/// A private home for a CLI that reads its configuration only there. Everything in it except the changed file
/// links to the user's own files.
///
/// Writes through these links change the user's files at once. New files, and files that replace a link, are
/// moved to the user's folder after the run, but never over a change of another program. The changed file itself is
/// discarded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrivateHome {
    /// The environment variable with the CLI's home.
    pub variable: &'static str,
    /// The user's own home, which the variable replaces.
    pub home: PathBuf,
    /// The folder in it that holds the CLI's files, such as `.gemini`.
    pub folder: &'static str,
    /// Folders in `folder` that the CLI creates in every run. Missing ones are created in the user's home before the
    /// run, so that their content survives however the run ends.
    pub folders: &'static [&'static str],
    /// Files in it that the CLI writes in place, such as logins. They are linked even if they do not exist, for the
    /// same reason.
    pub files: &'static [&'static str],
    /// Files in it that the CLI can recreate. They are discarded silently if the user's own file has changed as well.
    pub caches: &'static [&'static str],
    /// Extensions of files that are never moved back, such as `lock`.
    pub litter: &'static [&'static str],
}

/// A value that is passed to the CLI in a file that only this user can read, and that is removed after the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateFile {
    /// Location of the file's path in the launch.
    pub location: PathLocation,
    /// Content of the file.
    pub content: Vec<u8>,
}

/// Location of the path of a [`PrivateFile`] in a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathLocation {
    /// Appended to the argument of [`Launch::args`] with this index, which is a prefix such as `--settings=`.
    Argument(usize),
    /// Like [`Argument`](Self::Argument), with a file whose name ends with this text, such as `.toml`, for a CLI that
    /// requires it.
    ArgumentNamed(usize, &'static str),
    /// Appended to the argument with this index is not the file but a directory, which has nothing else. There the file has
    /// this name, such as `plugin.json`.
    ArgumentDirectory(usize, &'static str),
    /// The value of this environment variable.
    Variable(String),
}

/// Input on stdin. It is closed unless requested otherwise, because several CLIs wait for its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stdin {
    /// No input: stdin is closed from the start.
    #[default]
    Closed,
    /// These bytes, after which stdin is closed.
    Bytes(Vec<u8>),
    /// These bytes, after which stdin stays open until the CLI reports that it is done. For protocols in which the end
    /// of the input stops the CLI.
    Open(Vec<u8>),
}

impl Stdin {
    /// Creates the input for a CLI that drops one byte order mark at the beginning of the prompt.
    pub fn prompt(prompt: &str) -> Self {
        const MARK: &str = "\u{feff}";
        let mark = if prompt.starts_with(MARK) { MARK } else { "" };
        Self::Bytes(format!("{mark}{prompt}").into_bytes())
    }
}

/// The stream that carries the events. The other one is only kept as evidence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventsOn {
    /// Standard output.
    #[default]
    Stdout,
    /// Standard error.
    Stderr,
}

/// One step of stopping a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopStep {
    /// The signal, sent to the CLI's own process only.
    pub signal: Signal,
    /// Time to wait for its end before the next step.
    pub grace: Duration,
}

/// A signal that asks a process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal {
    /// SIGINT, as Ctrl-C sends.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_of_the_prompt_is_written_twice() {
        for (prompt, input) in [
            ("\u{feff}x", "\u{feff}\u{feff}x"),
            ("x\u{feff}", "x\u{feff}"),
            ("", ""),
        ] {
            assert_eq!(
                Stdin::prompt(prompt),
                Stdin::Bytes(input.as_bytes().to_vec())
            );
        }
    }
}
