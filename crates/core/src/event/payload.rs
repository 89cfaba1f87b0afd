//! What each event carries.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AgentError, RawJson, RunResult, Usage};

/// An id of a message, tool call or session: shared, because every delta of a message carries it.
pub type Id = Arc<str>;

/// Payload of `session`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Session {
    /// The id with which the session can be resumed.
    pub session_id: Id,
    /// The model that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Names of the tools that the agent has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// MCP servers and how they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_servers: Option<Vec<McpServerStatus>>,
}

/// An MCP server as the CLI sees it.
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

/// Payload of `text`: a delta, to be appended to what came before.
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
    /// The tool call that started the sub-agent which says this; absent for the main agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_id: Option<Id>,
}

/// Payload of `retract`: the CLI dropped a half-written message and asks the model again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Retract {
    /// The `text` and `thinking` events with this message id that came before are void. Some may
    /// follow anew.
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
    /// The tool call that started the sub-agent which thinks this; absent for the main agent.
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
    /// What sort of thing the tool does.
    pub kind: ToolKind,
    /// Server and tool, for a tool of an MCP server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpTool>,
    /// The tool call that started the sub-agent which calls this; absent for the main agent.
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

/// What sort of thing a tool does: the same words for every CLI.
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
    /// Works on plans, to-do lists or other state that ends with the session. What is kept for later
    /// sessions, such as a memory, is [`Edit`](Self::Edit).
    Think,
    /// Gets something from the network.
    Fetch,
    /// Starts or steers another agent.
    Task,
    /// A tool of an MCP server, whatever it does.
    Mcp,
    /// Anything else, also what only a newer version knows.
    #[serde(other)]
    Other,
}

impl ToolKind {
    /// Whether a tool of this kind may change something that outlives the run: a file, a process, a
    /// server, the work of another agent.
    ///
    /// A run that has used such a tool must not be started over, or what it did is done twice. That
    /// a tool failed or was denied says less than it seems to: a failed command may have done half
    /// its work. So the kind decides, not the result, and what a tool is not known to leave alone
    /// counts as changed: an MCP server's tool may do anything, another agent has tools of its own,
    /// and [`Other`](Self::Other) is everything that nobody has looked at.
    ///
    /// That no such tool was told is only worth something if the provider tells of tools before
    /// they run ([`Capabilities::announces_tools`](crate::Capabilities::announces_tools)).
    ///
    /// ```
    /// use teamster_core::ToolKind;
    ///
    /// assert!(!ToolKind::Search.has_side_effects());
    /// assert!(ToolKind::Execute.has_side_effects());
    /// assert!(ToolKind::Other.has_side_effects());
    /// ```
    pub const fn has_side_effects(self) -> bool {
        // No wildcard: a new kind has to be thought about here.
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
    /// Whether the tool failed, where the CLI says so.
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
    /// What happened to it.
    pub change: ChangeKind,
    /// The tool call that did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<Id>,
}

/// What happened to a file.
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

/// Payload of `plan`: the to-do list as it now is.
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
    /// What is to be done.
    pub content: String,
    /// How far it is.
    pub status: PlanStatus,
}

/// How far an entry of a plan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PlanStatus {
    /// Being done.
    InProgress,
    /// Done.
    Completed,
    /// Given up.
    Cancelled,
    /// Not begun, or what only a newer version knows.
    #[serde(other)]
    Pending,
}

impl PlanStatus {
    /// The status in the word that most CLIs have for it; any other word is pending.
    pub fn of_word(word: Option<&str>) -> Self {
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Permission {
    /// The tool in question.
    pub tool_name: String,
    /// The call in question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<Id>,
    /// What was decided.
    pub decision: Decision,
    /// Why, in the CLI's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The request that callers can answer, in the log of a detached run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// What became of a question of permission.
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
    /// What only a newer version knows.
    #[serde(other)]
    Other,
}

/// Payload of `usage`: figures so far, not to be summed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UsageReport {
    /// What the run has used so far.
    pub usage: Usage,
    /// What it has cost so far in USD, if the CLI reports that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// Payload of `retry`: the CLI itself tries a request again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Retry {
    /// Which retry this is, from 1. On the wire it is `number`: the `attempt` of a log's entry is the
    /// run's.
    #[serde(rename = "number")]
    pub attempt: u32,
    /// How many the CLI makes at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// How long the CLI waits before it, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// What failed.
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
    /// When the limit resets, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<u64>,
    /// Which limit, such as `five_hour`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// How much of it is used, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization: Option<f64>,
}

/// Payload of `notice`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Notice {
    /// How much it matters.
    pub level: NoticeLevel,
    /// What there is to know.
    pub message: String,
    /// Where it comes from.
    pub source: NoticeSource,
}

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something is not as it should be, or what only a newer version knows.
    #[serde(other)]
    Warning,
}

/// Where a notice comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoticeSource {
    /// The CLI's standard output.
    Stdout,
    /// The CLI's standard error.
    Stderr,
    /// Teamster itself, or what only a newer version knows.
    #[serde(other)]
    Runtime,
}

/// Payload of `unknown`: nothing that a CLI prints is dropped silently.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Unknown {
    /// The line, always.
    #[serde(default = "RawJson::null")]
    pub native: RawJson,
}

/// Payload of `turn_end`: the CLI says that its turn is over. `done` still waits for the process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TurnEnd {
    /// Why the model stopped, in the CLI's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Whether the turn failed.
    pub is_error: bool,
    /// What the turn used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What the turn cost, in USD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// Payload of `error`: the fields of [`AgentError`]. Only final errors; an attempt that the CLI
/// repeats is a `retry`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ErrorEvent {
    /// What went wrong.
    #[serde(flatten)]
    pub error: AgentError,
}

/// Payload of `done`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Done {
    /// How the run ended.
    pub result: Box<RunResult>,
}
