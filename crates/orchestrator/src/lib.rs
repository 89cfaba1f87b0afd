//! Runs of coding agents with retries, fallbacks, concurrency limits and budgets.
//!
//! A [runtime](teamster_core::AgentRuntime) executes one run with one agent. An [`Orchestrator`] makes as many
//! attempts as a run needs, with one or several agents. It returns them as one stream of [`RunEvent`]s, or
//! [as the events of a plain run](Orchestrator::execute):
//!
//! - The kind of an error decides what follows a failure. [`Action::for_kind`] is the table, and [`RetryPolicy`]
//!   overrides it.
//! - **Nothing is done twice**: after a tool that can change things was used, the prompt is never sent again.
//!   Instead the session is resumed, or the run ends ([`SideEffects`]).
//! - [`Limits`] bound the number of concurrent attempts. Waiting queues take turns. A provider that throttles gets
//!   no attempts from any run until it resets.
//! - A [`Budget`] bounds tokens, USD, time and turns of a run, and a [`SharedBudget`] tokens or USD of many.
//! - Every active run is listed with its phase, and can be aborted by its id.
//!
//! ```
//! use std::sync::Arc;
//!
//! use teamster_core::{AgentError, ErrorCode, ErrorKind, ExecuteParams};
//! use teamster_orchestrator::{Candidate, Orchestrator, OrchestratorConfig, RunRequest};
//! # use teamster_testkit::mock_runtime::{MockRuntime, Script};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! # let no_login = AgentError::new(ErrorCode::CliError, ErrorKind::Auth, "not logged in");
//! # let claude = Arc::new(MockRuntime::new("claude").run(Script::new().failed(no_login)));
//! # let codex = Arc::new(MockRuntime::new("codex").run(Script::new().text("Done.").completed()));
//! let orchestrator = Orchestrator::new(OrchestratorConfig::default())?;
//! let params = ExecuteParams::new("Fix the failing test");
//! let other = Candidate::for_other_provider(codex, &params)?;
//! let run = orchestrator.start(RunRequest::new(claude, params).fallback(other));
//!
//! let outcome = run.outcome().await;
//! assert_eq!(outcome.answer(), Some("Done."));
//! assert_eq!(outcome.provider, "codex");
//! assert_eq!(outcome.attempts.len(), 2);
//! # Ok::<(), AgentError>(())
//! # }).unwrap();
//! ```
//!
//! # Tracing
//!
//! With the feature `tracing` a run is a span `orchestrated` (`run`: its id) of the target
//! `teamster::orchestrator`, around the spans of its attempts' processes. It has the events `retry` and `fallback`
//! (`attempt`, `provider`, `reason`, `delay_ms` of the next attempt) and `hold` (`group`, `wait`).
#![warn(missing_docs)]

mod account;
mod agent_run;
mod drive;
mod estimate;
mod events;
mod log;
mod merge;
mod observer;
mod orchestrator;
mod plan;
mod policy;
mod registry;
mod request;
mod run_log;
mod runtime;
mod session_turns;
mod shared_budget;
mod shared_holds;

pub use agent_run::execute_agent_run;
pub use observer::{Accepted, RunObserver};
pub use orchestrator::{Clock, Orchestrator, OrchestratorConfig, Run};
pub use policy::{Action, AfterSideEffects, RetryPolicy, SideEffectRule, SideEffects};
pub use registry::{ActiveRun, Held, Limits, RunPhase};
pub use request::{Budget, Candidate, Closed, Closing, OnEvent, RunRequest};
pub use run_log::RunLog;
pub use runtime::OrchestratedRuntime;
pub use session_turns::SessionTurns;
pub use shared_budget::SharedBudget;
pub use shared_holds::{Permit, SharedHolds};
pub use teamster_core::{Attempt, LifecycleEntry, Next, Outcome, RunEvent, RunLogEntry};
pub use teamster_prices::{PriceFileError, PriceList};
