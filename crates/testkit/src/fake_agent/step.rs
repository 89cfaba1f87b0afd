//! The steps of a script: one type each, with its TOML form.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::write::{BigLine, Flood, Play, Text};

/// An action of the fake agent. In TOML, a `[[step]]` table with one key.
///
/// Written with the methods of [`Script`](super::Script); the steps that have options take one of
/// the types of this module.
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
    /// Writes a lot of text that means nothing, see [`Flood`].
    Flood(Flood),
    /// Waits: `sleep = { ms = 250 }`.
    Sleep {
        /// How long, in milliseconds.
        ms: u64,
    },
    /// Never ends: `forever = {}`.
    Forever {},
    /// Ignores signals from now on: `ignore = { signals = ["SIGTERM", "SIGINT"] }`.
    Ignore {
        /// Which signals.
        signals: Vec<Signal>,
    },
    /// Answers a signal with steps of its own, beside the script, which continues:
    /// `on_signal = { signal = "SIGINT", step = [{ line = { text = "…" } }, { exit = { code = 0 } }] }`.
    ///
    /// Without steps the signal is noticed and nothing happens. The script runs as long as neither
    /// the steps nor the script itself exit.
    OnSignal {
        /// Which signal.
        signal: Signal,
        /// Steps for each time that it arrives.
        #[serde(default)]
        step: Vec<Step>,
    },
    /// Starts another process, see [`Spawn`].
    Spawn(Spawn),
    /// Closes a stream and lives on: `close = { stream = "stdout" }`.
    ///
    /// What is written to a closed stream afterwards goes nowhere.
    Close {
        /// Which stream.
        stream: Pipe,
    },
    /// Reads standard input, see [`Stdin`]. A script without this step never reads it.
    Stdin(Stdin),
    /// Waits until a file exists: `wait_for_file = { path = "…" }`.
    WaitForFile {
        /// Path of the file.
        path: PathBuf,
    },
    /// Writes a file, whole or not at all: `write_file = { path = "…", text = "…" }`.
    WriteFile {
        /// Path of the file.
        path: PathBuf,
        /// Its content, empty unless given.
        #[serde(default)]
        text: String,
    },
    /// Does steps only if a file exists: `if_exists = { path = "…", step = […] }`.
    ///
    /// With [`WriteFile`](Self::WriteFile) this makes a second run differ from the first.
    IfExists {
        /// Path of the file.
        path: PathBuf,
        /// Steps to execute then.
        step: Vec<Step>,
    },
    /// Writes what the agent was launched with: `report = { file = "…" }`. See
    /// [`Report`](super::Report).
    Report {
        /// Path of the JSON file.
        file: PathBuf,
    },
    /// From now on, writes standard output like a CLI that loses output: `lossy_stdout = {}`.
    ///
    /// The pipe becomes non-blocking. What does not fit waits in memory, is tried again between
    /// steps and while the script sleeps or waits, and is dropped when the agent ends, which still
    /// reports success.
    LossyStdout {},
    /// Ends the agent when a reader has gone away: `exit_on_epipe = { code = 1 }`.
    ///
    /// Without this step it writes on as if nothing had happened.
    ExitOnEpipe {
        /// The exit code.
        code: u8,
    },
    /// Changes how long the agent may live before `SIGALRM` ends it: `life_limit = { seconds = 60 }`.
    ///
    /// The limit is there so that a failed test leaves nothing behind. It is
    /// [`LIFE_LIMIT_SECONDS`](super::LIFE_LIMIT_SECONDS) at the start of every agent and of every
    /// process that it spawns; 0 means no limit.
    LifeLimit {
        /// Seconds from now.
        seconds: u32,
    },
    /// Ends the agent at once: `exit = { code = 3 }`.
    Exit {
        /// The exit code.
        code: u8,
    },
    /// Sends a signal to itself: `kill_self = { signal = "SIGKILL" }`.
    KillSelf {
        /// Which signal.
        signal: Signal,
    },
    /// Ends by `SIGABRT`, as after a crash: `abort = {}`.
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

/// A signal, written in TOML by its full name such as `"SIGTERM"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Signal {
    /// The terminal has gone.
    #[serde(rename = "SIGHUP")]
    Hup,
    /// Interrupt, as by Ctrl-C.
    #[serde(rename = "SIGINT")]
    Int,
    /// Quit, as by Ctrl-\.
    #[serde(rename = "SIGQUIT")]
    Quit,
    /// A crash.
    #[serde(rename = "SIGABRT")]
    Abrt,
    /// The end: it can be sent, and neither ignored nor answered.
    #[serde(rename = "SIGKILL")]
    Kill,
    /// For any use.
    #[serde(rename = "SIGUSR1")]
    Usr1,
    /// For any use.
    #[serde(rename = "SIGUSR2")]
    Usr2,
    /// A request to end.
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

/// End of reading standard input.
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

    /// Reads to the end (`"eof"`).
    pub fn to_eof() -> Self {
        Self::until(Until::Eof)
    }

    /// Reads to the end and does not end then: a CLI that ignores EOF (`"forever"`).
    pub fn forever() -> Self {
        Self::until(Until::Forever)
    }

    /// Writes what was read to this file, whole or not at all.
    #[must_use]
    pub fn save(mut self, file: impl Into<PathBuf>) -> Self {
        self.save = Some(file.into());
        self
    }

    /// Writes `{"type":"stdin","bytes":5,"text":"…"}` to standard output once it was read.
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
    /// `"child"`: in the agent's own process group. A signal to the group reaches it.
    Child,
    /// `"group"`: a process group of its own, in the agent's session.
    Group,
    /// `"setsid"`: a session of its own, as the shell tools of real CLIs are. A signal to the
    /// agent's group does not reach it; it is still the agent's child.
    Setsid,
    /// `"daemon"`: another session and another parent. The process tree does not lead to it.
    Daemon,
}

/// Starts another process of the fake agent:
/// `spawn = { kind = "setsid", hold_pipes = true, clear_env = false, pid_file = "…", step = […] }`.
///
/// It has a script of its own, so it too can ignore signals, write to the pipes that it inherited,
/// and spawn. The step ends when the new process is ready: its session is made, the `ignore` and
/// `on_signal` steps at the head of its script are done and its pid file is written. The agent
/// never waits for it afterwards.
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
    /// Without steps it lives forever.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) step: Vec<Step>,
}

impl Spawn {
    /// A process that stands so, holds the agent's stdout and stderr open and lives forever.
    pub fn new(kind: SpawnKind) -> Self {
        Self {
            kind,
            hold_pipes: true,
            clear_env: false,
            pid_file: None,
            step: Vec::new(),
        }
    }

    /// Whether it inherits stdout and stderr (the default) or has `/dev/null` there.
    #[must_use]
    pub fn hold_pipes(mut self, hold: bool) -> Self {
        self.hold_pipes = hold;
        self
    }

    /// Gives it no environment at all, so that nothing in it identifies its owner.
    #[must_use]
    pub fn clear_env(mut self) -> Self {
        self.clear_env = true;
        self
    }

    /// Writes its process id to this file.
    #[must_use]
    pub fn pid_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.pid_file = Some(file.into());
        self
    }

    /// Its script, after which it ends. A script without steps means that it lives forever.
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

/// Whole milliseconds. TOML integers have a sign; a time beyond them is as good as forever.
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
