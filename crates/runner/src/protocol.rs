//! What clients and runners say to each other: one JSON object a line, in both directions.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use teamster_core::{Id, Image, PermissionAnswer, PermissionMode, PermissionRequest, ToolKind};

use crate::{LiveStatus, RefusalCode};

/// What a client wants of a runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "command",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum Command {
    /// Say the number of the newest entry, now and whenever it changes. Many [`Reply::Position`].
    Follow,
    /// Stop the run; with `kill` at once, by force.
    Cancel {
        /// Without letting the CLI clean up.
        #[serde(default)]
        kill: bool,
    },
    /// The requests that wait for an answer. One [`Reply::Requests`].
    Requests,
    /// An answer to a request.
    Answer {
        /// Its id.
        request_id: String,
        /// The answer.
        answer: Answer,
    },
    /// What it is doing. One [`Reply::Status`].
    Status,
    /// To a session: a prompt, which begins a turn. One [`Reply::Turn`]; refused while a turn is in progress.
    Send {
        /// The prompt.
        prompt: String,
        /// Images that go with it.
        #[serde(default, skip_serializing)]
        images: Vec<Image>,
        /// Who speaks, for the log and for other clients.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// A key of the client's choice: the same prompt with the same key begins one turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// To a session: something more to the agent, in the turn in progress.
    Steer {
        /// The text.
        text: String,
        /// Who speaks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
    },
    /// To a session: end the turn in progress, and keep the session.
    Interrupt {
        /// Without letting the CLI clean up: its process is ended, and the next turn starts another.
        #[serde(default)]
        kill: bool,
    },
    /// To a session: go on in a new session of the provider, with an empty context.
    Clear,
    /// To a session: another model from the next turn on.
    SetModel {
        /// The model, by the CLI's own name.
        model: String,
    },
    /// To a session: another permission mode from the next turn on.
    SetPermission {
        /// The mode.
        mode: PermissionMode,
    },
    /// What only a newer version knows.
    #[serde(other)]
    Other,
}

/// An answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    tag = "decision",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum Answer {
    /// Allow it, this once.
    Allow,
    /// Allow it, and what is like it in this session.
    AllowAlways,
    /// Allow it with this input in the place of the agent's, or answer the question of an MCP server.
    AllowWith {
        /// The input.
        input: Value,
    },
    /// Deny it.
    Deny {
        /// Why, for the model.
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

/// A message of a runner to a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "reply",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum Reply {
    /// It is done.
    Done,
    /// The number of the newest entry of the log.
    Position {
        /// 0 if there is none.
        seq: u64,
    },
    /// The requests that wait.
    Requests {
        /// In the order in which they came.
        requests: Vec<PendingRequest>,
    },
    /// What the run or session is doing.
    Status {
        /// That.
        status: Box<LiveStatus>,
    },
    /// A turn has begun.
    Turn {
        /// The turn's id: that of the session, `.` and a number.
        run_id: String,
        /// The number of the entry with the prompt; those of the turn follow, up to the `done` with its id.
        seq: u64,
        /// It was begun before, by a prompt with the same key.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        known: bool,
    },
    /// It is not done.
    Refused {
        /// Why, as a word for programs.
        code: RefusalCode,
        /// Why.
        message: String,
    },
    /// What only a newer version knows.
    #[serde(other)]
    Other,
}

/// A request that waits for an answer: a tool that wants permission, or the question of an MCP server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PendingRequest {
    /// Its id: that of the run, `/`, and a number.
    pub request_id: String,
    /// The run.
    pub run_id: String,
    /// The tool, in the CLI's own name.
    pub tool_name: String,
    /// The call of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<Id>,
    /// What kind of tool it is.
    pub kind: ToolKind,
    /// What the tool is to do.
    pub input: Value,
    /// The CLI's own text about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The JSON Schema of the answer that an MCP server asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Whether an input can be given with the answer.
    pub takes_input: bool,
    /// Whether the reason of a denial reaches the model.
    #[serde(default)]
    pub takes_reason: bool,
    /// When it came, in milliseconds since the Unix epoch.
    pub asked_at: u64,
    /// When it is denied without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}

impl PendingRequest {
    /// A request that came now and waits without a limit of time.
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
