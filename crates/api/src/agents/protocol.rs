//! Protocol of the supervisor's socket: each request and each response is one line of JSON.

use serde::{Deserialize, Serialize};

use super::event::Event;
use super::status::{AgentStatus, Status};

/// Version of the protocol. A supervisor refuses requests of other versions.
pub const VERSION: u32 = 1;

/// Maximum length of a request, in bytes.
pub const LONGEST_REQUEST: usize = 64 << 10;

/// Request to a supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Request {
    /// Version of the protocol: [`VERSION`].
    pub version: u32,
    /// The command.
    #[serde(flatten)]
    pub command: Command,
}

impl Request {
    /// Creates a request for this command.
    pub fn new(command: Command) -> Self {
        Self {
            version: VERSION,
            command,
        }
    }
}

/// Command of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Return the status of all agents.
    Status,
    /// Start these agents and keep them running. With `all`, also turn on the master switch.
    Start(Selection),
    /// Stop these agents until they are started again. With `all`, also turn off the master switch.
    Stop(Selection),
    /// Restart the loops of these agents.
    Restart(Selection),
    /// End the sleep of these agents.
    Wake(Selection),
    /// Read the configuration again.
    Reload,
    /// Return the status of all agents, then an [`Update`] line for each change.
    Subscribe,
}

/// Agents that a command applies to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Selection {
    /// Ids of the agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Selects all agents.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

impl Selection {
    /// Selects all agents.
    pub fn all() -> Self {
        Self {
            agents: Vec::new(),
            all: true,
        }
    }

    /// Selects these agents.
    pub fn of(agents: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            agents: agents.into_iter().map(Into::into).collect(),
            all: false,
        }
    }

    /// Returns whether the agent with this id is selected.
    pub fn contains(&self, id: &str) -> bool {
        self.all || self.agents.iter().any(|it| it == id)
    }
}

/// Response to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Response {
    /// Version of the protocol: [`VERSION`].
    pub version: u32,
    /// The result.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl Response {
    /// Creates a response of this version.
    pub fn new(outcome: Outcome) -> Self {
        Self {
            version: VERSION,
            outcome,
        }
    }

    /// Creates a response that refuses the request.
    pub fn refused(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::new(Outcome::Error {
            code,
            message: message.into(),
        })
    }
}

/// Result of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// The command was done or is in progress. Has the current status.
    Ok(Status),
    /// The command was refused. It had no effect, unless the code is one of a partial change.
    Error {
        /// Reason, for programs.
        code: ErrorCode,
        /// Reason, for people.
        message: String,
    },
    /// Value of a later version.
    #[serde(other)]
    Other,
}

/// Line for a subscriber about a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Update {
    /// Version of the protocol: [`VERSION`].
    pub version: u32,
    /// The change.
    #[serde(flatten)]
    pub change: Change,
}

impl Update {
    /// Creates an update of this version.
    pub fn new(change: Change) -> Self {
        Self {
            version: VERSION,
            change,
        }
    }
}

/// Change at a supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "update", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// An event.
    #[serde(rename_all = "camelCase")]
    Event {
        /// Time of the event, in milliseconds since the Unix epoch.
        at_ms: u64,
        /// The event.
        happened: Event,
    },
    /// The status of an agent has changed.
    Agent {
        /// New status.
        status: Box<AgentStatus>,
    },
    /// An agent is gone: it was removed from the configuration and its loop has ended.
    Gone {
        /// Id of the agent.
        id: String,
    },
    /// Value of a later version.
    #[serde(other)]
    Other,
}

/// Reason of a refused request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorCode {
    /// The line is no valid request.
    BadRequest,
    /// The request has another version of the protocol.
    UnsupportedVersion,
    /// No agent has this id.
    UnknownAgent,
    /// The agent is not running.
    NotRunning,
    /// The agent is starting, and begins with a tick.
    Starting,
    /// The configuration cannot be used.
    BadConfig,
    /// The supervisor is ending.
    Ending,
    /// The command was done, but the state could not be saved for the next supervisor. Saving is retried.
    NotSaved,
    /// The configuration was read again, but some of its agents cannot be used.
    AgentsRefused,
    /// There are too many subscribers.
    Busy,
    /// Value of a later version.
    #[serde(other)]
    Other,
}

#[cfg(test)]
mod tests;
