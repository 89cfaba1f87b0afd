//! Events of a run as one stream over all its attempts.

use serde::{Deserialize, Deserializer, Serialize};
use teamster_core::{AgentError, Id, NewerEvent};

use crate::Outcome;
use crate::outcome::wire;

/// An event of a run.
///
/// On the wire it is an object with a `type` such as `run:start` and fields in camelCase; optional
/// fields are left out when absent.
///
/// A run always has exactly one [`Start`](Self::Start), which is its first event, and
/// exactly one [`End`](Self::End), which is its last. Every [`ToolStart`](Self::ToolStart) gets its
/// [`ToolEnd`](Self::ToolEnd), also when the run is aborted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    tag = "type",
    rename_all_fields = "camelCase",
    expecting = "expected an event of a run: an object with a `type` and the fields of that type"
)]
#[non_exhaustive]
pub enum RunEvent {
    /// The run has begun: the agent's first event has come, or the first attempt failed before one or has
    /// to wait. So the session and the model are known, if they ever are at the start.
    #[serde(rename = "run:start")]
    #[non_exhaustive]
    Start {
        /// The run.
        run_id: Id,
        /// The agent's session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<Id>,
        /// The provider that is tried first.
        provider: String,
        /// The model as reported by the agent, else as requested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// The run is over.
    ///
    /// On the wire it has a form of its own: `runId`, `status` (`success`, `aborted`, `error`), `runStatus` (a
    /// [`RunStatus`](teamster_core::RunStatus)), `durationMs` and `result`, with the messages as `payloads` and
    /// what else is known in `meta`. Read again, it has what that form has.
    #[serde(rename = "run:end")]
    End(
        #[serde(with = "wire")]
        #[cfg_attr(feature = "schema", schemars(with = "wire::End<'static>"))]
        Box<Outcome>,
    ),
    /// The run failed. Retried failures appear only as [`Retry`](Self::Retry) and
    /// [`Fallback`](Self::Fallback).
    #[serde(rename = "run:error")]
    #[non_exhaustive]
    Error {
        /// The run.
        run_id: Id,
        /// Why.
        error: Box<AgentError>,
    },
    /// An attempt begins. The first follows the [`Start`](Self::Start) of the run, at the agent's first
    /// event; later ones are emitted just before their process starts.
    #[serde(rename = "run:attempt")]
    #[non_exhaustive]
    Attempt {
        /// The run.
        run_id: Id,
        /// The number of the attempt; the first of a run is 1.
        attempt: u32,
        /// The provider.
        provider: String,
        /// The requested model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The session of an earlier attempt that this one resumes because of its side effects.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resumes: Option<Id>,
    },
    /// An attempt waits: its provider is on hold, or no slot is free. Emitted once per wait, and not for an
    /// attempt that can begin at once.
    #[serde(rename = "run:hold")]
    #[non_exhaustive]
    Hold {
        /// The run.
        run_id: Id,
        /// The group that shares limits and holds: the provider, unless the candidate names another.
        group: String,
        /// The requested model, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// When the hold is over, in milliseconds since the Unix epoch; absent where it waits for room.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ms: Option<u64>,
        /// The error that has put it on hold.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Box<AgentError>>,
    },
    /// An attempt failed, and the same candidate is tried again.
    #[serde(rename = "run:retry")]
    #[non_exhaustive]
    Retry {
        /// The run.
        run_id: Id,
        /// Why the last one failed.
        reason: Box<AgentError>,
        /// How long the run waits before it, in milliseconds.
        delay_ms: u64,
        /// The next attempt.
        next: Next,
    },
    /// An attempt failed or could not begin, and the next candidate is tried.
    #[serde(rename = "run:fallback")]
    #[non_exhaustive]
    Fallback {
        /// The run.
        run_id: Id,
        /// Why the last candidate was given up.
        reason: Box<AgentError>,
        /// How long the run waits before it, in milliseconds.
        delay_ms: u64,
        /// The next attempt.
        next: Next,
    },
    /// A tool call begins.
    #[serde(rename = "tool:start")]
    #[non_exhaustive]
    ToolStart {
        /// The run.
        run_id: Id,
        /// The tool, by the CLI's own name.
        tool_name: String,
        /// The call.
        tool_id: Id,
    },
    /// A tool call is over.
    #[serde(rename = "tool:end")]
    #[non_exhaustive]
    ToolEnd {
        /// The run.
        run_id: Id,
        /// The tool, by the CLI's own name.
        tool_name: String,
        /// The call.
        tool_id: Id,
        /// From its start, in milliseconds.
        duration_ms: u64,
        /// It failed, or its attempt ended before it did.
        is_error: bool,
    },
    /// A piece of the agent's answer, as it is written.
    #[serde(rename = "assistant:chunk")]
    #[non_exhaustive]
    Chunk {
        /// The run.
        run_id: Id,
        /// The text.
        content: String,
    },
    /// A complete message of the agent. Chunks that no message follows were withdrawn: the CLI dropped
    /// them, or their attempt failed and the prompt was sent again.
    #[serde(rename = "assistant:message")]
    #[non_exhaustive]
    Message {
        /// The run.
        run_id: Id,
        /// The text.
        content: String,
    },
    /// In the log of a session: a message to the agent. The entry comes before those of the turn that it
    /// begins; a `steer` one goes to the turn in progress. No run sends it.
    #[serde(rename = "user:message")]
    #[non_exhaustive]
    UserMessage {
        /// The turn.
        run_id: Id,
        /// Text of the message.
        text: String,
        /// The sender, such as `terminal pts/3`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// The turn is in progress already.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        steer: bool,
        /// The key of the request that began the turn: a second one with the same key begins none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// In a log on disk: stands for the entries before it, which were removed to make room. Its number is that of the
    /// last of them. No run sends it.
    #[serde(rename = "reset")]
    #[non_exhaustive]
    Reset {
        /// The run.
        run_id: Id,
    },
    /// An event that only a newer version knows, as it is on the wire. No run sends it.
    #[serde(untagged, deserialize_with = "newer")]
    #[cfg_attr(feature = "schema", schemars(skip, !untagged))]
    Newer(NewerEvent),
}

/// The types that this version knows.
const TYPES: [&str; 13] = [
    "run:start",
    "run:end",
    "run:error",
    "run:attempt",
    "run:hold",
    "run:retry",
    "run:fallback",
    "tool:start",
    "tool:end",
    "assistant:chunk",
    "assistant:message",
    "user:message",
    "reset",
];

fn newer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NewerEvent, D::Error> {
    NewerEvent::unless_known(deserializer, &TYPES)
}

impl RunEvent {
    /// Creates a [`Retry`](Self::Retry) event.
    pub fn retry(run_id: Id, reason: AgentError, delay_ms: u64, next: Next) -> Self {
        Self::Retry {
            run_id,
            reason: Box::new(reason),
            delay_ms,
            next,
        }
    }

    /// Creates a [`Fallback`](Self::Fallback) event.
    pub fn fallback(run_id: Id, reason: AgentError, delay_ms: u64, next: Next) -> Self {
        Self::Fallback {
            run_id,
            reason: Box::new(reason),
            delay_ms,
            next,
        }
    }

    /// Creates a [`UserMessage`](Self::UserMessage) event without a key.
    pub fn user_message(
        run_id: Id,
        text: impl Into<String>,
        from: Option<String>,
        steer: bool,
    ) -> Self {
        Self::UserMessage {
            run_id,
            text: text.into(),
            from,
            steer,
            key: None,
        }
    }

    /// Creates a [`Reset`](Self::Reset) event.
    pub fn reset(run_id: Id) -> Self {
        Self::Reset { run_id }
    }

    /// Returns the `type` of the wire form. For [`Newer`](Self::Newer) it is `newer`: the actual type is among its
    /// fields.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Start { .. } => "run:start",
            Self::End(_) => "run:end",
            Self::Error { .. } => "run:error",
            Self::Attempt { .. } => "run:attempt",
            Self::Hold { .. } => "run:hold",
            Self::Retry { .. } => "run:retry",
            Self::Fallback { .. } => "run:fallback",
            Self::ToolStart { .. } => "tool:start",
            Self::ToolEnd { .. } => "tool:end",
            Self::Chunk { .. } => "assistant:chunk",
            Self::Message { .. } => "assistant:message",
            Self::UserMessage { .. } => "user:message",
            Self::Reset { .. } => "reset",
            Self::Newer(_) => "newer",
        }
    }

