//! What came of a run.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use teamster_core::{AgentError, ErrorCode, ErrorKind, Id, RunResult, Usage};

/// What came of a run, over all its attempts. A figure that no CLI reported is absent, never 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Outcome {
    /// The agent's messages, in order: text of one message id, up to a tool call, its end, or the end of a
    /// turn. Those of an attempt after which the prompt was sent again are not among them. Empty where
    /// [`execute_observed`](crate::Orchestrator::execute_observed) gives it, whose `done` has the text.
    pub payloads: Vec<Payload>,
    /// What all attempts used together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The answer in the shape of `output_schema`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<Value>,
    /// How it went.
    pub meta: OutcomeMeta,
    /// The result of the last attempt, if there was one: whole, except in the log of a run, whose `done` has
    /// the text. Not on the wire.
    #[serde(skip)]
    pub last_result: Option<Box<RunResult>>,
}

impl Outcome {
    /// The outcome of a run of which nothing else is known: no attempt, no message, no figure.
    pub fn new(run_id: impl Into<Id>, provider: impl Into<String>, status: OutcomeStatus) -> Self {
        Self {
            payloads: Vec::new(),
            usage: None,
            structured_output: None,
            meta: OutcomeMeta {
                run_id: run_id.into(),
                status,
                session_id: None,
                provider: provider.into(),
                model: None,
                duration_ms: 0,
                error: None,
                attempts: 0,
                attempt_log: Vec::new(),
                cost_usd: None,
                num_turns: None,
            },
            last_result: None,
        }
    }

    /// The agent's last message.
    pub fn answer(&self) -> Option<&str> {
        self.payloads.last().map(|payload| payload.text.as_str())
    }

    /// Whether the agent finished well.
    pub fn is_success(&self) -> bool {
        self.meta.status == OutcomeStatus::Success
    }

    /// Why it did not.
    pub fn error(&self) -> Option<&AgentError> {
        self.meta.error.as_ref()
    }

    /// The outcome of a run that succeeded, else its error.
    pub fn into_result(self) -> Result<Self, AgentError> {
        if self.is_success() {
            return Ok(self);
        }
        let status = self.meta.status;
        Err(self.meta.error.unwrap_or_else(|| {
            let (code, kind) = match status {
                OutcomeStatus::Aborted => (ErrorCode::Aborted, ErrorKind::Aborted),
                _ => (ErrorCode::Unknown, ErrorKind::Internal),
            };
            AgentError::new(
                code,
                kind,
                "the run ended without success and without an error",
            )
        }))
    }
}

/// One message of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Payload {
    /// Its text.
    pub text: String,
}

impl Payload {
    /// A message.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }
}

/// How a run went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct OutcomeMeta {
    /// The run.
    pub run_id: Id,
    /// How it ended.
    pub status: OutcomeStatus,
    /// The session in which the last attempt worked, to go on with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Id>,
    /// The provider of the last attempt.
    pub provider: String,
    /// The model of the last attempt: as the agent says, else as it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// From the run's acceptance to its end, in milliseconds: waiting included.
    pub duration_ms: u64,
    /// Why it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AgentError>,
    /// How many attempts there were; 0 if none could begin.
    pub attempts: u32,
    /// Each of them, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempt_log: Vec<Attempt>,
    /// What all attempts cost together, in USD, of what was reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Turns of all attempts, as the CLIs count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_turns: Option<u32>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutcomeStatus {
    /// The agent finished well.
    Success,
    /// The caller stopped it.
    Aborted,
    /// It did not (the error says why), or what only a newer version knows.
    #[serde(other)]
    Error,
}

impl OutcomeStatus {
    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Aborted => "aborted",
        }
    }
}

/// One attempt of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// The provider.
    pub provider: String,
    /// The model: as the agent says, else as it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Id>,
    /// It went on with the session of the attempt before, because of what that had done.
    pub resumed: bool,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// What it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What it cost, in USD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AgentError>,
}
