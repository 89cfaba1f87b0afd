//! Keeps the loops of many agents running.
//!
//! A [`Supervisor`] starts a loop for every agent of an [`agents.config.json`](Config), starts those again
//! that crash, after longer and longer delays, and takes commands over a Unix socket
//! ([`protocol`], [`Client`]). What is wanted and what runs is on the disk, so the next supervisor finds the
//! loops that a killed one has left, and takes them over.
//!
//! - An agent has at most one loop, also when processes are killed at any moment: a loop begins only after it has been written
//!   down.
//! - A process is known by its id and its start, so that one which later has the same id is left alone.
//! - A stop is remembered: nothing but a start undoes it.
//!
//! Unix only.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use derive_setters::Setters;
use teamster_core::CliInfo;

mod agent;
mod client;
mod config;
mod event;
mod last_start;
mod lock_holder;
mod managed;
mod offline;
mod process;
pub mod protocol;
mod requests;
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
pub use config::{AgentConfig, Config, ConfigError, FILE_NAME, FILE_VARIABLE};
pub use event::Event;
pub use offline::status as offline_status;
pub use process::log_path;
pub use task::{Handle, Supervisor};

/// The CLI of a runtime's name, or why there is none; the usual one where none is named.
pub type AgentOf = fn(Option<&str>) -> Result<&'static CliInfo, String>;

/// How a supervisor works.
#[derive(Debug, Clone, Setters)]
#[setters(strip_option)]
#[non_exhaustive]
pub struct Settings {
    /// The program of a loop.
    #[setters(skip)]
    pub program: PathBuf,
    /// Its arguments, before the directory of the agent.
    #[setters(skip)]
    pub args: Vec<OsString>,
    /// Delays and limits.
    pub policy: Policy,
    /// At its own end the supervisor leaves the loops running, for the next one.
    pub keep_agents: bool,
    /// The agent of a runtime's name, or why there is none. Without it each loop reports it.
    pub agent_of: Option<AgentOf>,
}

impl Settings {
    /// Loops are `PROGRAM ARGS… DIRECTORY`.
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

    /// The CLI of this agent, if its runtime is known here.
    fn cli_of(&self, agent: &AgentConfig) -> Option<Result<&'static CliInfo, String>> {
        let name = agent.runtime.as_deref()?;
        Some(self.agent_of?(Some(name)))
    }

    /// Why the runtime of this agent cannot be used.
    fn runtime_error(&self, agent: &AgentConfig) -> Option<String> {
        let error = self.cli_of(agent)?.err()?;
        Some(format!("runtime: {error}"))
    }

    /// Why this agent cannot be started.
    fn obstacle(&self, agent: &AgentConfig) -> Option<Obstacle> {
        let own = match self.cli_of(agent) {
            Some(Err(error)) => return Some(Obstacle::Runtime(error)),
            Some(Ok(info)) => Some(info),
            // The runtime may be set where only the loop reads it.
            None => None,
        };
        let usual = self.agent_of.and_then(|agent_of| agent_of(None).ok());
        agent.obstacle(&instruction_files(own, usual))
    }
}

/// Why a supervisor cannot begin, or not be talked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is one already.
    #[error(
        "a supervisor is already running in {}{}: `teamster agents` talks to it",
        folder.display(),
        pid.map(|pid| format!(", pid {pid}")).unwrap_or_default()
    )]
    AlreadyRunning {
        /// The folder of the configuration.
        folder: PathBuf,
        /// Its process id, if it has reported it.
        pid: Option<u32>,
    },
    /// There is none.
    #[error(
        "no supervisor is running for {}: start one with `teamster supervise {}`",
        config.display(),
        config.display()
    )]
    NotRunning {
        /// The configuration.
        config: PathBuf,
    },
    /// The one that is running in this folder has another configuration.
    #[error(
        "the supervisor in this folder has the configuration {}, and not {}",
        theirs.display(),
        ours.display()
    )]
    OtherConfig {
        /// The requested configuration.
        ours: PathBuf,
        /// What it has.
        theirs: PathBuf,
    },
    /// The previous supervisor's state in this folder is of another configuration.
    #[error(
        "the supervisor of this folder had the configuration {}, and that of {} would end its loops and forget \
         its stops: put one of the two files into a folder of its own, or move the first one away",
        theirs.display(),
        ours.display()
    )]
    OtherState {
        /// The requested configuration.
        ours: PathBuf,
        /// The configuration of the previous one.
        theirs: PathBuf,
    },
    /// The state of the previous one cannot be read.
    #[error(
        "cannot read which agents were stopped from {}: {error}; put it right, or move it away: then all agents \
         are switched on, and loops that run are taken over",
        path.display()
    )]
    State {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// It has refused the request.
    #[error("{message}")]
    Refused {
        /// Why, for programs.
        code: protocol::ErrorCode,
        /// Why, for people.
        message: String,
    },
    /// It does not answer as it should.
    #[error("the supervisor does not answer: {0}")]
    NoAnswer(io::Error),
    /// Something on the disk is in the way.
    #[error("{what} {}: {error}", path.display())]
    Disk {
        /// What was to be done.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// Why it was not.
        error: io::Error,
    },
}

impl Error {
    /// For `map_err`: this was to be done with this.
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
