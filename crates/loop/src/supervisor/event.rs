//! Events of a supervisor.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Something that has happened. Its text is for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// It is there.
    Listening {
        /// How many agents there are.
        agents: usize,
        /// Where it listens.
        socket: PathBuf,
    },
    /// The loop of an agent was started.
    Started {
        /// Which.
        agent: String,
        /// Its process id.
        pid: u32,
    },
    /// The loop of an agent was running already.
    Adopted {
        /// Which.
        agent: String,
        /// Its process id.
        pid: u32,
    },
    /// The loop of an agent has ended as requested.
    Stopped {
        /// Which.
        agent: String,
    },
    /// The loop of an agent has ended by itself, or was not started.
    Trouble {
        /// Which.
        agent: String,
        /// What happened, and what follows.
        message: String,
    },
    /// The configuration was read again.
    Reloaded {
        /// How many agents there are now.
        agents: usize,
    },
    /// The supervisor ends.
    Ending,
    /// Something did not go as it should.
    Warning {
        /// What.
        message: String,
    },
    /// Another one, of a later version.
    #[serde(other)]
    Other,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listening { agents, socket } => {
                write!(f, "{}; listening on {}", Agents(*agents), socket.display())
            }
            Self::Started { agent, pid } => write!(f, "{agent}: started, pid {pid}"),
            Self::Adopted { agent, pid } => write!(f, "{agent}: runs already, pid {pid}"),
            Self::Stopped { agent } => write!(f, "{agent}: stopped"),
            Self::Trouble { agent, message } => write!(f, "{agent}: {message}"),
            Self::Reloaded { agents } => {
                write!(f, "configuration read again: {}", Agents(*agents))
            }
            Self::Ending => write!(f, "ending"),
            Self::Warning { message } => write!(f, "warning: {message}"),
            Self::Other => write!(f, "an event of a later version"),
        }
    }
}

/// So many agents.
struct Agents(usize);

impl fmt::Display for Agents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => write!(f, "1 agent"),
            count => write!(f, "{count} agents"),
        }
    }
}
