//! Drive coding-agent CLIs as subprocesses, with one typed stream of events for all of them.
//!
//! Pick a provider, start a run, read its events:
//!
//! ```no_run
//! use teamster::{AgentEvent, AgentRuntime, ExecuteParams, PermissionMode, RuntimeConfig};
//!
//! # async fn example() -> Result<(), teamster::AgentError> {
//! let runtime = teamster::create_cli_runtime("claude", RuntimeConfig::default())?;
//!
//! let params = ExecuteParams::new("What does this repository do?")
//!     .permission(PermissionMode::ReadOnly);
//!
//! let mut events = runtime.execute(params);
//! while let Some(event) = events.next().await {
//!     match event {
//!         AgentEvent::Text(text) => print!("{}", text.text),
//!         AgentEvent::ToolUse(tool) => println!("[{}]", tool.tool_name),
//!         AgentEvent::Done(done) => println!("\n{:?}", done.result.status),
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The stream never fails: every failure is an event, and the last event is always `done`.
//! [`EventStream`] is also a `futures_core::Stream`; dropping it stops the run and everything that the run started.
//!
//! [`create_session_runtime`] keeps a process for many prompts.
//! Chapters on events, stopping, sessions and leases are in [`concepts`].
//! What only the author of a provider needs is in `teamster_core::provider`.
//!
//! # Features
//!
//! | Feature | Adds | Module |
//! |---|---|---|
//! | `claude`, `cline`, `codex`, `copilot`, `gemini`, `kilo`, `kimi`, `opencode`, `pi`, `qwen` (on; together `all-providers`) | one agent each | |
//! | `acp` (on) | any other agent of the Agent Client Protocol, by its command | `acp` |
//! | `command` (on) | any program that prints text, by its command | `command` |
//! | `orchestrator` (on) | retry, fallback, limits and budgets | `orchestrator` |
//! | `embedded` | the agent whose model loop is in this process, without a CLI | `embedded` |
//! | `runner` | detached runs: find, follow, answer and cancel what `teamster run --detach` has started | `runner` |
//! | `host` | runs and sessions from their description (`api`), in processes of their own: worktree, history, locks, logs | `host` |
//! | `store` | a database of sessions and of the history of runs, on a PostgreSQL server with `postgres` | `store` |
//! | `usage` | tokens and cost, from what the CLIs leave on disk | `usage` |
//! | `loop` | the long-running agent loop and its supervisor | `agent_loop` |
//! | `mcp-files` (on with three of the providers) | MCP servers from the `mcpServers` JSON of users, changes of the CLIs' configuration files | `mcp` |
//! | `doctor` | which CLIs are on this machine and whether they can be used | `doctor` |
//! | `mcp-client` | starts MCP servers and calls their tools | `mcp_client` |
//! | `mcp-tools` | functions of this process as tools for its agents | `mcp_tools` |
//! | `acp-probe` | a check of agents of the Agent Client Protocol | `acp_probe` |
//! | `typed` | answers of runs as values of Rust types (`run`) | |
//! | `blocking` | runs and sessions from code that is not async | `blocking` |
//! | `schema` | JSON Schemas of the wire types | |
//! | `tracing` | spans and events of runs | |
#![warn(missing_docs)]

pub mod concepts;
mod reexports;

pub use teamster_core::{
    AbortHandle, AgentError, AgentEvent, AgentRuntime, AgentSession, AskPermission, BudgetKind,
    CancellationToken, Capabilities, ChangeKind, CliInfo, CliProvider, Container, ContainerEngine,
    ContextUse, CostSource, Decision, Diagnostics, Done, ErrorCode, ErrorDetail, ErrorEvent,
    ErrorKind, EventStream, ExecuteParams, FileChange, Id, Image, ImageSource, LogEntry,
    McpDelivery, McpServer, McpServerStatus, McpSupport, McpTool, McpTools, McpTransport, Message,
    ModelChoice, ModelUsage, Mount, NewerEvent, NotRetried, Notice, NoticeCode, NoticeLevel,
    NoticeSource, Offers, PermissionAnswer, PermissionChange, PermissionDenial, PermissionEvent,
    PermissionMode, PermissionPolicy, PermissionRequest, Plan, PlanEntry, PlanStatus, RateLimit,
    RawJson, Retract, Retry, RunResult, RunStatus, SessionCapabilities, SessionFuture,
    SessionOptions, SessionProvider, SessionRuntime, SessionStarted, SharedRuntime, SlashCommand,
    Stopping, SubAgent, SystemPrompt, SystemPromptSupport, Text, TextPiece, Thinking, Timeouts,
    ToolKind, ToolOutput, ToolResult, ToolStage, ToolUse, Turn, TurnEnd, Unknown, Usage,
    UsageReport,
};
#[cfg(feature = "typed")]
pub use teamster_core::{Answer, AnswerError, run};
pub use teamster_process::{EnvPolicy, RuntimeConfig};

