//! Wire form of an outcome: the fields of `run:end`.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::Attempt;
use crate::{
    AgentError, CostSource, ErrorKind, Id, RunResult, RunStatus, TextPiece, Usage, WorkspaceResult,
};

/// The run ended.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct End<'a> {
    /// Id of the run.
    run_id: Id,
    /// Final status: one of three values.
    status: OutcomeStatus,
    /// Detailed status, as in a result. Absent in a line of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run_status: Option<RunStatus>,
    /// Time from the run's acceptance to its end, in milliseconds, waiting included.
    duration_ms: u64,
    /// The outcome.
    result: Outcome<'a>,
}

/// The outcome of a run, over all its attempts. A figure that no CLI reported is absent, never 0.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct Outcome<'a> {
    /// The agent's messages, in order. A message is the text of one message id, up to a tool call, its end, or the end
    /// of a turn. Messages of an attempt after which the prompt was sent again are excluded.
    payloads: Vec<Payload<'a>>,
    /// Usage of all attempts together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    /// The answer in the shape of `output_schema`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    structured_output: Option<Cow<'a, Value>>,
    /// What the run leaves in its workspace. Absent if it had none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workspace: Option<Cow<'a, WorkspaceResult>>,
    /// Metadata of the run.
    meta: OutcomeMeta<'a>,
}

/// One message of the agent.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct Payload<'a> {
    /// Text of the message.
    text: Cow<'a, str>,
}

/// Metadata of an outcome.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct OutcomeMeta<'a> {
    /// Id of the run.
    run_id: Id,
    /// Final status of the run.
    status: OutcomeStatus,
    /// The session of the last attempt, which can be resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session_id: Option<Id>,
    /// The provider of the last attempt.
    provider: Cow<'a, str>,
    /// The model of the last attempt as reported by the agent, else as requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<Cow<'a, str>>,
    /// Time from the run's acceptance to its end, in milliseconds, waiting included.
    duration_ms: u64,
    /// The error of a run that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'a, AgentError>>,
    /// Number of attempts; 0 if none could begin.
    attempts: u32,
    /// The attempts, in order.
    #[serde(default, skip_serializing_if = "<[Attempt]>::is_empty")]
    attempt_log: Cow<'a, [Attempt]>,
    /// Cost of all attempts together, in USD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    /// The source of the cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost_source: Option<CostSource>,
    /// Turns of all attempts, as the CLIs count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    num_turns: Option<u32>,
}

/// Final status of a run.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum OutcomeStatus {
    /// The agent completed successfully.
    Success,
    /// The caller stopped the run.
    Aborted,
    /// The run failed (see the error), or a value of a newer version.
    #[serde(other)]
    Error,
}

impl From<RunStatus> for OutcomeStatus {
    fn from(status: RunStatus) -> Self {
        match status {
            RunStatus::Completed => Self::Success,
            RunStatus::Aborted => Self::Aborted,
            _ => Self::Error,
        }
    }
}

impl From<OutcomeStatus> for RunStatus {
    fn from(status: OutcomeStatus) -> Self {
        match status {
            OutcomeStatus::Success => Self::Completed,
            OutcomeStatus::Aborted => Self::Aborted,
            OutcomeStatus::Error => Self::Failed,
        }
    }
}

impl<'a> From<&'a super::Outcome> for End<'a> {
    fn from(outcome: &'a super::Outcome) -> Self {
        let result = &outcome.result;
        let status = result.status.into();
        Self {
            run_id: outcome.run_id.clone(),
            status,
            run_status: Some(result.status),
            duration_ms: outcome.duration_ms,
            result: Outcome {
                payloads: payloads(result),
                usage: result.usage,
                structured_output: structured_output(outcome).map(Cow::Borrowed),
                workspace: result.workspace.as_ref().map(Cow::Borrowed),
                meta: OutcomeMeta {
                    run_id: outcome.run_id.clone(),
                    status,
                    session_id: outcome.session_id.clone(),
                    provider: Cow::Borrowed(&outcome.provider),
                    model: outcome.model.as_deref().map(Cow::Borrowed),
                    duration_ms: outcome.duration_ms,
                    error: outcome.error.as_ref().map(Cow::Borrowed),
                    attempts: u32::try_from(outcome.attempts.len()).unwrap_or(u32::MAX),
                    attempt_log: Cow::Borrowed(&outcome.attempts),
                    cost_usd: result.total_cost_usd,
                    cost_source: result.cost_source,
                    num_turns: result.num_turns,
                },
            },
        }
    }
}

/// Returns the structured answer. A run that completed over its budget has one too.
fn structured_output(outcome: &super::Outcome) -> Option<&Value> {
    let over = (outcome.error.as_ref()).is_some_and(|error| error.kind == ErrorKind::Budget);
    let stands = outcome.is_success() || over;
    outcome.result.structured_output.as_ref().filter(|_| stands)
}

/// Returns the messages. Text that continues after a tool call is a separate message.
fn payloads(result: &RunResult) -> Vec<Payload<'_>> {
    let mut rest = result.text.as_str();
    let pieces = result.pieces.iter().map(|piece| {
        let bytes = usize::try_from(piece.bytes).unwrap_or(usize::MAX);
        let (text, after) = rest.split_at_checked(bytes).unwrap_or((rest, ""));
        rest = after;
        Payload { text: text.into() }
    });
    pieces.collect()
}

impl From<End<'_>> for super::Outcome {
    /// Converts the fields that the line has.
    fn from(end: End<'_>) -> Self {
        let Outcome {
            payloads,
            usage,
            structured_output,
            workspace,
            meta,
        } = end.result;
        let mut result = RunResult::default();
        result.status = end.run_status.unwrap_or_else(|| end.status.into());
        result.aborted = result.status == RunStatus::Aborted;
        result.pieces = (payloads.iter())
            .map(|payload| TextPiece::new(payload.text.len() as u64))
            .collect();
        result.text = payloads.iter().map(|payload| &*payload.text).collect();
        result.final_message = payloads.last().map(|payload| payload.text.to_string());
        result.session_id.clone_from(&meta.session_id);
        result.model = meta.model.as_deref().map(str::to_owned);
        result.duration_ms = meta.duration_ms;
        result.usage = usage;
        result.total_cost_usd = meta.cost_usd;
        result.cost_source = meta.cost_source;
        result.num_turns = meta.num_turns;
        result.errors = meta.error.iter().map(|error| (**error).clone()).collect();
        result.structured_output = structured_output.map(Cow::into_owned);
        result.workspace = workspace.map(Cow::into_owned);
        Self {
            run_id: end.run_id,
            provider: meta.provider.into_owned(),
            model: meta.model.map(Cow::into_owned),
            session_id: meta.session_id,
            duration_ms: end.duration_ms,
            error: meta.error.map(Cow::into_owned),
            attempts: meta.attempt_log.into_owned(),
            result,
        }
    }
}

pub(crate) fn serialize<S: Serializer>(
    outcome: &super::Outcome,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    End::from(outcome).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Box<super::Outcome>, D::Error> {
    End::deserialize(deserializer).map(|end| Box::new(end.into()))
}
