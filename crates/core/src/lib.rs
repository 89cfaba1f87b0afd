//! The vocabulary of `teamster`: what a coding agent does, as one typed stream of events.
//!
//! This crate has no I/O and no processes in it.
//! It holds the types that providers, the engine, the facade and the program share:
//!
//! - [`AgentEvent`]: what happens in a run, in a wire form that is the same for every CLI;
//!   [`LogEntry`]: the same in the order and at the time it happened;
//! - [`ExecuteParams`]: what to run; [`Capabilities`]: what a provider can honour of it;
//! - [`RunResult`], [`Usage`], [`AgentError`]: how it ended, what it used, what went wrong;
//! - [`AgentRuntime`] and [`EventStream`]: how a caller runs an agent;
//! - [`SessionRuntime`] and [`AgentSession`]: a process that is kept for many turns;
//! - [`CliProvider`] and [`SessionProvider`]: how one CLI is described.
//!
//! The root is what an application uses. What only the author of a provider needs is in [`provider`], and what
//! every crate needs once (a lock that outlives a panic, times in milliseconds, shortened text) in [`sync`],
//! [`time`] and [`text`].
//!
//! # The grammar of a stream
//!
//! 1. There is exactly one [`AgentEvent::Done`], and it is always last.
//! 2. A `tool_result` follows the `tool_use` with the same id; an id occurs once as `tool_use` and
//!    at most once as `tool_result`. Tool uses left open are listed in the result.
//! 3. The `text` events of the main agent that were not retracted, concatenated, are
//!    [`RunResult::text`].
//! 4. Events come as they arrive.
//!
//! The first three hold by construction ([`RunAssembler`](provider::RunAssembler) lets nothing else through) and are
//! checked again by [`provider::grammar::Checker`] in tests and in replay.
#![warn(missing_docs)]

mod capabilities;
mod cli_info;
mod error;
mod event;
mod ledger;
mod log;
mod mcp;
mod names;
mod params;
pub mod provider;
mod raw_json;
mod result;
mod runtime;
mod session;
mod session_provider;
mod setters;
mod stream;
pub mod sync;
pub mod text;
pub mod time;
mod usage;

pub use capabilities::{Capabilities, SystemPromptSupport};
pub use cli_info::CliInfo;
pub use error::{AgentError, BudgetKind, ErrorCode, ErrorDetail, ErrorKind, NotRetried};
pub use event::{
    AgentEvent, ChangeKind, Decision, Done, ErrorEvent, FileChange, Id, McpServerStatus, McpTool,
    NewerEvent, Notice, NoticeLevel, NoticeSource, Permission, Plan, PlanEntry, PlanStatus,
    RateLimit, Retract, Retry, Session, Text, Thinking, ToolKind, ToolResult, ToolUse, TurnEnd,
    Unknown, UsageReport,
};
pub use ledger::{TextLedger, ToolLedger, UsageLedger};
pub use log::LogEntry;
pub use mcp::{McpDelivery, McpServer, McpSupport, McpTools, McpTransport};
pub use params::{
    ExecuteParams, Image, ImageSource, PermissionMode, PromptDelivery, SystemPrompt, Timeouts,
};
pub use raw_json::RawJson;
pub use result::{
    CostSource, Diagnostics, Message, PermissionDenial, RunResult, RunStatus, TextPiece,
};
pub use runtime::{AgentRuntime, CliProvider, SharedRuntime};
pub use session::{
    AgentSession, AskPermission, PermissionAnswer, PermissionPolicy, PermissionRequest,
    SessionCapabilities, SessionFuture, SessionOptions, SessionRuntime, Turn,
};
pub use session_provider::SessionProvider;
pub use setters::IntoOption;
pub use stream::{AbortHandle, EventStream};
pub use tokio_util::sync::CancellationToken;
pub use usage::{ModelUsage, Usage};
