//! Fields of the CLI's lines that are used.
//!
//! Every line but the last is an envelope around `data`. No field is required: a field of another type counts as
//! missing, because one bad field must not lose the line.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use teamster_core::provider::json_line::{or_default, parse};
use teamster_core::provider::surrogates::Chars;

pub(crate) use super::shapes::Str;
use super::shapes::{Content, number, tool_error, tool_result, value_or_text};

/// A line of a frequent type, parsed in one pass.
#[derive(Deserialize)]
pub(crate) struct Direct<'a, D> {
    #[serde(borrow, default)]
    pub(crate) id: Str<'a>,
    #[serde(borrow, default, rename = "agentId")]
    pub(crate) agent: Str<'a>,
    pub(crate) data: D,
}

/// Fields of every line.
#[derive(Deserialize)]
pub(crate) struct Envelope<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Str<'a>,
}

/// Any other line.
#[derive(Deserialize)]
#[serde(bound = "D: Deserialize<'de> + Default")]
pub(crate) struct Line<'a, D> {
    #[serde(borrow, default, rename = "agentId")]
    pub(crate) agent: Str<'a>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) data: D,
}

/// `assistant.message_delta`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct MessageDelta<'a> {
    #[serde(default)]
    pub(crate) message_id: Str<'a>,
    pub(crate) delta_content: Chars<'a>,
    #[serde(default)]
    pub(crate) parent_tool_call_id: Str<'a>,
}

/// `assistant.reasoning_delta`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct ReasoningDelta<'a> {
    #[serde(default)]
    pub(crate) reasoning_id: Str<'a>,
    pub(crate) delta_content: Chars<'a>,
}

/// `tool.shell_output`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShellOutput<'a> {
    #[serde(borrow, default)]
    pub(crate) tool_call_id: Str<'a>,
    #[serde(borrow, default)]
    pub(crate) text: Str<'a>,
    pub(crate) sequence: Option<u64>,
}

/// `assistant.message`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct Message<'a> {
    #[serde(rename = "messageId")]
    pub(crate) id: Str<'a>,
    pub(crate) model: Str<'a>,
    pub(crate) content: Content<'a>,
    pub(crate) reasoning_text: Str<'a>,
    pub(crate) parent_tool_call_id: Str<'a>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) tool_requests: Vec<ToolRequest<'a>>,
}

/// A call in a message, before it runs.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct ToolRequest<'a> {
    pub(crate) tool_call_id: Str<'a>,
    pub(crate) name: Str<'a>,
}

/// `assistant.reasoning`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct Reasoning<'a> {
    pub(crate) reasoning_id: Str<'a>,
    pub(crate) content: Str<'a>,
}

/// Lines whose only relevant data are the agent and its position, such as `assistant.turn_start`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct Turn<'a> {
    pub(crate) parent_tool_call_id: Str<'a>,
    /// Only in `assistant.turn_retry`.
    pub(crate) reason: Str<'a>,
    /// Only in `model.call_finished`.
    pub(crate) outcome: Str<'a>,
    /// Only in `assistant.idle`.
    #[serde(deserialize_with = "or_default")]
    pub(crate) aborted: bool,
}

/// `model.call_failure`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct CallFailure<'a> {
    #[serde(deserialize_with = "or_default")]
    pub(crate) status_code: Option<u16>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) retry_attempt: Option<u32>,
    pub(crate) failure_kind: Str<'a>,
    pub(crate) error_message: Str<'a>,
    pub(crate) error_code: Str<'a>,
    pub(crate) error_type: Str<'a>,
}

/// `session.error`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct SessionError<'a> {
    pub(crate) error_type: Str<'a>,
    pub(crate) error_code: Str<'a>,
    pub(crate) message: Str<'a>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) status_code: Option<u16>,
}

/// `assistant.tool_call_delta`: a piece of a call while the model writes it.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct CallDelta<'a> {
    pub(crate) tool_call_id: Str<'a>,
    pub(crate) tool_name: Str<'a>,
}

/// `tool.execution_start`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct ToolStart<'a> {
    pub(crate) tool_call_id: Str<'a>,
    pub(crate) tool_name: Str<'a>,
    #[serde(deserialize_with = "value_or_text")]
    pub(crate) arguments: Option<Value>,
    pub(crate) mcp_server_name: Str<'a>,
    pub(crate) mcp_tool_name: Str<'a>,
    pub(crate) parent_tool_call_id: Str<'a>,
}

/// `tool.execution_complete`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct ToolComplete<'a> {
    pub(crate) tool_call_id: Str<'a>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) success: Option<bool>,
    #[serde(deserialize_with = "tool_result")]
    pub(crate) result: ToolResult<'a>,
    #[serde(deserialize_with = "tool_error")]
    pub(crate) error: Option<ToolError<'a>>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) shell_execution: ShellExecution,
    #[serde(deserialize_with = "or_default")]
    pub(crate) file_edits: Vec<FileEdit<'a>>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) tool_telemetry: Telemetry<'a>,
    pub(crate) parent_tool_call_id: Str<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct ToolResult<'a> {
    pub(crate) content: Content<'a>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) contents: Vec<Value>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) binary_results_for_llm: Vec<Value>,
    #[serde(deserialize_with = "value_or_text")]
    pub(crate) structured_content: Option<Value>,
}

impl ToolResult<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.content.text().is_empty()
            && self.contents.is_empty()
            && self.binary_results_for_llm.is_empty()
            && self.structured_content.is_none()
    }
}

