//! The fields of the lines. Other fields are skipped.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use teamster_core::provider::json_line::{of_any_depth, or_default};

/// `session`: the first line of a run.
#[derive(Debug, Deserialize)]
pub(crate) struct Header<'a> {
    #[serde(borrow)]
    pub(crate) id: Cow<'a, str>,
}

/// `message_update`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct Update<'a> {
    pub(crate) assistant_message_event: Piece<'a>,
}

/// A piece of an answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Piece<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Cow<'a, str>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) content_index: usize,
    #[serde(borrow, default)]
    pub(crate) delta: Option<Cow<'a, str>>,
    // toolcall_start
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) id: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) tool_name: Option<Cow<'a, str>>,
}

/// `message_start` and `message_end`.
#[derive(Debug, Deserialize)]
pub(crate) struct MessageLine {
    pub(crate) message: Message,
}

/// A message of the conversation, of any role.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Message {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) role: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) content: Vec<Block>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) model: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) usage: Option<Figures>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) stop_reason: Option<String>,
    #[serde(default, deserialize_with = "or_default", rename = "errorMessage")]
    pub(crate) error: Option<String>,
}

/// A part of a message, or of a tool's result.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Block {
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub(crate) kind: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) text: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) thinking: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) data: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) mime_type: Option<String>,
    /// The id of a call.
    #[serde(deserialize_with = "or_default")]
    pub(crate) id: Option<String>,
    /// The tool of a call.
    #[serde(deserialize_with = "or_default")]
    pub(crate) name: Option<String>,
}

/// Tokens and cost of one request.
#[derive(Debug, Default, Clone, Copy, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Figures {
    #[serde(deserialize_with = "or_default")]
    pub(crate) input: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) output: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) cache_read: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) cache_write: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) reasoning: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) cost: Cost,
}

impl Figures {
    /// Returns all tokens of the request and its answer. Reasoning is a part of the output.
    pub(crate) fn tokens(&self) -> u64 {
        let parts = [self.input, self.output, self.cache_read, self.cache_write];
        parts.into_iter().flatten().fold(0, u64::saturating_add)
    }
}

/// Cost in US dollars.
#[derive(Debug, Default, Clone, Copy, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Cost {
    #[serde(deserialize_with = "or_default")]
    pub(crate) total: Option<f64>,
}

/// `tool_execution_start`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolStart {
    pub(crate) tool_call_id: String,
    pub(crate) tool_name: String,
    #[serde(default, deserialize_with = "of_any_depth")]
    pub(crate) args: Value,
    /// The call that made this one, such as that of a script.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) parent_tool_call_id: Option<String>,
}

/// `tool_execution_end`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolEnd {
    pub(crate) tool_call_id: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) result: ToolOutput,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) is_error: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ToolOutput {
    #[serde(deserialize_with = "or_default")]
    pub(crate) content: Vec<Block>,
}

/// `auto_retry_start` and `summarization_retry_scheduled`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct RetryLine {
    #[serde(deserialize_with = "or_default")]
    pub(crate) attempt: u32,
    #[serde(deserialize_with = "or_default")]
    pub(crate) max_attempts: Option<u32>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) delay_ms: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) error_message: String,
}

/// `auto_retry_end`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RetryEnd {
    #[serde(deserialize_with = "or_default")]
    pub(crate) success: Option<bool>,
}

/// `agent_settled`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Settled {
    /// Since 1.1.
    #[serde(deserialize_with = "or_default")]
    pub(crate) aborted: bool,
}

/// `compaction_end`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct CompactionEnd {
    #[serde(deserialize_with = "or_default")]
    pub(crate) result: Option<Compacted>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) aborted: bool,
    #[serde(deserialize_with = "or_default")]
    pub(crate) error_message: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Compacted {
    #[serde(deserialize_with = "or_default")]
    pub(crate) usage: Option<Figures>,
}

/// `extension_error`, and messages of an extension to a person (`extension_ui_request`).
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Extension {
    #[serde(deserialize_with = "or_default", rename = "extensionPath")]
    pub(crate) path: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) error: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) method: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) message: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) notify_type: Option<String>,
}

/// `entry_appended`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Appended {
    #[serde(deserialize_with = "or_default")]
    pub(crate) entry: Entry,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Entry {
    /// Of an entry with the type `usage`.
    #[serde(deserialize_with = "or_default")]
    pub(crate) usage: Option<Figures>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) model: Option<String>,
    /// Of an entry with the type `custom`.
    #[serde(deserialize_with = "or_default")]
    pub(crate) custom_type: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) data: EntryData,
}

/// Report of the extension for a run's MCP servers.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct EntryData {
    #[serde(deserialize_with = "or_default")]
    pub(crate) without_tools: Vec<String>,
}
