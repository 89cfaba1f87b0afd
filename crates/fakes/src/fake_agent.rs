//! A scriptable program that poses as a coding-agent CLI and misbehaves as its script defines.
//!
//! The program is `teamster-fake-agent`. It ignores its arguments, so it can replace any CLI, and executes
//! the script in the environment variable [`SCRIPT_ENV`]. The variable holds the script in TOML, or `@` and
//! the path of a file with it. For manual use: `teamster-fake-agent --script FILE`.
//!
//! Tests build scripts in Rust and pass them in the environment:
//!
//! ```no_run
//! use std::process::Command;
//! use std::time::Duration;
//!
//! use teamster_fakes::fake_agent::{Script, Signal, Spawn, SpawnKind};
//!
//! // Ignores SIGTERM, and leaves a process in another session that holds the pipes open.
//! let script = Script::new()
//!     .ignore([Signal::Term])
//!     .spawn(Spawn::new(SpawnKind::Setsid).pid_file("/tmp/stray.pid"))
//!     .line(r#"{"type":"system"}"#)
//!     .raw(r#"{"type":"assis"#)
//!     .sleep(Duration::from_millis(50))
//!     .exit(0);
//! let output = Command::new("teamster-fake-agent").envs(script.env()?).output()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! All steps and options, as in `teamster-fake-agent --help`:
//!
//! ```toml
#![doc = include_str!("fake_agent/reference.toml")]
//! ```
//!
//! An error in the script is printed on standard error with its line and column, and the exit code is 2. A
//! step that fails has the same effect. No process lives longer than [`LIFE_LIMIT_SECONDS`] unless the script
//! sets another limit.
//!
//! With a plan instead of a script, the program acts as an agent in a loop. See [`stand_in`].
//!
//! A program can offer the fake agent as a subcommand. See [`FakeAgent`].

mod fake_cli_provider;
mod hex;
mod output;
mod play;
mod report;
mod run;
mod script;
mod signals;
mod spawn;
mod step;
mod write;

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub use fake_cli_provider::FakeCliProvider;
pub use report::Report;
pub use script::{SCRIPT_ENV, Script, ScriptError};
pub use step::{Pipe, Signal, Spawn, SpawnKind, Stdin, Step};
pub use write::{BigLine, Flood, Play, Stream, Text};

pub(crate) use run::limit_life;

use crate::stand_in::{self, PLAN_ENV};
use run::Runner;

/// Default maximum lifetime of an agent, and of each process that it spawns, in seconds. `SIGALRM` ends it
/// then.
pub const LIFE_LIMIT_SECONDS: u32 = 600;

/// Exit code if the script is invalid or cannot be executed.
const SCRIPT_FAILED: u8 = 2;

const HELP: &str = concat!(
    "A fake coding-agent CLI that misbehaves on command.\n\n",
    "Usage: teamster-fake-agent --script FILE\n",
    "       TEAMSTER_FAKE_SCRIPT=SCRIPT teamster-fake-agent [ARGUMENTS, ALL IGNORED]\n",
    "       TEAMSTER_FAKE_PLAN=PLAN teamster-fake-agent [ARGUMENTS OF THE CLI]\n\n",
    "PLAN is TOML, or @ and the path of a TOML file: what an agent in a loop does, by turns and by\n",
    "chance (teamster_fakes::stand_in).\n\n",
    "SCRIPT is TOML, or @ and the path of a TOML file: a list of steps, done in order.\n",
    "At its end the exit code is 0; if the script is wrong it is 2.\n",
    "This one shows every step with every option:\n\n",
    include_str!("fake_agent/reference.toml"),
);

/// Runs the fake agent of the program `teamster-fake-agent`. The arguments exclude the program's name.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    FakeAgent::new().run(args)
}

/// The fake agent, with the command that restarts it for the processes that a script spawns.
///
/// A program can offer it as a subcommand:
///
/// ```no_run
/// # use std::process::ExitCode;
/// use teamster_fakes::fake_agent::FakeAgent;
///
/// fn main() -> ExitCode {
///     let mut args = std::env::args_os().skip(1);
///     match args.next() {
///         Some(first) if first == "fake-agent" => {
///             FakeAgent::new().prefix_args(["fake-agent"]).run(args)
///         }
///         _ => ExitCode::FAILURE,
///     }
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct FakeAgent {
    program: Option<PathBuf>,
    prefix_args: Vec<OsString>,
}

