//! The outcome of a run.

pub(crate) mod wire;

use serde::{Deserialize, Serialize};
use teamster_core::{AgentError, Id, RunResult, Usage};

/// The outcome of a run over all its attempts: its result and what only several attempts have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Outcome {
    /// The run.
    pub run_id: Id,
    /// The provider of the last attempt; without an attempt, of the first candidate.
    pub provider: String,
    /// The model of the last attempt as reported by the agent, else as requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The session to resume with: that of the last attempt, if it is known to exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Id>,
    /// From the run's acceptance to its end, in milliseconds: waiting included.
    pub duration_ms: u64,
    /// Why it did not succeed: the cause, and why it was not tried again where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AgentError>,
    /// The attempts, in order; none if none could begin.
    pub attempts: Vec<Attempt>,
    /// The result of all attempts together, the same that `done` has in the run's
    /// [log](crate::Orchestrator::log). In that log itself it has no text, which its `done` has.
    pub result: RunResult,
}

impl Outcome {
    /// The outcome of a run with this result, of which nothing else is known.
    pub fn new(run_id: impl Into<Id>, provider: impl Into<String>, result: RunResult) -> Self {
        Self {
            run_id: run_id.into(),
            provider: provider.into(),
            model: result.model.clone(),
            session_id: result.session_id.clone(),
            duration_ms: result.duration_ms,
            error: result.failure(),
            attempts: Vec::new(),
            result,
        }
    }

    /// The answer: the agent's last message.
    pub fn answer(&self) -> Option<&str> {
        self.result.answer()
    }

    /// Whether the agent finished well.
    pub fn is_success(&self) -> bool {
        self.result.is_success()
    }

    /// Why it did not.
    pub fn error(&self) -> Option<&AgentError> {
        self.error.as_ref()
    }

    /// The outcome of a run that succeeded, else its error.
    pub fn into_result(self) -> Result<Self, AgentError> {
        match self.result.failure() {
            None => Ok(self),
            Some(failure) => Err(self.error.unwrap_or(failure)),
        }
    }
}

/// One attempt of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Attempt {
    /// The provider.
    pub provider: String,
    /// The model as reported by the agent, else as requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Id>,
    /// It went on with the session of the attempt before, because of what that had done.
    pub resumed: bool,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Its usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Its cost in USD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AgentError>,
}

impl Attempt {
    /// An attempt of this provider that took so long.
    pub fn new(provider: impl Into<String>, duration_ms: u64) -> Self {
        Self {
            provider: provider.into(),
            model: None,
            session_id: None,
            resumed: false,
            duration_ms,
            usage: None,
            cost_usd: None,
            error: None,
        }
    }
}
