//! Results of runs.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::setters::setters;
use crate::{AgentError, ErrorCode, ErrorKind, Id, ModelUsage, Usage, WorkspaceResult};

/// The outcome of a run. Figures that the CLI did not report are absent, never 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunResult {
    /// Final status.
    pub status: RunStatus,
    /// All text of the main agent that was not retracted, concatenated without separators.
    /// [`messages`](Self::messages) splits it, and [`answer`](Self::answer) is the last message.
    pub text: String,
    /// The pieces of `text` by message, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<TextPiece>,
    /// The last message of the main agent: the answer, without intermediate messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_message: Option<String>,
    /// The session, to resume it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Id>,
    /// The model that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Time from the start of the process to its end, in milliseconds.
    pub duration_ms: u64,
    /// Time spent in requests to the model, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_duration_ms: Option<u64>,
    /// Usage of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Usage of the session in total, if the CLI reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_usage: Option<Usage>,
    /// Usage by model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub usage_by_model: BTreeMap<String, ModelUsage>,
    /// Cost of this run in USD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_cost_usd: Option<f64>,
    /// Source of the cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_source: Option<CostSource>,
    /// Number of turns, as the CLI counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_turns: Option<u32>,
    /// Reason why the model stopped, in the CLI's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// True if the caller stopped the run.
    pub aborted: bool,
    /// Exit code of the process. Absent if a signal ended it or it never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Name of the signal that ended the process, such as `SIGKILL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_signal: Option<String>,
    /// The end of the CLI's standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// Every `error` event of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<AgentError>,
    /// Every denial of permission.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permission_denials: Vec<PermissionDenial>,
    /// Tool calls that never got a result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_tool_ids: Vec<Id>,
    /// The answer in the shape of `output_schema`.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub structured_output: Option<Value>,
    /// What the run leaves in its workspace. Absent if it had none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceResult>,
    /// Anomalies of the output.
    pub diagnostics: Diagnostics,
}

impl RunResult {
    /// Returns whether the CLI reported success.
    ///
    /// ```
    /// use teamster_core::{RunResult, RunStatus};
    ///
    /// assert!(!RunResult::default().is_success());
    /// let mut result = RunResult::default();
    /// result.status = RunStatus::Completed;
    /// assert!(result.is_success());
    /// ```
    pub fn is_success(&self) -> bool {
        self.status == RunStatus::Completed
    }

    /// Sets the [`text`](#structfield.text) field, as one message.
    #[doc(hidden)]
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = text.into();
        self.pieces = Vec::new();
        self
    }

    /// Returns the messages of the main agent in the order in which they began, without retracted ones.
    ///
    /// If `pieces` do not match the text, all of it is one message without an id.
    ///
    /// ```
    /// use teamster_core::{AgentEvent, RunResult, Text, TextLedger};
    ///
    /// let mut ledger = TextLedger::default();
    /// for (id, text) in [("m1", "I write the file."), ("m2", "hello.txt is written.")] {
    ///     ledger.event(&AgentEvent::Text(Text::new(text).message_id(id)));
    /// }
    /// let mut result = RunResult::default();
    /// result.text = ledger.text().to_owned();
    /// result.pieces = ledger.text_pieces();
    /// let texts: Vec<_> = result.messages().into_iter().map(|message| message.text).collect();
    /// assert_eq!(texts, ["I write the file.", "hello.txt is written."]);
    /// ```
    pub fn messages(&self) -> Vec<Message<'_>> {
        let Some(pieces) = self.texts_of_pieces() else {
            let single = Message {
                message_id: None,
                text: Cow::Borrowed(&*self.text),
            };
            return Vec::from_iter((!self.text.is_empty()).then_some(single));
        };
        let mut messages: Vec<Message<'_>> = Vec::with_capacity(pieces.len());
        let mut known = HashMap::new();
        for (id, text) in pieces {
            let index = match id {
                Some(id) => *known.entry(id).or_insert(messages.len()),
                None => messages.len(),
            };
            match messages.get_mut(index) {
                Some(message) => message.text.to_mut().push_str(text),
                None => messages.push(Message {
                    message_id: id,
                    text: Cow::Borrowed(text),
                }),
            }
        }
        messages
    }

    /// Returns the pieces with their texts, or `None` if they do not match `text`.
    fn texts_of_pieces(&self) -> Option<Vec<(Option<&Id>, &str)>> {
        let mut rest = self.text.as_str();
        let mut texts = Vec::with_capacity(self.pieces.len());
        for piece in &self.pieces {
            let (text, after) = rest.split_at_checked(usize::try_from(piece.bytes).ok()?)?;
            texts.push((piece.message_id.as_ref(), text));
            rest = after;
        }
        rest.is_empty().then_some(texts)
    }

    /// Returns the answer: the agent's last message, or else all of its text.
    pub fn answer(&self) -> Option<&str> {
        let text = Some(self.text.as_str()).filter(|text| !text.is_empty());
        self.final_message.as_deref().or(text)
    }

    /// Returns the error that ended the run, or `None` if it succeeded or reported none. Of several errors it is
    /// the most informative one.
    pub fn error(&self) -> Option<&AgentError> {
        let with = |code: ErrorCode| self.errors.iter().find(|error| error.code == code);
        let of_end = match self.status {
            RunStatus::Completed => return None,
            RunStatus::Aborted => with(ErrorCode::Aborted),
            RunStatus::TimedOut => {
                with(ErrorCode::WatchdogTimeout).or_else(|| with(ErrorCode::StartupTimeout))
            }
            _ => None,
        };
        // The CLI's last error is closest to the end: an earlier one may be that of an MCP server that did not
        // start. An unspecific error is the last resort.
        let telling = |error: &&AgentError| error.kind != ErrorKind::Internal;
        let own = |error: &&AgentError| error.code == ErrorCode::CliError && telling(error);
        of_end
            .or_else(|| self.errors.iter().rfind(own))
            .or_else(|| self.errors.iter().find(telling))
            .or_else(|| self.errors.first())
    }

    /// Returns the reason why the run did not succeed: [`error`](Self::error), or an error made from the status
    /// if none was reported. `None` if it succeeded.
    pub fn failure(&self) -> Option<AgentError> {
        if self.is_success() {
            return None;
        }
        if let Some(error) = self.error() {
            return Some(error.clone());
        }
        if self.status == RunStatus::Incomplete && !self.permission_denials.is_empty() {
            let tools: Vec<_> = (self.permission_denials.iter())
                .map(|denial| denial.tool_name.as_str())
                .collect();
            return Some(AgentError::new(
                ErrorCode::CliError,
                ErrorKind::Permission,
                format!("nothing was done; denied tools: {}", tools.join(", ")),
            ));
        }
        Some(AgentError::new(
            ErrorCode::StreamEndedEarly,
            ErrorKind::Protocol,
            "the run ended without success and without an error",
        ))
    }

    /// Returns this result if the run succeeded.
    ///
    /// # Errors
    ///
    /// Fails with [`failure`](Self::failure) if it did not succeed.
    pub fn into_result(self) -> Result<Self, AgentError> {
        match self.failure() {
            None => Ok(self),
            Some(error) => Err(error),
        }
    }
}

