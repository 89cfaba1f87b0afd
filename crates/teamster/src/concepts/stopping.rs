//! Stopping a run, and the processes that are alive afterwards.
//!
//! # Ways to stop
//!
//! | Call | Effect |
//! |---|---|
//! | [`EventStream::abort`](crate::EventStream::abort), [`AbortHandle::abort`](crate::AbortHandle::abort) | stops the run; the stream continues to its `done` with status `aborted` |
//! | cancel [`ExecuteParams::cancel`](crate::ExecuteParams) | the same, for every run that shares the token |
//! | drop the stream | stops the run in the same way, without a reader |
//! | [`AbortHandle::kill`](crate::AbortHandle::kill) | SIGKILL at once |
//! | a limit of [`Timeouts`](crate::Timeouts) | the same as `abort`; the status is `timed_out` |
//!
//! A run that was aborted before its stream was polled is never started.
//!
//! ```
//! use std::time::Duration;
//! use teamster::{AgentRuntime, ExecuteParams, RunStatus};
//! use teamster_testkit::mock_runtime::{MockRuntime, Script};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! # tokio::time::pause();
//! let script = Script::new().text("Working").wait_for_abort().completed();
//! let runtime = MockRuntime::new("claude").run(script);
//!
//! let events = runtime.execute(ExecuteParams::new("Fix the failing test"));
//! let handle = events.abort_handle();
//! tokio::spawn(async move {
//!     tokio::time::sleep(Duration::from_secs(60)).await;
//!     handle.abort();
//! });
//! let result = events.result().await;
//! assert_eq!(result.status, RunStatus::Aborted);
//! assert_eq!(result.text, "Working");
//! # }
//! ```
//!
//! # The ladder
//!
//! 1. The provider's own first step, such as SIGINT to the CLI, where that lets the CLI finish cleanly.
//! 2. SIGTERM to the CLI and to all its descendants.
//! 3. [`term_grace`](crate::RuntimeConfig::term_grace) after the first signal, SIGKILL to what is left.
//!
//! Output is read during the grace, so what the CLI prints last is in the stream.
//!
//! # What is alive after `done`
//!
//! No process of the run is alive, including tools that left its process session by `setsid` (Linux; elsewhere, the
//! process group only).
//! Set [`keep_background`](crate::ExecuteParams::keep_background) to spare background commands of a run that
//! ended by itself.
//!
//! # When your own process is killed
//!
//! [`die_with_parent`](crate::RuntimeConfig::die_with_parent) makes the kernel end the CLI with you (Linux).
//! Without it, `teamster_process::leftovers` finds the processes of killed runs afterwards.
