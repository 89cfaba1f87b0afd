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
//! - [`CliProvider`] and [`Decoder`]: how one CLI is described;
//! - [`SessionRuntime`] and [`AgentSession`]: a process that is kept for many turns;
//!   [`SessionProvider`] and [`SessionProtocol`]: how one CLI does that;
//! - [`RunAssembler`]: the pure code between a decoder and the stream, which every live run,
//!   replay, test and benchmark goes through.
//!
//! # The grammar of a stream
//!
//! 1. There is exactly one [`AgentEvent::Done`], and it is last, whatever happens.
//! 2. A `tool_result` follows the `tool_use` with the same id; an id occurs once as `tool_use` and
//!    at most once as `tool_result`. Tool uses left open are listed in the result.
//! 3. The `text` events of the main agent that were not retracted, concatenated, are
//!    [`RunResult::text`].
//! 4. Events come as they arrive.
//!
//! The first three hold by construction ([`RunAssembler`] lets nothing else through) and are
//! checked again by [`grammar::Checker`] in tests and in replay.
#![warn(missing_docs)]

mod args;
mod assemble;
mod capabilities;
mod check;
mod classify;
mod cli_info;
mod content;
mod decoder;
mod error;
mod event;
pub mod grammar;
pub mod json_line;
mod ledger;
mod log;
mod mcp;
mod names;
mod params;
mod raw_json;
mod result;
mod runtime;
mod secrets;
mod session;
mod setters;
mod stream;
pub mod surrogates;
pub mod sync;
mod text;
pub mod time;
mod usage;

pub use args::Args;
pub use assemble::{Phase, RunAssembler};
pub use capabilities::{Capabilities, SystemPromptSupport};
pub use check::is_uuid;
pub use cli_info::{
    CliInfo, CredentialFile, Credentials, FileLocation, LoopContext, LoopSettings, LoopSupport,
    Sign,
};
pub use content::{mcp_content, media_placeholder};
pub use decoder::{
    Activity, Decoder, Events, Exit, OtherRecordFiles, RecordFiles, RunSummary, Stop,
};
pub use error::{AgentError, BudgetKind, ErrorCode, ErrorDetail, ErrorKind, NotRetried};
pub use event::{
    AgentEvent, ChangeKind, Decision, Done, ErrorEvent, FileChange, Id, McpServerStatus, McpTool,
    Notice, NoticeLevel, NoticeSource, Permission, Plan, PlanEntry, PlanStatus, RateLimit, Retract,
    Retry, Session, Text, Thinking, ToolKind, ToolResult, ToolUse, TurnEnd, Unknown, UsageReport,
};
pub use ledger::{TextLedger, ToolLedger};
pub use log::LogEntry;
pub use mcp::{
    MCP_VARIABLES, McpDelivery, McpServer, McpSupport, McpTools, McpTransport, mcp_variable,
    without_credentials,
};
pub use params::{
    ExecuteParams, Image, ImageSource, PermissionMode, PromptDelivery, SystemPrompt, Timeouts,
};
pub use raw_json::RawJson;
pub use result::{
    CostSource, Diagnostics, Message, PermissionDenial, RunResult, RunStatus, TextPiece,
};
pub use runtime::{
    AgentRuntime, CliProvider, ConfigEdit, ConfigFormat, ConfigPlace, ConfigTable, EventsOn,
    FilePlace, Launch, PrivateFile, PrivateHome, RUN_ID_VARIABLE, SharedRuntime, Signal, Stdin,
    StopStep,
};
pub use secrets::Secrets;
pub use session::{
    AgentSession, AskPermission, Exchange, Order, OrderId, PermissionAnswer, PermissionPolicy,
    PermissionRequest, SessionAssembler, SessionCapabilities, SessionFuture, SessionOptions,
    SessionProtocol, SessionProvider, SessionRuntime, Turn,
};
pub use setters::IntoOption;
pub use stream::{AbortHandle, EventStream};
pub use text::{excerpt, is_bidi_control, one_line, tail, without_colors};
pub use tokio_util::sync::CancellationToken;
pub use usage::{ModelUsage, Usage};
