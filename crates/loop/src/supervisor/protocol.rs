//! The protocol of the socket: each request is one line of JSON, and so is each answer.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use teamster_core::ErrorKind;

use super::event::Event;
use crate::{SleepFile, TickRecord};

/// The version of the protocol. A supervisor refuses requests of another one.
pub const VERSION: u32 = 1;

/// The longest request, in bytes.
pub const LONGEST_REQUEST: usize = 64 << 10;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Request {
    /// [`VERSION`].
    pub version: u32,
    /// The request.
    #[serde(flatten)]
    pub command: Command,
}

impl Request {
    /// Asks for this.
    pub fn new(command: Command) -> Self {
        Self {
            version: VERSION,
            command,
        }
    }
}

/// The requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Command {
    /// The status of all agents.
    Status,
    /// Start these, and keep them running. Of all, it also turns on the master switch.
    Start(Selection),
    /// Stop these, until they are started again. Of all, it turns off the master switch.
    Stop(Selection),
    /// End the loops of these and start others in their place.
    Restart(Selection),
    /// End the sleep of these.
    Wake(Selection),
    /// Read the configuration again.
    Reload,
    /// How all agents are, and from then on an [`Update`] a line for all that changes.
    Subscribe,
}

/// Which agents are meant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Selection {
    /// These, by their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// All of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

impl Selection {
    /// All agents.
    pub fn all() -> Self {
        Self {
            agents: Vec::new(),
            all: true,
        }
    }

    /// These agents.
    pub fn of(agents: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            agents: agents.into_iter().map(Into::into).collect(),
            all: false,
        }
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Response {
    /// [`VERSION`].
    pub version: u32,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl Response {
    /// An answer of this version.
    pub fn new(outcome: Outcome) -> Self {
        Self {
            version: VERSION,
            outcome,
        }
    }

    pub(crate) fn refused(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::new(Outcome::Error {
            code,
            message: message.into(),
        })
    }
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// It was done, or is being done, and this is how things stand.
    Ok(Status),
    /// Nothing was done, unless the code reports otherwise.
    Error {
        /// Why, for programs.
        code: ErrorCode,
        /// Why, for people.
        message: String,
    },
    /// One that only a newer version knows.
    #[serde(other)]
    Other,
}

/// Something that has changed, for a subscriber.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Update {
    /// [`VERSION`].
    pub version: u32,
    /// What.
    #[serde(flatten)]
    pub change: Change,
}

impl Update {
    /// This change.
    pub fn new(change: Change) -> Self {
        Self {
            version: VERSION,
            change,
        }
    }
}

/// A change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "update", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// Something has happened.
    #[serde(rename_all = "camelCase")]
    Event {
        /// When, in milliseconds since the Unix epoch.
        at_ms: u64,
        /// What.
        happened: Event,
    },
    /// An agent is not as it was.
    Agent {
        /// How it is now.
        status: Box<AgentStatus>,
    },
    /// An agent that is no longer in the configuration has ended.
    Gone {
        /// Which.
        id: String,
    },
    /// Another one, of a later version.
    #[serde(other)]
    Other,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorCode {
    /// It is no request.
    BadRequest,
    /// It is of another version of the protocol.
    UnsupportedVersion,
    /// There is no such agent.
    UnknownAgent,
    /// An agent does not run.
    NotRunning,
    /// The configuration cannot be used.
    BadConfig,
    /// The supervisor is ending.
    Ending,
    /// It was done, but could not be written down for the next supervisor. That is tried again.
    NotSaved,
    /// The configuration was read again, but some of its agents cannot be used.
    AgentsRefused,
    /// There are too many subscribers.
    Busy,
    /// Another one, of a later version.
    #[serde(other)]
    Other,
}

/// The status of a supervisor and its agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Status {
    /// The configuration.
    pub config: PathBuf,
    /// The supervisor; `None` if none runs.
    pub supervisor: Option<SupervisorStatus>,
    /// The master switch: while it is off, no agent is started.
    pub enabled: bool,
    /// In the order of the configuration.
    pub agents: Vec<AgentStatus>,
    /// What in the configuration has no effect, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Status {
    /// The agents of this configuration, while no supervisor runs.
    pub fn new(config: impl Into<PathBuf>, agents: Vec<AgentStatus>) -> Self {
        Self {
            config: config.into(),
            supervisor: None,
            enabled: true,
            agents,
            warnings: Vec::new(),
        }
    }
}

