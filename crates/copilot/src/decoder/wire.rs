//! What the lines of the CLI hold, as far as it is used.
//!
//! Every line but the last is an envelope around `data`. No field is relied on: one that is missing
//! or has another type is taken as missing, because a line must not be lost for one figure in it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use teamster_core::json_line::or_default;
use teamster_core::surrogates::Chars;

pub(super) use super::shapes::Str;
use super::shapes::{Content, number, tool_error, tool_result, value_or_text};

/// A line of a type that is frequent: read in one go.
#[derive(Deserialize)]
pub(super) struct Hot<'a, D> {
    #[serde(borrow, default)]
    pub(super) id: Str<'a>,
    #[serde(borrow, default, rename = "agentId")]
    pub(super) agent: Str<'a>,
    pub(super) data: D,
}

/// What every line has.
#[derive(Deserialize)]
pub(super) struct Envelope<'a> {
    #[serde(borrow, default)]
    pub(super) id: Str<'a>,
}

/// Any other line.
#[derive(Deserialize)]
#[serde(bound = "D: Deserialize<'de> + Default")]
pub(super) struct Line<'a, D> {
    #[serde(borrow, default, rename = "agentId")]
    pub(super) agent: Str<'a>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) data: D,
}

/// `assistant.message_delta`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageDelta<'a> {
    #[serde(borrow, default)]
    pub(super) message_id: Str<'a>,
    #[serde(borrow)]
    pub(super) delta_content: Chars<'a>,
    #[serde(borrow, default)]
    pub(super) parent_tool_call_id: Str<'a>,
}

/// `assistant.reasoning_delta`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReasoningDelta<'a> {
    #[serde(borrow, default)]
    pub(super) reasoning_id: Str<'a>,
    #[serde(borrow)]
    pub(super) delta_content: Chars<'a>,
}

/// `tool.shell_output`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShellOutput<'a> {
    #[serde(borrow, default)]
    pub(super) tool_call_id: Str<'a>,
    #[serde(borrow, default)]
    pub(super) text: Str<'a>,
    pub(super) sequence: Option<u64>,
}

/// `assistant.message`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Message<'a> {
    #[serde(borrow, rename = "messageId")]
    pub(super) id: Str<'a>,
    #[serde(borrow)]
    pub(super) model: Str<'a>,
    #[serde(borrow)]
    pub(super) content: Content<'a>,
    #[serde(borrow)]
    pub(super) reasoning_text: Str<'a>,
    #[serde(borrow)]
    pub(super) parent_tool_call_id: Str<'a>,
    #[serde(deserialize_with = "or_default")]
    pub(super) tool_requests: Vec<IgnoredAny>,
}

/// `assistant.reasoning`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Reasoning<'a> {
    #[serde(borrow)]
    pub(super) reasoning_id: Str<'a>,
    #[serde(borrow)]
    pub(super) content: Str<'a>,
}

/// Lines of which only the agent and its place matter: `assistant.turn_start` and others.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Turn<'a> {
    #[serde(borrow)]
    pub(super) parent_tool_call_id: Str<'a>,
    /// Of `assistant.turn_retry`.
    #[serde(borrow)]
    pub(super) reason: Str<'a>,
    /// Of `model.call_finished`.
    #[serde(borrow)]
    pub(super) outcome: Str<'a>,
    /// Of `assistant.idle`.
    #[serde(deserialize_with = "or_default")]
    pub(super) aborted: bool,
}

/// `model.call_failure`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct CallFailure<'a> {
    #[serde(deserialize_with = "or_default")]
    pub(super) status_code: Option<u16>,
    #[serde(deserialize_with = "or_default")]
    pub(super) retry_attempt: Option<u32>,
    #[serde(borrow)]
    pub(super) failure_kind: Str<'a>,
    #[serde(borrow)]
    pub(super) error_message: Str<'a>,
    #[serde(borrow)]
    pub(super) error_code: Str<'a>,
    #[serde(borrow)]
    pub(super) error_type: Str<'a>,
}

