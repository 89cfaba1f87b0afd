//! Supervisor of the loops of many agents.
//!
//! A [`Supervisor`] starts a loop for every agent of an [`agents.config.json`](Config), restarts crashed loops
//! with exponential backoff, and takes commands over a Unix socket ([`protocol`], [`Client`]). Its state is on
//! disk, so the next supervisor takes over the loops that a killed one left.
//!
//! - An agent has at most one loop, even if processes are killed at any moment: a loop begins only after its
//!   process is recorded.
//! - A process is identified by its id and start time, so a later process with the same id is left alone.
//! - A stop is persistent: only a start undoes it.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use teamster_api::{ProblemCode, ServiceError};
use teamster_core::CliInfo;

mod agent;
mod client;
mod config;
mod handle;
mod last_start;
mod lock_holder;
mod managed;
mod offline;
mod process;
mod requests;
mod schedules;
mod socket;
mod state;
mod state_folder;
mod take_over;
mod task;
mod updates;

use crate::instructions::instruction_files;
pub use agent::Policy;
pub use client::{Client, Updates};
use config::Obstacle;
pub use config::{
    AgentConfig, Config, ConfigError, FILE_NAME, FILE_VARIABLE, Missed, ScheduleConfig, When,
};
pub use handle::Handle;
pub use offline::status as offline_status;
pub use process::log_path;
pub use task::Supervisor;
pub use teamster_api::agents::{self as protocol, Event};

/// Looks up the CLI of a runtime's name, or the default CLI for `None`. The error is the reason that the name
/// is unknown.
pub type AgentOf = fn(Option<&str>) -> Result<&'static CliInfo, String>;

/// Settings of a supervisor.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SupervisorSettings {
    /// Program of a loop.
    pub program: PathBuf,
    /// Arguments of the program, before the agent's directory.
    pub args: Vec<OsString>,
    /// Delays and time limits.
    pub policy: Policy,
    /// Leave the loops running at the supervisor's end, for the next supervisor. Default: false.
    pub keep_agents: bool,
    /// Lookup of a runtime's CLI. Default: none; each loop reports an unknown runtime itself.
    pub agent_of: Option<AgentOf>,
}

teamster_core::setters! {
    SupervisorSettings {
        set policy: Policy,
        set keep_agents: bool,
        some agent_of: AgentOf,
    }
}

impl SupervisorSettings {
    /// Creates the default settings. A loop is started as `PROGRAM ARGS… DIRECTORY`.
    pub fn new(
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            policy: Policy::default(),
            keep_agents: false,
            agent_of: None,
        }
    }

    /// Returns the CLI of this agent, if the configuration names its runtime.
    fn cli_of(&self, agent: &AgentConfig) -> Option<Result<&'static CliInfo, String>> {
        let name = agent.runtime.as_deref()?;
        Some(self.agent_of?(Some(name)))
    }

    /// Returns why the runtime of this agent cannot be used.
    fn runtime_error(&self, agent: &AgentConfig) -> Option<String> {
        let error = self.cli_of(agent)?.err()?;
        Some(format!("runtime: {error}"))
    }

    /// Returns why this agent cannot be started.
    fn obstacle(&self, agent: &AgentConfig) -> Option<Obstacle> {
        let own = match self.cli_of(agent) {
            Some(Err(error)) => return Some(Obstacle::Runtime(error)),
            Some(Ok(info)) => Some(info),
            // The runtime may be set in the agent's `.env`, which only the loop reads.
            None => None,
        };
        let usual = self.agent_of.and_then(|agent_of| agent_of(None).ok());
        agent.obstacle(&instruction_files(own, usual))
    }
}

/// Returns what a supervisor that does not answer does, and the next step.
fn not_answering(pid: Option<u32>, is_stopped: bool) -> String {
    match pid {
        Some(pid) if is_stopped => format!(
            "does not answer (pid {pid}): the process is stopped; continue it with `kill -CONT {pid}`"
        ),
        Some(pid) => format!(
            "does not answer (pid {pid}): try again, or end it with `kill -KILL {pid}`; the next supervisor adopts \
             its loops"
        ),
        None => "does not answer: try again".to_owned(),
    }
}

