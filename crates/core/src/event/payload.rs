//! Payloads of events.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AgentError, CostSource, RawJson, RunResult, Usage};

/// Id of a message, tool call or session. It is shared because every delta of a message carries it.
pub type Id = Arc<str>;

/// Payload of `session`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Session")
)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionStarted {
    /// The id with which the session can be resumed.
    pub session_id: Id,
    /// The model that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Names of the tools that the agent has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// MCP servers and their states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_servers: Option<Vec<McpServerStatus>>,
}

/// State of an MCP server as the CLI reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct McpServerStatus {
    /// Its name in the configuration.
    pub name: String,
    /// The CLI's word for its state, such as `connected`, `failed` or `pending`.
    pub status: String,
}

/// Payload of `text`: a delta, appended to the text before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Text {
    /// The new text.
    pub text: String,
    /// The message it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Id>,
    /// The tool call that started the sub-agent which wrote this; absent for the main agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_id: Option<Id>,
}

/// Payload of `retract`: the CLI discarded an unfinished message and asks the model again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Retract {
    /// The message whose `text` and `thinking` events so far are withdrawn. New ones may follow.
    pub message_id: Id,
}

/// Payload of `thinking`: a delta of the model's reasoning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Thinking {
    /// The new text.
    pub text: String,
    /// The message it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Id>,
    /// The tool call that started the sub-agent which wrote this; absent for the main agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_id: Option<Id>,
}

/// Payload of `tool_use`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolUse {
    /// The CLI's own name of the tool.
    pub tool_name: String,
    /// The id that the `tool_result` will carry. Unique in the run.
    pub tool_id: Id,
    /// The arguments, complete.
    pub input: Value,
    /// The category of the tool.
    pub kind: ToolKind,
    /// Server and tool, for a tool of an MCP server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpTool>,
    /// The tool call that started the sub-agent which made this call; absent for the main agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_id: Option<Id>,
}

/// A tool of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct McpTool {
    /// The server's name in the configuration.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
}

/// Category of a tool, the same for every CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolKind {
    /// Reads files or other local state.
    Read,
    /// Writes or changes files.
    Edit,
    /// Deletes files.
    Delete,
    /// Moves or renames files.
    Move,
    /// Searches in files or on the web.
    Search,
    /// Runs a command.
    Execute,
    /// Works on plans, to-do lists or other state that ends with the session. State that outlives the
    /// session, such as a memory, is [`Edit`](Self::Edit).
    Think,
    /// Gets something from the network.
    Fetch,
    /// Starts or steers another agent.
    Task,
    /// A tool of an MCP server, of any kind.
    Mcp,
    /// Anything else, including kinds that only a newer version knows.
    #[serde(other)]
    Other,
}

impl ToolKind {
    /// Returns whether a tool of this kind may change something that outlives the run: a file, a process, a
    /// server, the work of another agent.
    ///
    /// A run that used such a tool MUST NOT be started over: its changes would be made twice. A failed or denied
    /// call counts too, because a failed command may have done half its work. So does any tool that is not known
    /// to be harmless: MCP tools, other agents and [`Other`](Self::Other).
    ///
    /// The absence of such a tool is only reliable if the provider emits `tool_use` before the tool runs
    /// ([`Capabilities::announces_tools`](crate::Capabilities::announces_tools)).
    ///
    /// ```
    /// use teamster_core::ToolKind;
    ///
    /// assert!(!ToolKind::Search.has_side_effects());
    /// assert!(ToolKind::Execute.has_side_effects());
    /// assert!(ToolKind::Other.has_side_effects());
    /// ```
    pub const fn has_side_effects(self) -> bool {
        // No wildcard: a new kind must be decided here.
        match self {
            Self::Read | Self::Search | Self::Think | Self::Fetch => false,
            Self::Edit
            | Self::Delete
            | Self::Move
            | Self::Execute
            | Self::Task
            | Self::Mcp
            | Self::Other => true,
        }
    }
}

/// Payload of `tool_result`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolResult {
    /// The id of the `tool_use`.
    pub tool_id: Id,
    /// The result as text, complete. Images become a placeholder with their type and size.
    pub output: String,
    /// True if the tool failed. Absent if the CLI does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// As in the `tool_use`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_id: Option<Id>,
}