/// `session.error`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SessionError<'a> {
    #[serde(borrow)]
    pub(super) error_type: Str<'a>,
    #[serde(borrow)]
    pub(super) error_code: Str<'a>,
    #[serde(borrow)]
    pub(super) message: Str<'a>,
    #[serde(deserialize_with = "or_default")]
    pub(super) status_code: Option<u16>,
}

/// `tool.execution_start`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ToolStart<'a> {
    #[serde(borrow)]
    pub(super) tool_call_id: Str<'a>,
    #[serde(borrow)]
    pub(super) tool_name: Str<'a>,
    #[serde(deserialize_with = "value_or_text")]
    pub(super) arguments: Option<Value>,
    #[serde(borrow)]
    pub(super) mcp_server_name: Str<'a>,
    #[serde(borrow)]
    pub(super) mcp_tool_name: Str<'a>,
    #[serde(borrow)]
    pub(super) parent_tool_call_id: Str<'a>,
}

/// `tool.execution_complete`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ToolComplete<'a> {
    #[serde(borrow)]
    pub(super) tool_call_id: Str<'a>,
    #[serde(deserialize_with = "or_default")]
    pub(super) success: Option<bool>,
    #[serde(borrow, deserialize_with = "tool_result")]
    pub(super) result: ToolResult<'a>,
    #[serde(borrow, deserialize_with = "tool_error")]
    pub(super) error: Option<ToolError<'a>>,
    #[serde(deserialize_with = "or_default")]
    pub(super) shell_execution: ShellExecution,
    #[serde(borrow, deserialize_with = "or_default")]
    pub(super) file_edits: Vec<FileEdit<'a>>,
    #[serde(borrow, deserialize_with = "or_default")]
    pub(super) tool_telemetry: Telemetry<'a>,
    #[serde(borrow)]
    pub(super) parent_tool_call_id: Str<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ToolResult<'a> {
    #[serde(borrow)]
    pub(super) content: Content<'a>,
    #[serde(deserialize_with = "or_default")]
    pub(super) contents: Vec<Value>,
    #[serde(deserialize_with = "or_default")]
    pub(super) binary_results_for_llm: Vec<Value>,
    #[serde(deserialize_with = "value_or_text")]
    pub(super) structured_content: Option<Value>,
}

impl ToolResult<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.content.text().is_empty()
            && self.contents.is_empty()
            && self.binary_results_for_llm.is_empty()
            && self.structured_content.is_none()
    }
}

/// Why a tool or an MCP server failed.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolError<'a> {
    #[serde(borrow)]
    pub(super) message: Str<'a>,
    #[serde(borrow)]
    pub(super) code: Str<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ShellExecution {
    #[serde(deserialize_with = "or_default")]
    pub(super) exit_code: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct FileEdit<'a> {
    #[serde(borrow)]
    pub(super) path: Str<'a>,
    #[serde(borrow)]
    pub(super) kind: Str<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Telemetry<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    pub(super) properties: TelemetryProperties<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct TelemetryProperties<'a> {
    #[serde(borrow)]
    pub(super) large_output_handled: Str<'a>,
    #[serde(borrow)]
    pub(super) large_output_written_to_file: Str<'a>,
}

/// `subagent.started`, `.completed`, `.failed`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SubAgent<'a> {
    #[serde(borrow)]
    pub(super) tool_call_id: Str<'a>,
    #[serde(borrow)]
    pub(super) agent_display_name: Str<'a>,
    #[serde(borrow)]
    pub(super) execution_mode: Str<'a>,
    /// The agent that made the call; none if it was the main agent.
    #[serde(borrow)]
    pub(super) parent_id: Str<'a>,
    #[serde(borrow)]
    pub(super) error: Str<'a>,
}

/// `session.mcp_servers_loaded`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct McpServers<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    pub(super) servers: Vec<McpServer<'a>>,
}

