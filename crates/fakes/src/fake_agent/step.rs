//! The steps of a script, with one type for each step that has options.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::write::{BigLine, Flood, Play, Text};

/// An action of the fake agent. In TOML, a `[[step]]` table with one key.
///
/// [`Script`](super::Script) has a builder method for each step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Step {
    /// Writes text and a newline, see [`Text`].
    Line(Text),
    /// Writes text as it is, without a newline: half lines, broken UTF-8. See [`Text`].
    Raw(Text),
    /// Writes one very long line, see [`BigLine`].
    BigLine(BigLine),
    /// Plays a recorded file, see [`Play`].
    Play(Play),
    /// Writes a large amount of meaningless text, see [`Flood`].
    Flood(Flood),
    /// Waits: `sleep = { ms = 250 }`.
    Sleep {
        /// The duration, in milliseconds.
        ms: u64,
    },
    /// Waits forever: `forever = {}`.
    Forever {},
    /// Ignores signals from now on: `ignore = { signals = ["SIGTERM", "SIGINT"] }`.
    Ignore {
        /// The signals.
        signals: Vec<Signal>,
    },
    /// Executes separate steps when a signal arrives, while the script continues: `on_signal = { signal =
    /// "SIGINT", step = [{ line = { text = "…" } }, { exit = { code = 0 } }] }`.
    ///
    /// Without steps the signal has no effect. The agent runs until either the steps or the script exit.
    OnSignal {
        /// The signal.
        signal: Signal,
        /// The steps, executed each time that it arrives.
        #[serde(default)]
        step: Vec<Step>,
    },
    /// Starts another process, see [`Spawn`].
    Spawn(Spawn),
    /// Closes a stream; the script continues: `close = { stream = "stdout" }`.
    ///
    /// Later output to a closed stream is discarded.
    Close {
        /// The stream.
        stream: Pipe,
    },
    /// Reads standard input, see [`Stdin`]. A script without this step never reads it.
    Stdin(Stdin),
    /// Waits until a file exists: `wait_for_file = { path = "…" }`.
    WaitForFile {
        /// Path of the file.
        path: PathBuf,
    },
    /// Writes a file atomically: `write_file = { path = "…", text = "…" }`.
    WriteFile {
        /// Path of the file.
        path: PathBuf,
        /// The content. Default: empty.
        #[serde(default)]
        text: String,
    },
    /// Executes steps only if a file exists: `if_exists = { path = "…", step = […] }`.
    ///
    /// With [`WriteFile`](Self::WriteFile), this makes a second run differ from the first.
    IfExists {
        /// Path of the file.
        path: PathBuf,
        /// The steps.
        step: Vec<Step>,
    },
    /// Writes the arguments and environment of the agent: `report = { file = "…" }`. See
    /// [`Report`](super::Report).
    Report {
        /// Path of the JSON file.
        file: PathBuf,
    },
    /// From now on, loses standard output as some CLIs do: `lossy_stdout = {}`.
    ///
    /// The pipe becomes non-blocking. Output that does not fit is queued in memory and retried between steps
    /// and while the script sleeps or waits. When the agent ends, the queue is dropped, and the agent still
    /// reports success.
    LossyStdout {},
    /// Ends the agent when a reader has gone away: `exit_on_epipe = { code = 1 }`.
    ///
    /// Without this step the agent ignores a missing reader.
    ExitOnEpipe {
        /// The exit code.
        code: u8,
    },
    /// Changes the maximum lifetime, after which `SIGALRM` ends the agent: `life_limit = { seconds = 60 }`.
    ///
    /// The limit ensures that a failed test leaves no process behind. Every agent and every process that it
    /// spawns starts with [`LIFE_LIMIT_SECONDS`](super::LIFE_LIMIT_SECONDS); 0 means no limit.
    LifeLimit {
        /// Seconds from now.
        seconds: u32,
    },
    /// Ends the agent immediately: `exit = { code = 3 }`.
    Exit {
        /// The exit code.
        code: u8,
    },
    /// Sends a signal to its own process: `kill_self = { signal = "SIGKILL" }`.
    KillSelf {
        /// The signal.
        signal: Signal,
    },
    /// Ends with `SIGABRT`, as after a crash: `abort = {}`.
    Abort {},
}

/// Any of the three standard streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pipe {
    /// `"stdin"`
    Stdin,
    /// `"stdout"`
    Stdout,
    /// `"stderr"`
    Stderr,
}