pub use reexports::*;
#[cfg(feature = "host")]
pub use teamster_api as api;
#[cfg(feature = "blocking")]
pub use teamster_core::blocking;
#[cfg(feature = "host")]
pub use teamster_host as host;
#[cfg(feature = "loop")]
pub use teamster_loop as agent_loop;
#[cfg(feature = "mcp-client")]
pub use teamster_mcp_client as mcp_client;
#[cfg(feature = "mcp-tools")]
pub use teamster_mcp_tools as mcp_tools;
#[cfg(feature = "orchestrator")]
pub use teamster_orchestrator as orchestrator;
#[cfg(feature = "orchestrator")]
pub use teamster_orchestrator::execute_agent_run;
pub use teamster_providers::*;
#[cfg(feature = "runner")]
pub use teamster_runner as runner;
#[cfg(feature = "store")]
pub use teamster_store as store;
#[cfg(feature = "usage")]
pub use teamster_usage as usage;

/// Compiles the examples of the README.
#[cfg(all(doctest, repository))]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Compiles the examples of the page for users of the library.
#[cfg(all(
    doctest,
    repository,
    feature = "all-providers",
    feature = "blocking",
    feature = "orchestrator",
    feature = "typed",
    feature = "usage"
))]
#[doc = include_str!("../../../docs/library.md")]
struct LibraryPage;

/// Compiles the examples of the page on sessions.
#[cfg(all(doctest, repository, feature = "all-providers"))]
#[doc = include_str!("../../../docs/sessions.md")]
struct SessionsPage;

/// Compiles the examples of the page on the orchestrator.
#[cfg(all(doctest, repository, feature = "orchestrator"))]
#[doc = include_str!("../../../docs/orchestrator.md")]
struct OrchestratorPage;

/// Compiles the examples of the page on the Agent Client Protocol.
#[cfg(all(doctest, repository, feature = "acp"))]
#[doc = include_str!("../../../docs/acp.md")]
struct AcpPage;

/// Compiles the examples of the page on errors.
#[cfg(all(doctest, repository))]
#[doc = include_str!("../../../docs/errors.md")]
struct ErrorsPage;

/// Compiles the examples of the page on the agent loop.
#[cfg(all(doctest, repository, feature = "loop"))]
#[doc = include_str!("../../../docs/agent-loop.md")]
struct AgentLoopPage;

/// Compiles the examples in the READMEs of the published crates, and runs those that need no CLI.
#[cfg(all(
    doctest,
    repository,
    feature = "all-providers",
    feature = "acp",
    feature = "orchestrator"
))]
mod readmes {
    #[doc = include_str!("../README.md")]
    struct Facade;
    #[doc = include_str!("../../core/README.md")]
    struct Core;
    #[doc = include_str!("../../process/README.md")]
    struct Process;
    #[doc = include_str!("../../mcp-config/README.md")]
    struct Mcp;
    #[doc = include_str!("../../testkit/README.md")]
    struct Testkit;
    #[doc = include_str!("../../providers/README.md")]
    struct Providers;
    #[doc = include_str!("../../orchestrator/README.md")]
    struct Orchestrator;
    #[cfg(feature = "runner")]
    #[doc = include_str!("../../runner/README.md")]
    struct Runner;
    #[cfg(feature = "store")]
    #[doc = include_str!("../../store/README.md")]
    struct Store;
    #[cfg(feature = "usage")]
    #[doc = include_str!("../../usage/README.md")]
    struct Usage;
    #[cfg(feature = "loop")]
    #[doc = include_str!("../../loop/README.md")]
    struct Loop;
}
