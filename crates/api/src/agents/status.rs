//! The status of agents and their supervisor.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use teamster_core::ErrorKind;

use super::activity::SleepFile;
use super::tick::TickRecord;

/// Status of a supervisor and its agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Status {
    /// Path of the configuration.
    pub config: PathBuf,
    /// The supervisor. `None` if none is running.
    pub supervisor: Option<SupervisorStatus>,
    /// The master switch: while it is off, no agent is started.
    pub enabled: bool,
    /// Agents in the order of the configuration.
    pub agents: Vec<AgentStatus>,
    /// Settings of the configuration without effect, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Status {
    /// Creates a status without a supervisor.
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

/// Status of the supervisor itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SupervisorStatus {
    /// Process id of the supervisor.
    pub pid: u32,
    /// Start time, in milliseconds since the Unix epoch.
    pub started_at_ms: u64,
    /// Time that a loop may take to end before it is killed, in milliseconds.
    pub grace_ms: u64,
    /// The supervisor lives, but does not answer: the status is that of its files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_answering: bool,
}

impl SupervisorStatus {
    /// Creates the status of a supervisor with a grace of 5000 ms.
    pub fn new(pid: u32, started_at_ms: u64) -> Self {
        Self {
            pid,
            started_at_ms,
            grace_ms: 5000,
            not_answering: false,
        }
    }
}

/// Status of an agent.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentStatus {
    /// Id of the agent.
    pub id: String,
    /// Name that other agents use for it.
    pub alias: Option<String>,
    /// Role of the agent, for people.
    pub role: Option<String>,
    /// Runtime of its loop, if the configuration names one.
    pub runtime: Option<String>,
    /// Working directory.
    pub working_dir: PathBuf,
    /// The agent's own switch.
    pub enabled: bool,
    /// State of its loop.
    pub state: AgentState,
    /// Process id of its loop.
    pub pid: Option<u32>,
    /// Start time of its loop, in milliseconds since the Unix epoch.
    pub started_at_ms: Option<u64>,
    /// The agent is no longer in the configuration and disappears when its loop has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// The loop was started by an earlier supervisor or another program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
    /// Automatic restarts since the last requested start.
    pub restarts: u32,
    /// Time of the next automatic start, in milliseconds since the Unix epoch.
    pub retry_at_ms: Option<u64>,
    /// Reason of the last change, such as the exit of its loop.
    pub reason: Option<String>,
    /// The loop ended cleanly after a request: `reason` adds nothing to `state`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped_in_order: bool,
    /// Last error, of its tick or its loop.
    pub last_error: Option<LastError>,
    /// Last heartbeat of its loop, in milliseconds since the Unix epoch.
    pub heartbeat_ms: Option<u64>,
    /// Last tick.
    pub last_tick: Option<TickRecord>,
    /// The agent's own status: its `status.json`, if that is valid JSON of at most 64 KiB.
    pub status: Option<serde_json::Value>,
    /// The loop's own status, while it runs.
    pub activity: Option<SleepFile>,
}

impl AgentStatus {
    /// Creates the status of an enabled agent, with all optional fields empty.
    pub fn new(id: impl Into<String>, working_dir: impl Into<PathBuf>, state: AgentState) -> Self {
        Self {
            id: id.into(),
            working_dir: working_dir.into(),
            enabled: true,
            state,
            ..Self::default()
        }
    }
}

/// Last error of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LastError {
    /// Class of the error, if it is one of a tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ErrorKind>,
    /// The error, for people.
    pub message: String,
    /// Time of the error, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

impl LastError {
    /// Creates an error without a class.
    pub fn new(message: impl Into<String>, at_ms: u64) -> Self {
        Self {
            kind: None,
            message: message.into(),
            at_ms,
        }
    }
}

/// State of an agent's loop.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentState {
    /// The loop is running.
    Running,
    /// The loop is running, but its last tick failed or it crashes repeatedly.
    Failing,
    /// The loop is running and waits for a limit of the service to reset.
    Limited,
    /// The loop's process is stopped by a signal (`SIGSTOP`).
    Suspended,
    /// The loop is being started.
    Starting,
    /// The loop is being stopped.
    Stopping,
    /// The loop crashed and is restarted after a delay.
    BackingOff,
    /// The loop was stopped, or never started.
    #[default]
    Stopped,
    /// The loop ended cleanly without a request of this supervisor. It is not restarted automatically.
    Ended,
    /// The loop cannot run until a problem is fixed. It is retried from time to time.
    Failed,
    /// Value of a later version.
    #[serde(other)]
    Other,
}

impl AgentState {
    /// Returns whether the loop is running and not being stopped.
    pub fn is_running(self) -> bool {
        matches!(
            self,
            Self::Running | Self::Failing | Self::Limited | Self::Suspended
        )
    }

    /// Returns whether an enabled agent in this state needs a person's attention.
    pub fn is_bad(self) -> bool {
        !matches!(
            self,
            Self::Running | Self::Limited | Self::Starting | Self::Stopping
        )
    }
}

/// The agents of a supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct AgentList {
    /// The configuration; absent if the server has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<PathBuf>,
    /// The supervisor; null if none is running.
    pub supervisor: Option<SupervisorStatus>,
    /// The master switch: while it is off, no agent is started.
    pub enabled: bool,
    /// The agents, in the order of the configuration.
    pub agents: Vec<AgentStatus>,
    /// Warnings about settings without effect, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl AgentList {
    /// Creates the list of a server without a configuration of agents.
    pub fn none() -> Self {
        Self {
            config: None,
            supervisor: None,
            enabled: true,
            agents: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

impl From<Status> for AgentList {
    fn from(status: Status) -> Self {
        Self {
            config: Some(status.config),
            supervisor: status.supervisor,
            enabled: status.enabled,
            agents: status.agents,
            warnings: status.warnings,
        }
    }
}
