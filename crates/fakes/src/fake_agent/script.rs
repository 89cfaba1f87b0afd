//! The script type, its TOML form and its builder methods.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::step::{Pipe, Signal, Spawn, Stdin, Step, millis};
use super::write::{BigLine, Flood, Play, Text};

/// The environment variable that holds the script, or `@` and the path of a file with it.
pub const SCRIPT_ENV: &str = "TEAMSTER_FAKE_SCRIPT";

/// The steps of a fake agent. After the last step the agent exits with code 0.
///
/// ```
/// # use std::time::Duration;
/// use teamster_fakes::fake_agent::{Script, Signal, Text};
///
/// let script = Script::new()
///     .on_signal(Signal::Int, Script::new().line(r#"{"type":"result"}"#).exit(0))
///     .line(Text::from(r#"{"delta":{n}}"#).repeat(1000))
///     .sleep(Duration::from_millis(20))
///     .forever();
/// assert_eq!(Script::parse(&script.to_toml()?)?, script);
/// # Ok::<(), teamster_fakes::fake_agent::ScriptError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The steps, in order.
    #[serde(default)]
    pub(super) step: Vec<Step>,
}

/// Error of reading or writing a script.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The text is not a script. The message has the line and column.
    #[error("the script is wrong: {0}")]
    Parse(Box<toml::de::Error>),
    /// The script has no TOML form, for example because of a path that is not UTF-8.
    #[error("the script cannot be written as TOML: {0}")]
    Write(Box<toml::ser::Error>),
    /// The script's file cannot be read.
    #[error("cannot read the script {}: {error}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
}

/// TOML.
impl Script {
    /// Parses a script from TOML.
    ///
    /// # Errors
    ///
    /// The text is not a script.
    pub fn parse(toml: &str) -> Result<Self, ScriptError> {
        toml::from_str(toml).map_err(|error| ScriptError::Parse(Box::new(error)))
    }

    /// Reads a script from a TOML file.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is not a script.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ScriptError> {
        let path = path.as_ref();
        let toml = fs::read_to_string(path).map_err(|error| ScriptError::Read {
            path: path.to_owned(),
            error,
        })?;
        Self::parse(&toml)
    }

    /// Returns the script as TOML.
    ///
    /// # Errors
    ///
    /// The script has no TOML form.
    pub fn to_toml(&self) -> Result<String, ScriptError> {
        toml::to_string(self).map_err(|error| ScriptError::Write(Box::new(error)))
    }

    /// Returns the environment variable that makes a fake agent execute this script, for
    /// [`Command::envs`](std::process::Command::envs).
    ///
    /// Linux limits one variable to about 128 KiB. Write a longer script to a file, and set the variable to
    /// `@` and its path.
    ///
    /// # Errors
    ///
    /// The script has no TOML form.
    pub fn env(&self) -> Result<[(&'static str, String); 1], ScriptError> {
        Ok([(SCRIPT_ENV, self.to_toml()?)])
    }
}

/// Builder methods. Each adds one [`Step`], which has the details.
impl Script {
    /// Creates a script without steps.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds any step.
    #[must_use]
    pub fn step(mut self, step: Step) -> Self {
        self.step.push(step);
        self
    }

    /// Writes text and a newline.
    #[must_use]
    pub fn line(self, text: impl Into<Text>) -> Self {
        self.step(Step::Line(text.into()))
    }

    /// Writes text as it is, without a newline.
    #[must_use]
    pub fn raw(self, text: impl Into<Text>) -> Self {
        self.step(Step::Raw(text.into()))
    }

    /// Writes one very long line.
    #[must_use]
    pub fn big_line(self, line: BigLine) -> Self {
        self.step(Step::BigLine(line))
    }

    /// Plays a recorded file.
    #[must_use]
    pub fn play(self, play: impl Into<Play>) -> Self {
        self.step(Step::Play(play.into()))
    }

    /// Writes meaningless text.
    #[must_use]
    pub fn flood(self, flood: impl Into<Flood>) -> Self {
        self.step(Step::Flood(flood.into()))
    }

    /// Waits for this time, in whole milliseconds.
    #[must_use]
    pub fn sleep(self, pause: Duration) -> Self {
        self.step(Step::Sleep { ms: millis(pause) })
    }

    /// Waits forever.
    #[must_use]
    pub fn forever(self) -> Self {
        self.step(Step::Forever {})
    }

    /// Ignores signals from now on.
    #[must_use]
    pub fn ignore(self, signals: impl IntoIterator<Item = Signal>) -> Self {
        let signals = signals.into_iter().collect();
        self.step(Step::Ignore { signals })
    }

    /// Executes the steps of another script each time that a signal arrives.
    #[must_use]
    pub fn on_signal(self, signal: Signal, answer: Self) -> Self {
        let step = answer.step;
        self.step(Step::OnSignal { signal, step })
    }

    /// Starts another process.
    #[must_use]
    pub fn spawn(self, spawn: impl Into<Spawn>) -> Self {
        self.step(Step::Spawn(spawn.into()))
    }

    /// Closes a stream. The script continues.
    #[must_use]
    pub fn close(self, stream: Pipe) -> Self {
        self.step(Step::Close { stream })
    }

    /// Reads standard input.
    #[must_use]
    pub fn stdin(self, stdin: Stdin) -> Self {
        self.step(Step::Stdin(stdin))
    }

    /// Waits until a file exists.
    #[must_use]
    pub fn wait_for_file(self, path: impl Into<PathBuf>) -> Self {
        self.step(Step::WaitForFile { path: path.into() })
    }

    /// Writes a file.
    #[must_use]
    pub fn write_file(self, path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        self.step(Step::WriteFile {
            path: path.into(),
            text: text.into(),
        })
    }

    /// Writes an empty file.
    #[must_use]
    pub fn touch(self, path: impl Into<PathBuf>) -> Self {
        self.write_file(path, "")
    }

    /// Executes the steps of another script if a file exists.
    #[must_use]
    pub fn if_exists(self, path: impl Into<PathBuf>, then: Self) -> Self {
        self.step(Step::IfExists {
            path: path.into(),
            step: then.step,
        })
    }

    /// Writes the arguments and environment of the agent to this file.
    #[must_use]
    pub fn report(self, file: impl Into<PathBuf>) -> Self {
        self.step(Step::Report { file: file.into() })
    }

    /// From now on, loses output that the pipe does not accept.
    #[must_use]
    pub fn lossy_stdout(self) -> Self {
        self.step(Step::LossyStdout {})
    }

    /// From now on, exits with this code when a reader has gone away.
    #[must_use]
    pub fn exit_on_epipe(self, code: u8) -> Self {
        self.step(Step::ExitOnEpipe { code })
    }

    /// Limits the remaining lifetime to this many seconds; 0 means no limit.
    #[must_use]
    pub fn life_limit(self, seconds: u32) -> Self {
        self.step(Step::LifeLimit { seconds })
    }

    /// Exits immediately.
    #[must_use]
    pub fn exit(self, code: u8) -> Self {
        self.step(Step::Exit { code })
    }

    /// Sends a signal to its own process.
    #[must_use]
    pub fn kill_self(self, signal: Signal) -> Self {
        self.step(Step::KillSelf { signal })
    }

    /// Ends with `SIGABRT`.
    #[must_use]
    pub fn abort(self) -> Self {
        self.step(Step::Abort {})
    }
}
