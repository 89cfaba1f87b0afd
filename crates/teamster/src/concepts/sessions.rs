//! Sessions: one process, many turns.
//!
//! Starting an agent's CLI costs time at each run, with MCP servers even more.
//! A session keeps the process, and each turn is a stream with the [grammar](super::events) of a run: its own
//! text, tools, usage and one `done`.
//!
//! ```
//! use teamster::{SessionOptions, SessionRuntime, Turn};
//! use teamster_testkit::mock_runtime::{MockSessions, Script};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), teamster::AgentError> {
//! // In an application: teamster::create_session_runtime("claude", RuntimeConfig::default())?
//! let runtime = MockSessions::new("claude")
//!     .turn(Script::new().session("s-1").text("Two.").completed())
//!     .turn(Script::new().text("Fixed.").completed());
//!
//! let session = runtime.open(SessionOptions::default())?;
//! let first = session.send(Turn::new("How many tests fail?")).await;
//! let second = session.send(Turn::new("Fix them")).await;
//! assert_eq!(first.answer(), Some("Two."));
//! assert_eq!(second.answer(), Some("Fixed."));
//! session.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Turns
//!
//! - [`send`](crate::AgentSession::send) starts nothing before its stream is polled.
//! - Turns of one session run in the order in which they are first polled; a second one waits.
//! - Aborting or dropping a turn's stream interrupts the turn and keeps the process. If the CLI does not obey
//!   within [`interrupt_grace`](crate::RuntimeConfig::interrupt_grace), its process is stopped.
//! - [`steer`](crate::AgentSession::steer) sends a message to the turn in progress, where the CLI can.
//!
//! # The process
//!
//! The first turn starts the process.
//! If it ends, the turn in progress ends with an error; the next turn starts another, resumes the session and
//! reports it in a [`Notice`](crate::AgentEvent::Notice).
//! [`SessionOptions::idle`](crate::SessionOptions) ends a process that is not used, and
//! [`close`](crate::AgentSession::close) ends it now.
//! Dropping the session ends it after the last of its streams.
//!
//! # Permissions
//!
//! A CLI that asks whether a tool may run is answered by
//! [`PermissionPolicy`](crate::PermissionPolicy): deny (the default), allow, a function, or an async function
//! that asks a person.
//! No limit of time runs while an answer is awaited.
//!
//! # What differs between agents
//!
//! [`SessionCapabilities`](crate::SessionCapabilities) lists what a provider's sessions can do; a call that
//! they cannot honour is an error, never ignored.
