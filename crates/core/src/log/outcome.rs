//! The outcome of a run.

pub(crate) mod wire;

use serde::{Deserialize, Serialize};

use crate::{AgentError, CostSource, Id, RunResult, Usage};

/// The outcome of a run over all its attempts: the result and the data of each attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Outcome {
    /// Id of the run.
    pub run_id: Id,
    /// The provider of the last attempt; without an attempt, of the first candidate.
    pub provider: String,
    /// The model of the last attempt as reported by the agent, else as requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The session to resume: that of the last attempt, if it is known to exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Id>,
    /// Time from the run's acceptance to its end, in milliseconds, waiting included.
    pub duration_ms: u64,
    /// The error of a run that failed, including the reason for no further attempt if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AgentError>,
    /// The attempts, in order. Empty if none could begin.
    pub attempts: Vec<Attempt>,
    /// The combined result of all attempts, as in the `done` entry of the run's log. The `run:end` entry of that log has
    /// it without text, because its `done` has the text.
    pub result: RunResult,
}

impl Outcome {
    /// Creates the outcome of a run from its result alone.
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

    /// Returns the answer: the agent's last message.
    pub fn answer(&self) -> Option<&str> {
        self.result.answer()
    }

    /// Returns whether the run completed successfully.
    pub fn is_success(&self) -> bool {
        self.result.is_success()
    }

    /// Returns the error of a run that failed.
    pub fn error(&self) -> Option<&AgentError> {
        self.error.as_ref()
    }

    /// Returns the outcome if the run succeeded.
    ///
    /// # Errors
    ///
    /// Returns the error of a run that failed.
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
    /// The account of the agent, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Session of the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Id>,
    /// True if the attempt resumed the session of the previous one, because that had side effects.
    pub resumed: bool,
    /// Duration of the attempt, in milliseconds.
    pub duration_ms: u64,
    /// Usage of the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Cost in USD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The source of the cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_source: Option<CostSource>,
    /// The error of a failed attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AgentError>,
}

impl Attempt {
    /// Creates the record of an attempt. Optional fields are absent.
    pub fn new(provider: impl Into<String>, duration_ms: u64) -> Self {
        Self {
            provider: provider.into(),
            model: None,
            account: None,
            session_id: None,
            resumed: false,
            duration_ms,
            usage: None,
            cost_usd: None,
            cost_source: None,
            error: None,
        }
    }
}
