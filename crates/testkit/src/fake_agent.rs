//! A program that pretends to be a coding-agent CLI and misbehaves on command.
//!
//! The program is `teamster-fake-agent`. It ignores its arguments, so that it can stand in for any
//! CLI, and executes the script in the environment variable [`SCRIPT_ENV`]: the script itself
//! in TOML, or `@` and the path of a file with it. By hand, `teamster-fake-agent --script FILE`.
//!
//! Tests write scripts in Rust and hand them over by the environment:
//!
//! ```no_run
//! use std::process::Command;
//! use std::time::Duration;
//!
//! use teamster_testkit::fake_agent::{Script, Signal, Spawn, SpawnKind};
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
//! Every step with every option, as `teamster-fake-agent --help` shows it too:
//!
//! ```toml
#![doc = include_str!("fake_agent/reference.toml")]
//! ```
//!
//! An error in the script is printed on standard error, with the line and column, and the exit code
//! is 2; so is a step that cannot be done. Nothing lives longer than [`LIFE_LIMIT_SECONDS`] unless
//! the script sets another limit.
//!
//! With a plan in the place of a script it stands in for an agent in a loop, see
//! [`stand_in`].
//!
//! To offer the fake agent as a subcommand of another program, see [`FakeAgent`].

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

pub use report::Report;
pub use script::{SCRIPT_ENV, Script, ScriptError};
pub use step::{Pipe, Signal, Spawn, SpawnKind, Stdin, Step};
pub use write::{BigLine, Flood, Play, Stream, Text};

pub(crate) use run::limit_life;

use crate::stand_in::{self, PLAN_ENV};
use run::Runner;

/// The longest lifetime of an agent, and of each process that it spawns, unless its script sets
/// another, in seconds. `SIGALRM` ends it then.
pub const LIFE_LIMIT_SECONDS: u32 = 600;

/// The exit code if the script is wrong or cannot be carried out.
const SCRIPT_FAILED: u8 = 2;

const HELP: &str = concat!(
    "A fake coding-agent CLI that misbehaves on command.\n\n",
    "Usage: teamster-fake-agent --script FILE\n",
    "       TEAMSTER_FAKE_SCRIPT=SCRIPT teamster-fake-agent [ARGUMENTS, ALL IGNORED]\n",
    "       TEAMSTER_FAKE_PLAN=PLAN teamster-fake-agent [ARGUMENTS OF THE CLI]\n\n",
    "PLAN is TOML, or @ and the path of a TOML file: what an agent in a loop does, by turns and by\n",
    "chance (teamster_testkit::stand_in).\n\n",
    "SCRIPT is TOML, or @ and the path of a TOML file: a list of steps, done in order.\n",
    "At its end the exit code is 0; if the script is wrong it is 2.\n",
    "This one shows every step with every option:\n\n",
    include_str!("fake_agent/reference.toml"),
);

/// Runs the fake agent of the program `teamster-fake-agent`; the arguments without the program's
/// name.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    FakeAgent::new().run(args)
}

/// The fake agent, and how it starts itself again for the processes that a script spawns.
///
/// For a program that has it as a subcommand:
///
/// ```no_run
/// # use std::process::ExitCode;
/// use teamster_testkit::fake_agent::FakeAgent;
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
    /// A fake agent which is the current program itself.
    pub fn new() -> Self {
        Self::default()
    }

    /// The program to start again. Default: the current one.
    #[must_use]
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// The arguments that lead from the program to [`run`](Self::run). Default: none.
    #[must_use]
    pub fn prefix_args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.prefix_args = args.into_iter().map(Into::into).collect();
        self
    }

    /// Executes the script; the arguments are those that follow the prefix.
    ///
    /// It uses the process as its own (signals, standard streams) and may end it.
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
        // Before the environment, which a spawned process inherits.
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

/// The script that a value of [`SCRIPT_ENV`] holds or names.
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

/// Going on, or the end of the process.
type Flow = Result<(), Stop>;

/// Reason why the process ends before its script.
#[derive(Debug)]
enum Stop {
    /// The script wants it.
    Exit(u8),
    /// The script is wrong or cannot be carried out.
    Failed(String),
}

impl Stop {
    fn failed(what: impl Display, error: impl Display) -> Self {
        Self::Failed(format!("{what}: {error}"))
    }

    /// Adds the step in which it happened, counted from 1.
    fn at_step(self, number: usize) -> Self {
        match self {
            Self::Failed(message) => Self::Failed(format!("step {number}: {message}")),
            Self::Exit(code) => Self::Exit(code),
        }
    }

    /// The exit code, after telling what went wrong.
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