/// Payload of `file_change`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FileChange {
    /// The file, as the CLI names it.
    pub path: String,
    /// The kind of change.
    pub change: ChangeKind,
    /// The tool call that did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<Id>,
}

/// The kind of a file change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeKind {
    /// It is new.
    Add,
    /// It is gone.
    Delete,
    /// It has a new path.
    Move,
    /// It has new content, or what only a newer version knows.
    #[serde(other)]
    Update,
}

/// Payload of `plan`: the current to-do list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Plan {
    /// All entries, in order.
    pub entries: Vec<PlanEntry>,
}

/// One entry of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PlanEntry {
    /// The task.
    pub content: String,
    /// Its progress.
    pub status: PlanStatus,
}

/// Progress of a plan entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PlanStatus {
    /// In progress.
    InProgress,
    /// Done.
    Completed,
    /// Cancelled.
    Cancelled,
    /// Not started, or a status that only a newer version knows.
    #[serde(other)]
    Pending,
}

impl PlanStatus {
    /// Returns the status for the word that most CLIs use. Any other word is pending.
    pub fn from_word(word: Option<&str>) -> Self {
        match word {
            Some("completed") => Self::Completed,
            Some("in_progress") => Self::InProgress,
            Some("cancelled") => Self::Cancelled,
            _ => Self::Pending,
        }
    }
}

/// Payload of `permission`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Permission")
)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PermissionEvent {
    /// The tool in question.
    pub tool_name: String,
    /// The call in question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<Id>,
    /// The decision.
    pub decision: Decision,
    /// The reason, in the CLI's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Id of the request that callers can answer, in the log of a detached run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// True if the request was denied because it had no answer in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// True for the answer to a question of the agent or of an MCP server: no tool waited for permission.
    #[serde(skip)]
    pub(crate) of_question: bool,
}

/// Outcome of a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Decision {
    /// It was allowed.
    Allowed,
    /// It was denied.
    Denied,
    /// The CLI waits for an answer.
    Requested,
    /// A value added by a newer version.
    #[serde(other)]
    Other,
}

/// Payload of `usage`: cumulative figures; do not sum them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UsageReport {
    /// Usage of the run so far.
    pub usage: Usage,
    /// Cost of the run so far in USD, as the CLI reports it or as it is estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The source of the cost, if it is an estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_source: Option<CostSource>,
}

/// Payload of `retry`: the CLI itself repeats a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Retry {
    /// Number of this retry, from 1. On the wire it is `number`: an entry's `attempt` is that of the run.
    #[serde(rename = "number")]
    pub attempt: u32,
    /// Limit of retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// Backoff before this retry, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// The error that caused it.
    pub error: AgentError,
}

/// Payload of `rate_limit`: the account's limits as the CLI reports them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RateLimit {
    /// The CLI's word, such as `allowed`, `allowed_warning` or `rejected`.
    pub status: String,
    /// Time at which the limit resets, in milliseconds since the Unix epoch.
    #[serde(rename = "resetsAt", default, skip_serializing_if = "Option::is_none")]
    pub resets_at_ms: Option<u64>,
    /// Name of the limit, such as `five_hour`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Used share of the limit, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization: Option<f64>,
}

/// Payload of `unknown`: a line that the decoder does not know. No output is dropped silently.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Unknown {
    /// The line.
    #[serde(default = "RawJson::null")]
    pub native: RawJson,
}

/// Payload of `turn_end`: the CLI reports the end of its turn. `done` follows when the process has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TurnEnd {
    /// Reason why the model stopped, in the CLI's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// True if the turn failed.
    pub is_error: bool,
    /// Usage of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Cost of the turn in USD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// Payload of `error`: the fields of [`AgentError`]. Final errors only; a failure that the CLI retries is a
/// `retry`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ErrorEvent {
    /// The error.
    #[serde(flatten)]
    pub error: AgentError,
}

/// Payload of `done`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Done {
    /// The result of the run.
    pub result: Box<RunResult>,
}