impl FakeAgent {
    /// Creates a fake agent that is the current program.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the program to start for spawned processes. Default: the current one.
    #[must_use]
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// Sets the arguments of that program that precede those of [`run`](Self::run). Default: none.
    #[must_use]
    pub fn prefix_args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.prefix_args = args.into_iter().map(Into::into).collect();
        self
    }

    /// Executes the script. The arguments are those after the prefix.
    ///
    /// It takes over the signals and standard streams of this process, and may end it.
    pub fn run(&self, args: impl IntoIterator<Item = OsString>) -> ExitCode {
        let mut args = args.into_iter().peekable();
        let is_child = args.peek().is_some_and(|arg| arg == spawn::CHILD_FLAG);
        // A spawned process inherits the environment.
        if let Some(plan) = std::env::var_os(PLAN_ENV).filter(|_| !is_child) {
            return stand_in::run(self, &plan, args.collect());
        }
        match self.start(args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(stop) => ExitCode::from(stop.code()),
        }
    }

    fn start(&self, mut args: impl Iterator<Item = OsString>) -> Flow {
        limit_life(LIFE_LIMIT_SECONDS);
        let first = args.next();
        // Checked before the environment, which a spawned process inherits.
        if first.as_deref() == Some(OsStr::new(spawn::CHILD_FLAG)) {
            return spawn::live(self, &args.next().unwrap_or_default());
        }
        let script = match (std::env::var_os(SCRIPT_ENV), first) {
            (Some(value), _) => {
                script_of(&value).map_err(|error| Stop::failed(SCRIPT_ENV, error))?
            }
            (None, Some(flag)) if flag == "--script" => {
                let file = args
                    .next()
                    .ok_or_else(|| Stop::Failed("--script needs a file, see --help".into()))?;
                Script::load(&file)
                    .map_err(|error| Stop::failed(Path::new(&file).display(), error))?
            }
            (None, Some(flag)) if flag == "--help" || flag == "-h" => {
                return io::stdout()
                    .write_all(HELP.as_bytes())
                    .map_err(|error| Stop::failed("cannot write", error));
            }
            (None, _) => {
                return Err(Stop::Failed(format!(
                    "no script: set {SCRIPT_ENV} or give --script FILE, see --help"
                )));
            }
        };
        Runner::play(&Runner::start(self, &script.step)?, &script.step)
    }
}

/// Reads the script that a value of [`SCRIPT_ENV`] holds or names.
fn script_of(value: &OsStr) -> Result<Script, ScriptError> {
    match value.as_bytes().strip_prefix(b"@") {
        Some(path) => Script::load(OsStr::from_bytes(path)),
        None => Script::parse(&value.to_string_lossy()),
    }
}

/// Starts a process as the step `spawn` does, and waits until it is ready.
pub(crate) fn start_process(agent: &FakeAgent, spawn: &Spawn) -> Result<(), String> {
    spawn::spawn(agent, spawn).map_err(|stop| match stop {
        Stop::Failed(message) => message,
        Stop::Exit(code) => format!("exit {code}"),
    })
}

/// `Ok` to continue, or an error that ends the process.
type Flow = Result<(), Stop>;

/// Reason to end the process before the end of its script.
#[derive(Debug)]
enum Stop {
    /// The script requested this exit code.
    Exit(u8),
    /// The script is invalid or cannot be executed.
    Failed(String),
}

impl Stop {
    fn failed(what: impl Display, error: impl Display) -> Self {
        Self::Failed(format!("{what}: {error}"))
    }

    /// Adds the number of the failed step, counted from 1.
    fn at_step(self, number: usize) -> Self {
        match self {
            Self::Failed(message) => Self::Failed(format!("step {number}: {message}")),
            Self::Exit(code) => Self::Exit(code),
        }
    }

    /// Returns the exit code. Prints the error, if any, on standard error.
    fn code(self) -> u8 {
        match self {
            Self::Exit(code) => code,
            Self::Failed(message) => {
                // Without stderr the error cannot be reported.
                let _ = writeln!(io::stderr().lock(), "teamster-fake-agent: {message}");
                SCRIPT_FAILED
            }
        }
    }
}

#[cfg(test)]
mod tests;
