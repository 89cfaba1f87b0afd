//! Events of a supervisor.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Event of a supervisor. Its `Display` text is for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The supervisor is listening.
    Listening {
        /// Number of agents.
        agents: usize,
        /// Number of schedules.
        #[serde(default)]
        schedules: usize,
        /// Path of its socket.
        socket: PathBuf,
    },
    /// The loop of an agent was started.
    Started {
        /// Id of the agent.
        agent: String,
        /// Process id of its loop.
        pid: u32,
    },
    /// The loop of an agent was running already.
    Adopted {
        /// Id of the agent.
        agent: String,
        /// Process id of its loop.
        pid: u32,
    },
    /// The loop of an agent ended after a request.
    Stopped {
        /// Id of the agent.
        agent: String,
    },
    /// The loop of an agent ended without a request, or was not started.
    Trouble {
        /// Id of the agent.
        agent: String,
        /// The problem, and the next attempt.
        message: String,
    },
    /// A run was started by a schedule.
    Scheduled {
        /// Id of the schedule.
        schedule: String,
        /// Id of the run.
        run: String,
    },
    /// The configuration was read again.
    Reloaded {
        /// New number of agents.
        agents: usize,
    },
    /// The supervisor is ending.
    Ending,
    /// A problem that does not stop the supervisor.
    Warning {
        /// The problem.
        message: String,
    },
    /// Value of a later version.
    #[serde(other)]
    Other,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listening {
                agents,
                schedules,
                socket,
            } => {
                write!(f, "{}", Agents(*agents))?;
                match schedules {
                    0 => {}
                    1 => write!(f, ", 1 schedule")?,
                    count => write!(f, ", {count} schedules")?,
                }
                write!(f, "; listening on {}", socket.display())
            }
            Self::Started { agent, pid } => write!(f, "{agent}: started, pid {pid}"),
            Self::Adopted { agent, pid } => write!(f, "{agent}: already running, pid {pid}"),
            Self::Stopped { agent } => write!(f, "{agent}: stopped"),
            Self::Trouble { agent, message } => write!(f, "{agent}: {message}"),
            Self::Scheduled { schedule, run } => {
                write!(f, "schedule {schedule}: started run {run}")
            }
            Self::Reloaded { agents } => {
                write!(f, "configuration read again: {}", Agents(*agents))
            }
            Self::Ending => write!(f, "ending"),
            Self::Warning { message } => write!(f, "warning: {message}"),
            Self::Other => write!(f, "an event of a later version"),
        }
    }
}

/// Formats a number of agents.
struct Agents(usize);

impl fmt::Display for Agents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => write!(f, "1 agent"),
            count => write!(f, "{count} agents"),
        }
    }
}
