//! Events of a run as one stream over all its attempts.

use serde::{Deserialize, Deserializer, Serialize};

use super::outcome::{Outcome, wire};
use crate::{AgentError, Id, NewerEvent};

/// An event of a run.
///
/// On the wire it is an object with a `type` such as `run:start` and fields in camelCase. Absent optional fields are
/// omitted.
///
/// A run has exactly one [`Start`](Self::Start), which is its first event, and exactly one [`End`](Self::End), which
/// is its last. Every [`ToolStart`](Self::ToolStart) has a [`ToolEnd`](Self::ToolEnd), even if the run is aborted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    tag = "type",
    rename_all_fields = "camelCase",
    expecting = "expected an event of a run: an object with a `type` and the fields of that type"
)]
#[non_exhaustive]
pub enum RunEvent {
    /// The run started. Emitted when the agent's first event arrives, or when the first attempt fails before it or has
    /// to wait. So the session and the model are present if the CLI reports them at its start.
    #[serde(rename = "run:start")]
    #[non_exhaustive]
    Start {
        /// Id of the run.
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
    /// The run ended.
    ///
    /// Its wire form is `runId`, `status` (`success`, `aborted`, `error`), `runStatus` (a
    /// [`RunStatus`](crate::RunStatus)), `durationMs` and `result`, with the messages as `payloads` and
    /// other data in `meta`. A deserialized event has only the data of that form.
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
        /// Id of the run.
        run_id: Id,
        /// The error.
        error: Box<AgentError>,
    },
    /// An attempt begins. The first follows the [`Start`](Self::Start) of the run, at the agent's first
    /// event; later ones are emitted just before their process starts.
    #[serde(rename = "run:attempt")]
    #[non_exhaustive]
    Attempt {
        /// Id of the run.
        run_id: Id,
        /// Number of the attempt, from 1.
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
        /// Id of the run.
        run_id: Id,
        /// The group that shares limits and holds: the provider, unless the candidate names another.
        group: String,
        /// The requested model, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// End of the hold, in milliseconds since the Unix epoch. Absent if the attempt waits for a slot.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ms: Option<u64>,
        /// The error that caused the hold.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Box<AgentError>>,
    },
    /// An attempt failed, and the same candidate is tried again.
    #[serde(rename = "run:retry")]
    #[non_exhaustive]
    Retry {
        /// Id of the run.
        run_id: Id,
        /// The error of the failed attempt.
        reason: Box<AgentError>,
        /// Delay before the next attempt, in milliseconds.
        delay_ms: u64,
        /// The next attempt.
        next: Next,
    },
    /// An attempt failed or could not begin, and the next candidate is tried.
    #[serde(rename = "run:fallback")]
    #[non_exhaustive]
    Fallback {
        /// Id of the run.
        run_id: Id,
        /// The error for which the last candidate was given up.
        reason: Box<AgentError>,
        /// Delay before the next attempt, in milliseconds.
        delay_ms: u64,
        /// The next attempt.
        next: Next,
    },
    /// A tool call begins.
    #[serde(rename = "tool:start")]
    #[non_exhaustive]
    ToolStart {
        /// Id of the run.
        run_id: Id,
        /// Name of the tool in the CLI.
        tool_name: String,
        /// Id of the call.
        tool_id: Id,
    },
    /// A tool call ended.
    #[serde(rename = "tool:end")]
    #[non_exhaustive]
    ToolEnd {
        /// Id of the run.
        run_id: Id,
        /// Name of the tool in the CLI.
        tool_name: String,
        /// Id of the call.
        tool_id: Id,
        /// Duration of the call, in milliseconds.
        duration_ms: u64,
        /// True if the call failed, or if its attempt ended before it.
        is_error: bool,
    },
    /// A piece of the agent's answer, as it is written.
    #[serde(rename = "assistant:chunk")]
    #[non_exhaustive]
    Chunk {
        /// Id of the run.
        run_id: Id,
        /// The text.
        content: String,
    },
    /// A complete message of the agent. Chunks without a following message are retracted: the CLI dropped them, or
    /// their attempt failed and the prompt was sent again.
    #[serde(rename = "assistant:message")]
    #[non_exhaustive]
    Message {
        /// Id of the run.
        run_id: Id,
        /// The text.
        content: String,
    },
    /// A message to the agent, in the log of a session. Its entry precedes those of the turn that it begins. Runs do
    /// not emit it.
    #[serde(rename = "user:message")]
    #[non_exhaustive]
    UserMessage {
        /// Id of the turn.
        run_id: Id,
        /// Text of the message.
        text: String,
        /// The sender, such as `terminal pts/3`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// True if the message goes to the turn in progress.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        steer: bool,
        /// Idempotency key of the request: a second request with the same key begins no turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// A placeholder in a log on disk for the entries before it, which were removed to make room. Its number is that of
    /// the last removed entry. Runs do not emit it.
    #[serde(rename = "reset")]
    #[non_exhaustive]
    Reset {
        /// Id of the run.
        run_id: Id,
    },
    /// A placeholder for entries of a log on disk that cannot be read, because their lines were changed or damaged. Its
    /// number is that of the last of them. Runs do not emit it.
    #[serde(rename = "damaged")]
    #[non_exhaustive]
    Damaged {
        /// Id of the run.
        run_id: Id,
    },
    /// An event that only a newer version knows, in its wire form. Runs do not emit it.
    #[serde(untagged, deserialize_with = "newer")]
    #[cfg_attr(feature = "schema", schemars(skip, !untagged))]
    Newer(NewerEvent),
}

/// The types that this version knows.
const TYPES: [&str; 14] = [
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
    "damaged",
];

fn newer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NewerEvent, D::Error> {
    NewerEvent::unless_known(deserializer, &TYPES)
}

/// Constructors for what writes logs. Readers need none.
#[doc(hidden)]
impl RunEvent {
    /// Creates a [`Start`](Self::Start) event.
    pub fn start(
        run_id: Id,
        session_id: Option<Id>,
        provider: impl Into<String>,
        model: Option<String>,
    ) -> Self {
        Self::Start {
            run_id,
            session_id,
            provider: provider.into(),
            model,
        }
    }

