//! Protocol between clients and runners: one JSON object a line, in both directions.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use teamster_core::{Id, Image, PermissionAnswer, PermissionMode, PermissionRequest, ToolKind};

use crate::{LiveStatus, RefusalCode};

/// Command of a client to a runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "command",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum Command {
    /// Send the number of the newest entry now and after each change. Replies: any number of
    /// [`Reply::Position`].
    Follow,
    /// Stop the run.
    Cancel {
        /// Stop by force, without letting the CLI clean up.
        #[serde(default)]
        kill: bool,
    },
    /// Return the pending requests. Reply: [`Reply::Requests`].
    Requests,
    /// Answer a request.
    Answer {
        /// Id of the request.
        request_id: String,
        /// The answer.
        answer: Answer,
    },
    /// Return the status. Reply: [`Reply::Status`].
    Status,
    /// Begin a turn of a session. Reply: [`Reply::Turn`]. Refused while a turn is in progress.
    Send {
        /// The prompt.
        prompt: String,
        /// Images of the prompt.
        #[serde(default, skip_serializing)]
        images: Vec<Image>,
        /// Name of the sender, for the log and other clients.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// Idempotency key, chosen by the client: the same prompt with the same key begins only one turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// Send text to the agent during the turn in progress of a session.
    Steer {
        /// The text.
        text: String,
        /// Name of the sender.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
    },
    /// Interrupt the turn in progress and keep the session.
    Interrupt {
        /// Interrupt by force: the CLI's process is killed, and the next turn starts another.
        #[serde(default)]
        kill: bool,
    },
    /// Continue a session in a new session of the provider, with an empty context.
    Clear,
    /// Set the model of a session from the next turn on.
    SetModel {
        /// The model, as the CLI names it.
        model: String,
    },
    /// Set the permission mode of a session from the next turn on.
    SetPermission {
        /// The mode.
        mode: PermissionMode,
    },
    /// Value of a later version.
    #[serde(other)]
    Other,
}

/// Answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    tag = "decision",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum Answer {
    /// Allow this request once.
    Allow,
    /// Allow this request and similar ones in this session.
    AllowAlways,
    /// Allow the request with this input in place of the agent's, or answer the question of an MCP server.
    AllowWith {
        /// The input.
        input: Value,
    },
    /// Deny the request.
    Deny {
        /// Reason, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

impl From<PermissionAnswer> for Answer {
    fn from(answer: PermissionAnswer) -> Self {
        match answer {
            PermissionAnswer::Allow => Self::Allow,
            PermissionAnswer::AllowAlways => Self::AllowAlways,
            PermissionAnswer::AllowWith(input) => Self::AllowWith { input },
            PermissionAnswer::Deny(reason) => Self::Deny { reason },
            _ => Self::Deny { reason: None },
        }
    }
}

impl From<PendingRequest> for PermissionRequest {
    fn from(pending: PendingRequest) -> Self {
        let mut request = Self::new(0, pending.tool_name, pending.kind, pending.input);
        request.tool_id = pending.tool_id;
        request.message = pending.message;
        request.schema = pending.schema;
        request.takes_input = pending.takes_input;
        request
    }
}

impl From<Answer> for PermissionAnswer {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Allow => Self::Allow,
            Answer::AllowAlways => Self::AllowAlways,
            Answer::AllowWith { input } => Self::AllowWith(input),
            Answer::Deny { reason } => Self::Deny(reason),
        }
    }
}

/// Reply of a runner to a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "reply",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum Reply {
    /// The command was done.
    Done,
    /// Position of the log.
    Position {
        /// Number of the newest entry; 0 if there is none.
        seq: u64,
    },
    /// Pending requests.
    Requests {
        /// Pending requests, oldest first.
        requests: Vec<PendingRequest>,
    },
    /// Status of the run or session.
    Status {
        /// The status.
        status: Box<LiveStatus>,
    },
    /// A turn has begun.
    Turn {
        /// Id of the turn: `SESSION_ID.NUMBER`.
        run_id: String,
        /// Number of the entry with the prompt. The entries of the turn follow, up to the `done` with its id.
        seq: u64,
        /// The turn was begun by an earlier prompt with the same key.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        known: bool,
    },
    /// The command was refused.
    Refused {
        /// Reason, for programs.
        code: RefusalCode,
        /// Reason, for people.
        message: String,
    },
    /// Value of a later version.
    #[serde(other)]
    Other,
}

/// Request that waits for an answer: permission for a tool, or the question of an MCP server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PendingRequest {
    /// Id of the request: `RUN_ID/NUMBER`.
    pub request_id: String,
    /// Id of the run.
    pub run_id: String,
    /// The tool, as the CLI names it.
    pub tool_name: String,
    /// Id of the tool call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<Id>,
    /// Kind of the tool.
    pub kind: ToolKind,
    /// Input of the tool.
    pub input: Value,
    /// The CLI's own text about the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The JSON Schema of the answer that an MCP server asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// An answer can have an input.
    pub takes_input: bool,
    /// The reason of a denial reaches the model.
    #[serde(default)]
    pub takes_reason: bool,
    /// Time of the request, in milliseconds since the Unix epoch.
    pub asked_at: u64,
    /// Time at which the request is denied without an answer, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}

impl PendingRequest {
    /// Creates a request that arrives now and has no time limit.
    pub fn new(
        request_id: impl Into<String>,
        run_id: impl Into<String>,
        request: PermissionRequest,
    ) -> Self {
        Self {
            request_id: request_id.into(),
            run_id: run_id.into(),
            tool_name: request.tool_name,
            tool_id: request.tool_id,
            kind: request.kind,
            input: request.input,
            message: request.message,
            schema: request.schema,
            takes_input: request.takes_input,
            takes_reason: false,
            asked_at: teamster_core::time::epoch_ms(),
            expires_at: None,
        }
    }
}
