//! Runs of coding agents that do not end with the first failure.
//!
//! A [runtime](teamster_core::AgentRuntime) makes one run with one agent. An [`Orchestrator`] makes as many
//! attempts as a run needs, with one or several agents, and returns them as one stream of [`RunEvent`]s, or
//! [as the events of a plain run](Orchestrator::execute):
//!
//! - what follows a failure is decided by the kind of its error ([`Action::for_kind`] is the table,
//!   [`RetryPolicy`] changes it);
//! - **nothing is done twice**: once a tool has been used that can change things, the prompt is never sent
//!   again; the session is resumed, or the run ends ([`SideEffects`]);
//! - so many attempts at once and no more, in turns between those who wait ([`Limits`]); a provider that
//!   throttles is left alone by all until it resets;
//! - a [`Budget`] of tokens, USD, time and turns;
//! - every active run is known, with its phase, and can be aborted by its id.
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
//! let run = orchestrator.run(RunRequest::new(claude, params).fallback(other));
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
//! `teamster::orchestrator`, around the spans of its attempts' processes, with the events `retry` and `fallback`
//! (`attempt`, `provider`, `reason`, `delay_ms`: what follows) and `hold` (`group`, `wait`).
#![warn(missing_docs)]

mod account;
mod drive;
mod event;
mod events;
mod log;
mod merge;
mod observer;
mod orchestrator;
mod outcome;
mod plan;
mod policy;
mod registry;
mod request;
mod run_log;
mod runtime;
mod session_turns;

pub use event::{Next, RunEvent};
pub use log::{LifecycleEntry, RunLogEntry};
pub use observer::{Accepted, Observed, RunObserver};
pub use orchestrator::{Clock, Orchestrator, OrchestratorConfig, Run};
pub use outcome::{Attempt, Outcome};
pub use policy::{Action, AfterSideEffects, RetryPolicy, SideEffectRule, SideEffects};
pub use registry::{ActiveRun, Held, Limits, RunPhase};
pub use request::{Budget, Candidate, OnEvent, RunRequest};
pub use run_log::RunLog;
pub use runtime::OrchestratedRuntime;
pub use session_turns::SessionTurns;
