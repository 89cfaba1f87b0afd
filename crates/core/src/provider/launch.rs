//! Launch of a CLI.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::Timeouts;

/// The environment variable by which the processes of a run are known as such: what is left of them when
/// their owner was killed is found by it. For a CLI that does not pass its environment on.
pub const RUN_ID_VARIABLE: &str = "TEAMSTER_RUN_ID";

/// Launch of a CLI: program, arguments, environment and files.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// Arguments, without the program.
    pub args: Vec<OsString>,
    /// Values that are too large, or too private, for the list of processes.
    pub private_files: Vec<PrivateFile>,
    /// The CLI leaves files in the place for temporary ones: it gets a folder of its own for them
    /// (`TMPDIR`), which only this user can enter and which is removed after the run. What the caller
    /// sets counts more.
    pub private_tmp: bool,
    /// Environment variables of the provider: over the inherited, under the caller's.
    pub env: Vec<(String, String)>,
    /// Variables over the caller's too: for one that holds several settings, into which the provider
    /// has merged what the caller set.
    pub env_merged: Vec<(String, String)>,
    /// Inherited variables that must go, because they would make the CLI believe that it runs
    /// inside another agent's session. What the caller sets stays.
    pub env_remove: Vec<&'static str>,
    /// Input on stdin.
    pub stdin: Stdin,
    /// Which stream carries the events.
    pub events_on: EventsOn,
    /// How to ask it to stop before SIGTERM, for a CLI that cleans up better so.
    pub stop_first: Option<StopStep>,
    /// How long it may live after the end of its output; the engine's default if unset.
    pub exit_grace: Option<Duration>,
    /// Limits of time that fit this CLI better than the engine's.
    pub timeouts: Timeouts,
    /// Servers that the CLI finds in a configuration file of its own only.
    pub config: Option<ConfigEdit>,
    /// Where the CLI would mix a server of the user's with one of this run that has the same name. A
    /// run with such a name is refused.
    pub names_taken: Vec<ConfigTable>,
}

/// A table of named servers in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigTable {
    /// The file. It need not be there.
    pub file: PathBuf,
    /// How it is written.
    pub format: ConfigFormat,
    /// The key of the table at the top of the file, such as `mcpServers`.
    pub key: &'static str,
}

/// Format of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigFormat {
    /// JSON; with comments and commas at the ends of lists, where the user has them.
    Json,
    /// TOML.
    Toml,
}

/// Entries for a configuration file, for the time of a run.
///
/// The values hold no secrets: in the user's file they would be read by others, or committed. What is
/// secret is in [`Launch::env`], and the entry names the variable.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigEdit {
    /// The table that gets them.
    pub table: ConfigTable,
    /// Name and definition of each.
    pub entries: Vec<(String, Value)>,
    /// Further content if the file has to be created, such as a schema that the CLI would add itself:
    /// a file that was changed meanwhile is not simply removed again. Usually nothing.
    pub new_file: &'static str,
    /// Where the changed file is.
    pub place: ConfigPlace,
}

/// Location of a changed configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigPlace {
    /// In its place: changed before the run and restored after it, byte for byte.
    Lease,
    /// In a private copy of the folder that it is in.
    PrivateHome(PrivateHome),
}

/// A private home for a CLI that finds its configuration only there: everything in it but the changed
/// file leads to the user's own.
///
/// What the CLI writes through these links is the user's at once. What it makes new beside them, or
/// puts in the place of one, is brought to the user's folder after the run, but never over a change
/// that another program made meanwhile. The changed file itself is thrown away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrivateHome {
    /// The environment variable with the CLI's home.
    pub variable: &'static str,
    /// The user's own home, which that variable replaces.
    pub home: PathBuf,
    /// The folder in it that holds the CLI's files, such as `.gemini`.
    pub folder: &'static str,
    /// Folders in that folder which the CLI makes in every run. Where the user does not have them yet,
    /// they are made before the run, so that what is in them survives however the run ends.
    pub folders: &'static [&'static str],
    /// Files in it that the CLI writes in place, such as logins: for the same reason the link is there
    /// also if the file is not.
    pub files: &'static [&'static str],
    /// Files in it that the CLI can create again from others: lost without a word if the user's own has
    /// changed as well.
    pub caches: &'static [&'static str],
    /// Extensions of names that are never brought back, such as `lock`.
    pub litter: &'static [&'static str],
}

/// A value that goes to the CLI in a file which only this user can read, and which is gone after the
/// run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateFile {
    /// Where the CLI finds the file's path.
    pub place: FilePlace,
    /// Content of the file.
    pub content: Vec<u8>,
}

/// How the path of a [`PrivateFile`] is passed to a CLI.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilePlace {
    /// At the end of this argument of [`Launch::args`], which is there without it, such as
    /// `--settings=`.
    Argument(usize),
    /// The same, of a file whose name ends with this text, for a CLI that reads no other:
    /// such as `.toml`.
    ArgumentNamed(usize, &'static str),
    /// In this environment variable.
    Variable(String),
}

/// Input on stdin. It is never left open by accident: several CLIs wait for its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stdin {
    /// Nothing: it is closed from the start.
    #[default]
    Closed,
    /// These bytes and then the end.
    Bytes(Vec<u8>),
    /// These bytes, and then it stays open until the CLI reports that it is done: for a protocol in
    /// which the end of the input is an order to stop.
    Open(Vec<u8>),
}

impl Stdin {
    /// The prompt for a CLI that drops one byte order mark at the beginning of what it reads.
    pub fn prompt(prompt: &str) -> Self {
        const MARK: &str = "\u{feff}";
        let mark = if prompt.starts_with(MARK) { MARK } else { "" };
        Self::Bytes(format!("{mark}{prompt}").into_bytes())
    }
}

/// Which stream carries the events; the other is only kept as evidence.
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
    /// How long to wait for it to end before the next step.
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