/// A signal, in TOML by its full name such as `"SIGTERM"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Signal {
    /// The terminal was closed.
    #[serde(rename = "SIGHUP")]
    Hup,
    /// Interrupt, as sent by Ctrl-C.
    #[serde(rename = "SIGINT")]
    Int,
    /// Quit, as sent by Ctrl-\.
    #[serde(rename = "SIGQUIT")]
    Quit,
    /// Abort, as after a crash.
    #[serde(rename = "SIGABRT")]
    Abrt,
    /// Kill. It can be sent, but neither ignored nor answered.
    #[serde(rename = "SIGKILL")]
    Kill,
    /// User-defined signal 1.
    #[serde(rename = "SIGUSR1")]
    Usr1,
    /// User-defined signal 2.
    #[serde(rename = "SIGUSR2")]
    Usr2,
    /// Request to end.
    #[serde(rename = "SIGTERM")]
    Term,
}

/// Reads standard input: `stdin = { until = "eof", save = "…", echo = true }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stdin {
    pub(super) until: Until,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) save: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) echo: bool,
}

/// End of the input to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Until {
    Line,
    Eof,
    Forever,
}

impl Stdin {
    fn until(until: Until) -> Self {
        Self {
            until,
            save: None,
            echo: false,
        }
    }

    /// Reads one line (`"line"`).
    pub fn line() -> Self {
        Self::until(Until::Line)
    }

    /// Reads to the end of the input (`"eof"`).
    pub fn to_eof() -> Self {
        Self::until(Until::Eof)
    }

    /// Reads to the end of the input and continues to run, as a CLI that ignores EOF (`"forever"`).
    pub fn forever() -> Self {
        Self::until(Until::Forever)
    }

    /// Writes `{"type":"stdin","bytes":5,"text":"…"}` to standard output after the input was read.
    #[must_use]
    pub fn echo(mut self) -> Self {
        self.echo = true;
        self
    }
}

/// Relation of a spawned process to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpawnKind {
    /// `"child"`: in the agent's process group. A signal to the group reaches it.
    Child,
    /// `"group"`: in a new process group of the agent's session.
    Group,
    /// `"setsid"`: in a new session, as the shell tools of real CLIs. A signal to the agent's group does not
    /// reach it, but it is still the agent's child.
    Setsid,
    /// `"daemon"`: in another session with another parent. It is not in the agent's process tree.
    Daemon,
}

/// Starts another process of the fake agent:
/// `spawn = { kind = "setsid", hold_pipes = true, clear_env = false, pid_file = "…", step = […] }`.
///
/// The process has a separate script, so it can also ignore signals, write to inherited pipes and spawn.
///
/// The step ends when the new process is ready: its session exists, the leading `ignore` and `on_signal`
/// steps of its script are done and its pid file is written. The agent never waits for it afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spawn {
    pub(super) kind: SpawnKind,
    #[serde(default = "yes")]
    pub(super) hold_pipes: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) clear_env: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) pid_file: Option<PathBuf>,
    /// An empty list means that the process lives forever.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) step: Vec<Step>,
}

impl Spawn {
    /// Creates a process of this kind that holds the agent's stdout and stderr open and lives forever.
    pub fn new(kind: SpawnKind) -> Self {
        Self {
            kind,
            hold_pipes: true,
            clear_env: false,
            pid_file: None,
            step: Vec::new(),
        }
    }

    /// Starts it with an empty environment, so that no variable identifies its owner.
    #[must_use]
    pub fn clear_env(mut self) -> Self {
        self.clear_env = true;
        self
    }

    /// Sets its script, after which it ends. A script without steps never ends.
    #[must_use]
    pub fn script(mut self, script: super::Script) -> Self {
        self.step = script.step;
        self
    }
}

impl From<SpawnKind> for Spawn {
    fn from(kind: SpawnKind) -> Self {
        Self::new(kind)
    }
}

teamster_core::setters! {
    Stdin {
        /// Writes the input to this file, atomically.
        some_into save: PathBuf,
    }
    Spawn {
        /// Sets whether it inherits stdout and stderr (the default) or gets `/dev/null`.
        set hold_pipes: bool,
        /// Writes its process id to this file.
        some_into pid_file: PathBuf,
    }
}

/// Returns whole milliseconds, limited to the largest TOML integer, which is signed.
pub(super) fn millis(duration: Duration) -> u64 {
    const LONGEST: u64 = i64::MAX as u64;
    teamster_core::time::millis(duration).min(LONGEST)
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn yes() -> bool {
    true
}