/// One of its servers, or `session.mcp_server_status_changed`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct McpServer<'a> {
    #[serde(borrow, alias = "serverName")]
    pub(super) name: Str<'a>,
    #[serde(borrow)]
    pub(super) status: Str<'a>,
    #[serde(borrow, deserialize_with = "tool_error")]
    pub(super) error: Option<ToolError<'a>>,
}

/// Lines that have something to say to a person, each in a field of its own.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Said<'a> {
    #[serde(borrow)]
    pub(super) message: Str<'a>,
    #[serde(borrow)]
    pub(super) info_type: Str<'a>,
    #[serde(borrow)]
    pub(super) reason: Str<'a>,
    #[serde(borrow)]
    pub(super) model: Str<'a>,
    #[serde(borrow)]
    pub(super) new_model: Str<'a>,
    #[serde(deserialize_with = "or_default")]
    pub(super) success: Option<bool>,
    #[serde(borrow, deserialize_with = "or_default")]
    pub(super) kind: NotificationKind<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    pub(super) error: Option<&'a RawValue>,
}

/// What a `system.notification` is about.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct NotificationKind<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Str<'a>,
    #[serde(borrow)]
    pub(super) shell_id: Str<'a>,
    #[serde(borrow)]
    pub(super) agent_id: Str<'a>,
    #[serde(borrow)]
    pub(super) status: Str<'a>,
    #[serde(borrow)]
    pub(super) description: Str<'a>,
    #[serde(deserialize_with = "or_default")]
    pub(super) exit_code: Option<i64>,
}

/// `permission.requested` and `permission.completed`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PermissionLine<'a> {
    #[serde(borrow)]
    pub(super) tool_call_id: Str<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    pub(super) permission_request: PermissionRequest<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PermissionRequest<'a> {
    #[serde(borrow)]
    pub(super) kind: Str<'a>,
    #[serde(borrow)]
    pub(super) tool_call_id: Str<'a>,
    #[serde(borrow)]
    pub(super) intention: Str<'a>,
}

/// `result`, the last line, which is no envelope.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ResultLine<'a> {
    #[serde(borrow)]
    pub(super) session_id: Str<'a>,
    #[serde(deserialize_with = "number")]
    pub(super) exit_code: Option<i64>,
    #[serde(deserialize_with = "or_default")]
    pub(super) usage: ResultUsage,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ResultUsage {
    #[serde(deserialize_with = "or_default")]
    pub(super) total_api_duration_ms: Option<u64>,
}

/// `session.usage_record` of the session's own record; `assistant.usage` has the same figures
/// without the level between.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct UsageRecord<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    pub(super) usage: CallUsage<'a>,
}

/// `session.shutdown` of that record: the session's totals so far.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Shutdown<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    pub(super) model_metrics: BTreeMap<String, UsageRecord<'a>>,
}

/// What one request to a model used.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct CallUsage<'a> {
    #[serde(borrow)]
    pub(super) model: Str<'a>,
    #[serde(deserialize_with = "or_default")]
    pub(super) input_tokens: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    pub(super) output_tokens: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    pub(super) cache_read_tokens: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    pub(super) cache_write_tokens: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    pub(super) reasoning_tokens: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    pub(super) duration: Option<u64>,
    #[serde(borrow)]
    pub(super) finish_reason: Str<'a>,
    #[serde(deserialize_with = "or_default")]
    pub(super) content_filter_triggered: bool,
    #[serde(borrow)]
    pub(super) parent_tool_call_id: Str<'a>,
}

/// `session.quota_observation`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct QuotaLine<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    pub(super) observation: Quota<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Quota<'a> {
    #[serde(borrow)]
    pub(super) access_state: Str<'a>,
    #[serde(borrow, rename = "quotaId")]
    pub(super) id: Str<'a>,
    #[serde(deserialize_with = "or_default")]
    pub(super) entitled_quantity: Option<f64>,
    #[serde(deserialize_with = "or_default")]
    pub(super) available_quantity: Option<f64>,
}