/// The supervisor itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SupervisorStatus {
    /// Its process id.
    pub pid: u32,
    /// When it was started, in milliseconds since the Unix epoch.
    pub started_at_ms: u64,
    /// How long a loop may take to end before it is killed, in milliseconds.
    pub grace_ms: u64,
}

impl SupervisorStatus {
    /// A supervisor with this process id, that was started at this time.
    pub fn new(pid: u32, started_at_ms: u64) -> Self {
        Self {
            pid,
            started_at_ms,
            grace_ms: 5000,
        }
    }
}

/// One agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentStatus {
    /// Its id.
    pub id: String,
    /// By what its colleagues call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// What it is there for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The adapter of its loop, if the configuration names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// Where it works.
    pub working_dir: PathBuf,
    /// Its own switch.
    pub enabled: bool,
    /// What its loop does.
    pub state: AgentState,
    /// The process id of its loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// When its loop was started, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at_ms: Option<u64>,
    /// It is no longer in the configuration, and goes when its loop has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// The loop was started by an earlier supervisor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
    /// How often it was restarted automatically since the last requested start.
    pub restarts: u32,
    /// When it is started again, in milliseconds since the Unix epoch; of one that crashed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at_ms: Option<u64>,
    /// The last reason of a change, such as how its loop ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its loop ended because it was asked to, and in order: `reason` adds nothing to `state`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped_in_order: bool,
    /// What failed last: its tick, or its loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastError>,
    /// The last sign of life of its loop, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_ms: Option<u64>,
    /// Its last tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_tick: Option<TickRecord>,
    /// The agent's own status: its `status.json`, if that is JSON of at most 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<serde_json::Value>,
    /// The loop's own status, while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<SleepFile>,
}

impl AgentStatus {
    /// An agent that works there and whose loop does this; it is switched on, and nothing else is known.
    pub fn new(id: impl Into<String>, working_dir: impl Into<PathBuf>, state: AgentState) -> Self {
        Self {
            id: id.into(),
            alias: None,
            role: None,
            runtime: None,
            working_dir: working_dir.into(),
            enabled: true,
            state,
            pid: None,
            started_at_ms: None,
            removed: false,
            adopted: false,
            restarts: 0,
            retry_at_ms: None,
            reason: None,
            stopped_in_order: false,
            last_error: None,
            heartbeat_ms: None,
            last_tick: None,
            status: None,
            activity: None,
        }
    }
}

/// Something that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LastError {
    /// The class of the error, if it is one of a tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ErrorKind>,
    /// The error, for people.
    pub message: String,
    /// When it happened, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

impl LastError {
    /// An error that happened at this time.
    pub fn new(message: impl Into<String>, at_ms: u64) -> Self {
        Self {
            kind: None,
            message: message.into(),
            at_ms,
        }
    }
}

/// The state of an agent's loop, as the supervisor sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentState {
    /// It runs.
    Running,
    /// It runs, but its last tick failed, or its loop crashes again and again.
    Failing,
    /// It runs, and waits for the end of a limit of the service.
    Limited,
    /// It is being started.
    Starting,
    /// It was asked to end.
    Stopping,
    /// It crashed, and is started again after a delay.
    BackingOff,
    /// It was stopped, or never started.
    Stopped,
    /// It ended in order without a request of this supervisor, and is not started again by itself.
    Ended,
    /// It cannot run until something is put right. It is tried again from time to time.
    Failed,
    /// Another one, of a later version.
    #[serde(other)]
    Other,
}

impl AgentState {
    /// Whether its loop runs and is not being ended.
    pub fn is_running(self) -> bool {
        matches!(self, Self::Running | Self::Failing | Self::Limited)
    }

    /// Whether an agent in this state that is switched on needs a person's attention.
    pub fn is_bad(self) -> bool {
        !matches!(
            self,
            Self::Running | Self::Limited | Self::Starting | Self::Stopping
        )
    }
}

#[cfg(test)]
mod tests;