    /// Returns whether the event repeats an agent's event: `tool:start`, `tool:end`, `assistant:chunk` or
    /// `assistant:message`. Such events are not entries of the run's log.
    pub fn is_derived(&self) -> bool {
        matches!(
            self,
            Self::ToolStart { .. }
                | Self::ToolEnd { .. }
                | Self::Chunk { .. }
                | Self::Message { .. }
        )
    }

    /// Returns the id of the event's run, or `None` for [`Newer`](Self::Newer).
    pub fn run_id(&self) -> Option<&Id> {
        Some(match self {
            Self::End(outcome) => &outcome.run_id,
            Self::Start { run_id, .. }
            | Self::Error { run_id, .. }
            | Self::Attempt { run_id, .. }
            | Self::Hold { run_id, .. }
            | Self::Retry { run_id, .. }
            | Self::Fallback { run_id, .. }
            | Self::ToolStart { run_id, .. }
            | Self::ToolEnd { run_id, .. }
            | Self::Chunk { run_id, .. }
            | Self::Message { run_id, .. }
            | Self::UserMessage { run_id, .. }
            | Self::Reset { run_id } => run_id,
            Self::Newer(_) => return None,
        })
    }
}

/// The attempt that comes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Next {
    /// Its number; the first attempt of a run is 1.
    pub attempt: u32,
    /// The provider.
    pub provider: String,
    /// The model, if one was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The session that it resumes, because changes were made already. Without it the prompt is
    /// sent again, and the text of the failed attempt is withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes: Option<Id>,
}

impl Next {
    /// Creates the description of an attempt that sends the prompt.
    pub fn new(attempt: u32, provider: impl Into<String>) -> Self {
        Self {
            attempt,
            provider: provider.into(),
            model: None,
            resumes: None,
        }
    }
}

#[cfg(all(test, feature = "schema"))]
mod tests {
    use super::*;

    #[test]
    fn every_type_of_the_schema_is_known() {
        let schema = schemars::schema_for!(RunEvent).to_value();
        let variants = schema["oneOf"].as_array().unwrap().iter();
        let types: std::collections::BTreeSet<_> = variants
            .map(|variant| variant["properties"]["type"]["const"].as_str().unwrap())
            .collect();
        assert_eq!(types, TYPES.into_iter().collect());
    }
}