/// A message of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message<'a> {
    /// The id of its `text` events, if the CLI assigns one.
    pub message_id: Option<&'a Id>,
    /// The complete text. Borrowed unless text of another message came in between.
    pub text: Cow<'a, str>,
}

impl<'a> Message<'a> {
    /// Creates a message with this text and no id.
    pub fn new(text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            message_id: None,
            text: text.into(),
        }
    }
}

/// A piece of a result's `text`: consecutive text of one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TextPiece {
    /// The message it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Id>,
    /// Its length in bytes of UTF-8. It begins where the piece before it ends.
    pub bytes: u64,
}

impl TextPiece {
    /// Creates a piece of this length in bytes, without a message id.
    pub fn new(bytes: u64) -> Self {
        Self {
            message_id: None,
            bytes,
        }
    }
}

/// Final status of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunStatus {
    /// The CLI reported success.
    Completed,
    /// The caller stopped the run.
    Aborted,
    /// A time limit stopped the run.
    TimedOut,
    /// The output ended without the CLI's final event, or nothing was done because permission was denied: every call was
    /// denied, or some were and there is no text.
    Incomplete,
    /// The run failed (`errors` has the reason), or a value added by a newer version.
    #[default]
    #[serde(other)]
    Failed,
}

/// Source of a cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CostSource {
    /// The CLI reported it.
    Reported,
    /// Computed from tokens and a price table, or a value added by a newer version.
    #[serde(other)]
    Estimated,
}

/// A tool call that was not permitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PermissionDenial {
    /// The tool.
    pub tool_name: String,
    /// The call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<Id>,
    /// The reason, in the CLI's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Counts of lines that the CLI printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Diagnostics {
    /// Lines that were not blank.
    pub lines: u64,
    /// Lines that are not the JSON they should be.
    pub malformed: u64,
    /// Lines longer than the limit.
    pub oversize: u64,
    /// JSON lines of a type that the decoder does not know.
    pub unknown: u64,
    /// Tool calls that the model began to write and that never came, so that one may have run. Absent if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unfinished_calls: u64,
}

/// Deserializes an answer that is there: `null` is one.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde passes it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

setters! {
    #[doc(hidden)]
    RunResult {
        option final_message: String,
        option session_id: Id,
        option model: String,
        option usage: Usage,
        option total_cost_usd: f64,
        option cost_source: CostSource,
        option num_turns: u32,
        option stop_reason: String,
        option exit_code: i32,
        option exit_signal: String,
        option stderr: String,
        option structured_output: Value,
        option workspace: WorkspaceResult,
        set status: RunStatus,
        set duration_ms: u64,
        set usage_by_model: BTreeMap<String, ModelUsage>,
        set aborted: bool,
        set errors: Vec<AgentError>,
        set permission_denials: Vec<PermissionDenial>,
    }
    #[doc(hidden)]
    TextPiece { option message_id: Id }
    #[doc(hidden)]
    PermissionDenial { option tool_id: Id, option reason: String }
    #[doc(hidden)]
    Diagnostics { set lines: u64, set malformed: u64, set unknown: u64 }
}

impl PermissionDenial {
    /// Creates a denial of a call of this tool, with nothing else set.
    pub fn new(tool_name: impl Into<String>) -> Self {
        Self {
            tool_name: tool_name.into(),
            tool_id: None,
            reason: None,
        }
    }
}

#[cfg(test)]
mod tests;