/// Error of a tool or an MCP server.
#[derive(Default, Deserialize)]
#[serde(default, bound = "'de: 'a")]
pub(crate) struct ToolError<'a> {
    pub(crate) message: Str<'a>,
    pub(crate) code: Str<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ShellExecution {
    #[serde(deserialize_with = "or_default")]
    pub(crate) exit_code: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound = "'de: 'a")]
pub(crate) struct FileEdit<'a> {
    pub(crate) path: Str<'a>,
    pub(crate) kind: Str<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Telemetry<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    pub(crate) properties: TelemetryProperties<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct TelemetryProperties<'a> {
    pub(crate) large_output_handled: Str<'a>,
    pub(crate) large_output_written_to_file: Str<'a>,
}

/// `subagent.started`, `.completed`, `.failed`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct SubAgent<'a> {
    pub(crate) tool_call_id: Str<'a>,
    pub(crate) agent_display_name: Str<'a>,
    pub(crate) execution_mode: Str<'a>,
    /// The agent that made the call; empty for the main agent.
    pub(crate) parent_id: Str<'a>,
    pub(crate) error: Str<'a>,
}

/// `session.mcp_servers_loaded`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct McpServers<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    pub(crate) servers: Vec<McpServer<'a>>,
}

/// A server in a list, or of `session.mcp_server_status_changed`.
#[derive(Default, Deserialize)]
#[serde(default, bound = "'de: 'a")]
pub(crate) struct McpServer<'a> {
    #[serde(alias = "serverName")]
    pub(crate) name: Str<'a>,
    pub(crate) status: Str<'a>,
    #[serde(deserialize_with = "tool_error")]
    pub(crate) error: Option<ToolError<'a>>,
}

/// Lines for a person, each with its text in another field.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct MessageLine<'a> {
    pub(crate) message: Str<'a>,
    pub(crate) info_type: Str<'a>,
    pub(crate) reason: Str<'a>,
    pub(crate) model: Str<'a>,
    pub(crate) new_model: Str<'a>,
    pub(crate) previous_model: Str<'a>,
    pub(crate) server_name: Str<'a>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) success: Option<bool>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) kind: NotificationKind<'a>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) error: Option<&'a RawValue>,
}

/// Subject of a `system.notification`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct NotificationKind<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: Str<'a>,
    pub(crate) shell_id: Str<'a>,
    pub(crate) agent_id: Str<'a>,
    pub(crate) status: Str<'a>,
    pub(crate) description: Str<'a>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) exit_code: Option<i64>,
}

/// `permission.requested` and `permission.completed`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct PermissionLine<'a> {
    pub(crate) tool_call_id: Str<'a>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) permission_request: PermissionRequest<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct PermissionRequest<'a> {
    pub(crate) kind: Str<'a>,
    pub(crate) tool_call_id: Str<'a>,
    pub(crate) intention: Str<'a>,
}

/// `result`, the last line, which has no envelope.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct ResultLine<'a> {
    pub(crate) session_id: Str<'a>,
    #[serde(deserialize_with = "number")]
    pub(crate) exit_code: Option<i64>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) usage: ResultUsage,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ResultUsage {
    #[serde(deserialize_with = "or_default")]
    pub(crate) total_api_duration_ms: Option<u64>,
}

/// `session.usage_record` of the session's record. `assistant.usage` has the same figures with one level of nesting
/// less.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct UsageRecord<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    pub(crate) usage: CallUsage<'a>,
}

/// `session.start`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct Start<'a> {
    pub(crate) session_id: Str<'a>,
    pub(crate) selected_model: Str<'a>,
}

/// Returns the message in a line `message`, whose fields are in `data` or in the line itself.
pub(crate) fn plain_message(text: &str) -> Option<Line<'_, Message<'_>>> {
    let mut line: Line<'_, Message<'_>> = parse(text)?;
    if line.data.content.text().is_empty() {
        line.data = parse(text)?;
    }
    Some(line)
}

/// Returns whether a line `message` is of the assistant: that is its role, or it has none.
pub(crate) fn is_of_assistant(text: &str) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(default, bound = "'de: 'a")]
    struct Role<'a> {
        role: Str<'a>,
    }

    let inner = parse::<Line<'_, Role<'_>>>(text).map(|line| line.data);
    let roles = [inner, parse(text)].into_iter().flatten();
    let mut known = roles.filter_map(|it| it.role.get().map(str::to_owned));
    known.next().is_none_or(|role| role == "assistant")
}

/// `session.shutdown` of the session's record: totals so far.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Shutdown<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    pub(crate) model_metrics: BTreeMap<String, UsageRecord<'a>>,
}

/// Usage of one request to a model.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct CallUsage<'a> {
    pub(crate) model: Str<'a>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) input_tokens: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) output_tokens: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) cache_read_tokens: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) cache_write_tokens: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) reasoning_tokens: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) duration: Option<u64>,
    pub(crate) finish_reason: Str<'a>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) content_filter_triggered: bool,
    pub(crate) parent_tool_call_id: Str<'a>,
}

/// `session.quota_observation`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct QuotaLine<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    pub(crate) observation: Quota<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct Quota<'a> {
    pub(crate) access_state: Str<'a>,
    #[serde(rename = "quotaId")]
    pub(crate) id: Str<'a>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) entitled_quantity: Option<f64>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) available_quantity: Option<f64>,
}
