//! Public state of the runs that have not ended.

use serde::{Deserialize, Serialize};
use teamster_core::Id;

/// Phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunPhase {
    /// It waits until the limits leave room for it.
    Queued,
    /// It waits because its provider is on hold for everyone.
    OnHold,
    /// Its agent is being started, and has emitted nothing yet.
    Starting,
    /// A tool of its agent's works.
    InTool,
    /// It waits before its next attempt.
    Waiting,
    /// It was asked to stop.
    Stopping,
    /// Its agent works, or what only a newer version knows.
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
    /// The run.
    pub run_id: Id,
    /// The provider of the attempt that runs or comes.
    pub provider: String,
    /// The model as reported by the agent, else as requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent's session, as soon as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Id>,
    /// The number of the attempt that runs or comes; the first is 1.
    pub attempt: u32,
    /// Its phase.
    pub phase: RunPhase,
    /// Since when, in milliseconds since the Unix epoch.
    pub since_ms: u64,
    /// Until when at least, in milliseconds since the Unix epoch: for [`RunPhase::OnHold`] and
    /// [`RunPhase::Waiting`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// When the run was accepted, in milliseconds since the Unix epoch.
    pub started_ms: u64,
}

impl ActiveRun {
    /// Creates the state of a run's first attempt.
    pub fn new(
        run_id: impl Into<Id>,
        provider: impl Into<String>,
        phase: RunPhase,
        since_ms: u64,
    ) -> Self {
        Self {
            run_id: run_id.into(),
            provider: provider.into(),
            model: None,
            session_id: None,
            attempt: 1,
            phase,
            since_ms,
            until_ms: None,
            started_ms: since_ms,
        }
    }
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