    /// Creates an [`Error`](Self::Error) event.
    pub fn error(run_id: Id, error: AgentError) -> Self {
        Self::Error {
            run_id,
            error: Box::new(error),
        }
    }

    /// Creates the [`Attempt`](Self::Attempt) event of the attempt that begins.
    pub fn attempt(run_id: Id, begins: Next) -> Self {
        Self::Attempt {
            run_id,
            attempt: begins.attempt,
            provider: begins.provider,
            model: begins.model,
            resumes: begins.resumes,
        }
    }

    /// Creates a [`Hold`](Self::Hold) event. `hold` is the end of the hold, in milliseconds since the Unix epoch, and
    /// its cause; `None` if the attempt waits for a slot.
    pub fn hold(
        run_id: Id,
        group: impl Into<String>,
        model: Option<String>,
        hold: Option<(u64, AgentError)>,
    ) -> Self {
        let (until_ms, reason) = hold.unzip();
        Self::Hold {
            run_id,
            group: group.into(),
            model,
            until_ms,
            reason: reason.map(Box::new),
        }
    }

    /// Creates a [`ToolStart`](Self::ToolStart) event.
    pub fn tool_start(run_id: Id, tool_name: impl Into<String>, tool_id: Id) -> Self {
        Self::ToolStart {
            run_id,
            tool_name: tool_name.into(),
            tool_id,
        }
    }

    /// Creates a [`ToolEnd`](Self::ToolEnd) event.
    pub fn tool_end(
        run_id: Id,
        tool_name: impl Into<String>,
        tool_id: Id,
        duration_ms: u64,
        is_error: bool,
    ) -> Self {
        Self::ToolEnd {
            run_id,
            tool_name: tool_name.into(),
            tool_id,
            duration_ms,
            is_error,
        }
    }

    /// Creates a [`Chunk`](Self::Chunk) event.
    pub fn chunk(run_id: Id, content: impl Into<String>) -> Self {
        Self::Chunk {
            run_id,
            content: content.into(),
        }
    }

    /// Creates a [`Message`](Self::Message) event.
    pub fn message(run_id: Id, content: impl Into<String>) -> Self {
        Self::Message {
            run_id,
            content: content.into(),
        }
    }

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

    /// Creates a [`Damaged`](Self::Damaged) event.
    pub fn damaged(run_id: Id) -> Self {
        Self::Damaged { run_id }
    }
}

impl RunEvent {
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
            Self::Damaged { .. } => "damaged",
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
            | Self::Reset { run_id }
            | Self::Damaged { run_id } => run_id,
            Self::Newer(_) => return None,
        })
    }
}

/// The next attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Next {
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// The provider.
    pub provider: String,
    /// The model, if one was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The account of the agent, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The session that the attempt resumes, because the run has made changes. If absent, the prompt is sent again, and
    /// the text of the failed attempt is retracted.
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
            account: None,
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
