//! Core types of `teamster`: the activity of a coding agent as one typed stream of events.
//!
//! This crate does no I/O and starts no processes.
//! It holds the types that providers, the engine, the facade and the program share:
//!
//! - [`AgentEvent`]: an event of a run, in a wire format that is the same for every CLI;
//!   [`LogEntry`]: an event with its place and time in the log; [`RunLogEntry`]: that or an event of the run itself;
//! - [`ExecuteParams`]: the parameters of a run; [`Capabilities`]: the parameters that a provider supports;
//! - [`RunResult`], [`Usage`], [`AgentError`]: the outcome of a run, its usage and its errors;
//! - [`AgentRuntime`] and [`EventStream`]: running an agent; with the feature `typed`, `run` returns its answer as a
//!   value of a Rust type, and with `blocking`, code that is not async waits for it;
//! - [`SessionRuntime`] and [`AgentSession`]: live sessions, whose process is kept between turns;
//! - [`CliProvider`] and [`SessionProvider`]: the description of one CLI.
//!
//! Applications use the items at the root. The module [`provider`] is for authors of providers.
//! [`sync`], [`time`] and [`text`] have utilities for all crates: locking a poisoned mutex, times in
//! milliseconds, shortened text.
//!
//! # The grammar of a stream
//!
//! 1. There is exactly one [`AgentEvent::Done`], and it is always last.
//! 2. A `tool_result` follows the `tool_use` with the same id; an id occurs once as `tool_use` and
//!    at most once as `tool_result`. Tool uses left open are listed in the result.
//! 3. The `text` events of the main agent that were not retracted, concatenated, are
//!    [`RunResult::text`].
//! 4. Events are emitted as they arrive.
//!
//! [`RunAssembler`](provider::RunAssembler) enforces the first three rules.
//! [`provider::grammar::Checker`] verifies them in tests and in replay.
#![warn(missing_docs)]

mod abort;
#[cfg(feature = "typed")]
mod answer;
#[cfg(feature = "blocking")]
pub mod blocking;
mod capabilities;
mod cli_info;
mod constants;
mod container;
mod debug;
mod error;
mod event;
mod image;
mod ledger;
mod log;
mod mcp;
mod names;
mod parameters;
mod params;
pub mod provider;
mod raw_json;
mod readable_json;
mod result;
mod runtime;
mod session;
mod session_provider;
mod setters;
mod stream;
mod sub_agent;
#[doc(hidden)]
pub mod sync;
#[doc(hidden)]
pub mod text;
#[doc(hidden)]
pub mod time;
mod usage;
mod workspace;

pub use abort::{AbortHandle, Stopping};
#[cfg(feature = "typed")]
pub use answer::{Answer, AnswerError, run};
pub use capabilities::{Capabilities, SystemPromptSupport};
pub use cli_info::CliInfo;
pub use container::{Container, ContainerEngine, Mount};
pub use error::{AgentError, BudgetKind, ErrorCode, ErrorDetail, ErrorKind, NotRetried};
pub use event::{
    AgentEvent, ChangeKind, ContextUse, Decision, Done, ErrorEvent, FileChange, Id,
    McpServerStatus, McpTool, ModelChoice, NewerEvent, Notice, NoticeCode, NoticeLevel,
    NoticeSource, Offers, PermissionChange, PermissionEvent, Plan, PlanEntry, PlanStatus,
    RateLimit, Retract, Retry, SessionStarted, SlashCommand, Text, Thinking, ToolKind, ToolOutput,
    ToolResult, ToolUse, TurnEnd, Unknown, UsageReport,
};
pub use image::{Image, ImageSource};
pub use ledger::{TextLedger, ToolLedger, UsageLedger};
pub use log::{Attempt, LifecycleEntry, LogEntry, LogLine, Next, Outcome, RunEvent, RunLogEntry};
pub use mcp::{McpDelivery, McpServer, McpSupport, McpTools, McpTransport};
pub use params::{ExecuteParams, PermissionMode, SystemPrompt, Timeouts};
pub use raw_json::RawJson;
pub use result::{
    CostSource, Diagnostics, Message, PermissionDenial, RunResult, RunStatus, TextPiece,
};
pub use runtime::{AgentRuntime, CliProvider, SharedRuntime};
pub use session::{
    AgentSession, AskPermission, PermissionAnswer, PermissionPolicy, PermissionRequest,
    SessionCapabilities, SessionFuture, SessionOptions, SessionRuntime, ToolStage, Turn,
};
pub use session_provider::SessionProvider;
pub use setters::IntoOption;
pub use stream::EventStream;
pub use sub_agent::SubAgent;
pub use tokio_util::sync::CancellationToken;
pub use usage::{ModelUsage, Usage};
pub use workspace::{WorkspaceKind, WorkspaceResult};