/// Error of a supervisor's start, or of a request to one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Another supervisor is running.
    #[error(
        "a supervisor is already running in {}{}",
        folder.display(),
        pid.map(|pid| format!(", pid {pid}")).unwrap_or_default()
    )]
    AlreadyRunning {
        /// The folder of the configuration.
        folder: PathBuf,
        /// Process id of that supervisor, if its lock file has it.
        pid: Option<u32>,
    },
    /// No supervisor is running.
    #[error("no supervisor is running for {}", config.display())]
    NotRunning {
        /// The configuration.
        config: PathBuf,
    },
    /// The supervisor in this folder has another configuration.
    #[error(
        "the supervisor in this folder has the configuration {}, not {}",
        theirs.display(),
        ours.display()
    )]
    OtherConfig {
        /// The requested configuration.
        ours: PathBuf,
        /// The supervisor's configuration.
        theirs: PathBuf,
    },
    /// The state in this folder is that of another configuration.
    #[error(
        "this folder has the state of a supervisor with the configuration {}; one with {} would end its loops and \
         discard its stops: move one of the two files to a folder of its own",
        theirs.display(),
        ours.display()
    )]
    OtherState {
        /// The requested configuration.
        ours: PathBuf,
        /// The configuration of the previous supervisor.
        theirs: PathBuf,
    },
    /// The state of the previous supervisor cannot be read.
    #[error(
        "cannot read which agents are stopped from {}: {error}; repair the file, or move it away: then all agents \
         are enabled and running loops are adopted",
        path.display()
    )]
    State {
        /// The file.
        path: PathBuf,
        /// I/O error.
        error: io::Error,
    },
    /// The supervisor refused the request.
    #[error("{message}")]
    Refused {
        /// Reason, for programs.
        code: protocol::ErrorCode,
        /// Reason, for people.
        message: String,
    },
    /// The supervisor lives, but does not answer.
    #[error("the supervisor {}", not_answering(*pid, *is_stopped))]
    NotAnswering {
        /// Process id of the supervisor, if it is known.
        pid: Option<u32>,
        /// The process is stopped (`SIGSTOP`).
        is_stopped: bool,
    },
    /// The supervisor closed the connection, or answered not as expected.
    #[error("the supervisor does not answer: {0}")]
    NoAnswer(io::Error),
    /// A file, folder or socket cannot be used.
    #[error("{what} {}: {error}", path.display())]
    Disk {
        /// The operation that failed.
        what: &'static str,
        /// Path of the file, folder or socket.
        path: PathBuf,
        /// I/O error.
        error: io::Error,
    },
}

impl Error {
    /// Returns the error of a supervisor that does not answer, by its lock file.
    fn not_answering(lock: &std::path::Path) -> Self {
        let holder = lock_holder::supervisor(lock).map(|(holder, _)| holder);
        Self::NotAnswering {
            pid: holder.map(teamster_process::ProcessIdentity::pid),
            is_stopped: holder.is_some_and(teamster_process::ProcessIdentity::is_stopped),
        }
    }

    /// Returns a conversion of I/O errors of this operation on this path, for `map_err`.
    fn disk<'a>(
        what: &'static str,
        path: &'a std::path::Path,
    ) -> impl FnOnce(io::Error) -> Self + 'a {
        move |error| Self::Disk {
            what,
            path: path.to_owned(),
            error,
        }
    }
}

/// A configuration that cannot be used is refused like one that a supervisor refuses.
impl From<Error> for ServiceError {
    fn from(error: Error) -> Self {
        let refusal = match &error {
            Error::Refused { code, .. } => Some(*code),
            Error::Config(_) | Error::OtherConfig { .. } => Some(protocol::ErrorCode::BadConfig),
            _ => None,
        };
        let code = match &error {
            Error::NotRunning { .. } | Error::NotAnswering { .. } => {
                ProblemCode::SupervisorNotRunning
            }
            Error::Refused {
                code: protocol::ErrorCode::UnknownAgent,
                ..
            } => ProblemCode::AgentNotFound,
            Error::Refused { .. } => ProblemCode::AgentRefused,
            _ => ProblemCode::Internal,
        };
        let mut service = Self::new(code, error.to_string());
        service.refusal = refusal;
        service
    }
}
