//! Protocol between clients and runners: one JSON object a line, in both directions.

use serde::{Deserialize, Serialize};
use teamster_core::{Image, PermissionMode};

use crate::{Answer, LiveStatus, PendingRequest, TraceContext};

/// Command of a client to a runner.
#[serde_with::skip_serializing_none]
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
        #[serde(default, with = "crate::image", skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
        /// Name of the sender, for the log and other clients.
        from: Option<String>,
        /// Idempotency key, chosen by the client: the same prompt with the same key begins only one turn.
        key: Option<String>,
        /// Place of the turn in a trace. Default: that of its session.
        trace: Option<TraceContext>,
    },
    /// Send text to the agent during the turn in progress of a session.
    Steer {
        /// The text.
        text: String,
        /// Name of the sender.
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

/// Reason of a refused command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum RefusalCode {
    /// The request was answered before, or has expired.
    AlreadyAnswered,
    /// No request has this id.
    UnknownRequest,
    /// The answer does not fit the request.
    InvalidAnswer,
    /// The runner does not support this command for this run.
    Unsupported,
    /// A turn of the session is in progress. Wait for its end before the next prompt.
    Busy,
    /// No turn is in progress.
    NoTurn,
    /// The session is ending.
    Ending,
    /// The budget of the session in USD, tokens or turns is spent.
    OverBudget,
    /// The time budget of the session is spent.
    OutOfTime,
    /// The key was used with another prompt.
    KeyReused,
    /// Value of a later version.
    #[serde(other)]
    Other,
}
