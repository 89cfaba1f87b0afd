//! Public state of the runs that have not ended.

use serde::{Deserialize, Serialize};
use teamster_core::Id;

/// Phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunPhase {
    /// The run waits for a slot.
    Queued,
    /// The run waits because its provider is on hold.
    OnHold,
    /// The agent is being started, and has emitted no event yet.
    Starting,
    /// A tool of the agent is running.
    InTool,
    /// The run waits before its next attempt.
    Waiting,
    /// The run was asked to stop.
    Stopping,
    /// The agent is working, or a value of a newer version.
    #[serde(other)]
    Running,
}

impl RunPhase {
    /// Returns the name of the phase on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::OnHold => "on_hold",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::InTool => "in_tool",
            Self::Waiting => "waiting",
            Self::Stopping => "stopping",
        }
    }
}

/// A run that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ActiveRun {
    /// Id of the run.
    pub run_id: Id,
    /// The provider of the current or next attempt.
    pub provider: String,
    /// The model as reported by the agent, else as requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent's session, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Id>,
    /// Number of the current or next attempt, from 1.
    pub attempt: u32,
    /// Phase of the run.
    pub phase: RunPhase,
    /// Start of the phase, in milliseconds since the Unix epoch.
    pub since_ms: u64,
    /// Earliest end of the phase, in milliseconds since the Unix epoch. Present for [`RunPhase::OnHold`] and
    /// [`RunPhase::Waiting`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// Time of the run's acceptance, in milliseconds since the Unix epoch.
    pub started_ms: u64,
}

/// A change of a run's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Update {
    /// The phase of the run. Once a stop was requested, the phase stays [`RunPhase::Stopping`].
    Phase(RunPhase),
    /// The run waits before its next attempt, until this time in milliseconds since the Unix epoch.
    WaitingUntil(u64),
    /// The coming attempt.
    Attempt {
        attempt: u32,
        provider: String,
        model: Option<String>,
        /// The session that the attempt resumes.
        session_id: Option<Id>,
    },
    /// The agent has reported its session, and possibly its model.
    Session {
        session_id: Id,
        model: Option<String>,
    },
}

impl ActiveRun {
    /// Sets the phase. The start time is kept if the phase is unchanged.
    pub(super) fn set_phase(&mut self, phase: RunPhase, until_ms: Option<u64>, now_ms: u64) {
        if self.phase != phase {
            self.phase = phase;
            self.since_ms = now_ms;
        }
        self.until_ms = until_ms;
    }
}
