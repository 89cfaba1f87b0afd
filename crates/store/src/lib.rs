//! Which session belongs to which conversation, and the history of runs.
//!
//! A [`Store`] is a file of SQLite, a server of PostgreSQL, or memory; the same code and the same tables
//! for all of them. Several processes may use the same one.
//!
//! ```
//! use teamster_store::{Conversation, NewRun, NewSession, RunFilter, RunState, Store};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), teamster_store::StoreError> {
//! let store = Store::open("sqlite::memory:").await?;
//!
//! // The session of a conversation, to go on with it later.
//! let key = "slack:U42".parse::<Conversation>()?.with("claude");
//! let session = NewSession::new("0198c7a2").working_directory("/work/project");
//! store.put_session(&key, &session).await?;
//! let found = store.session(&key).await?.expect("it is kept for 7 days");
//! assert_eq!(found.session_id, "0198c7a2");
//!
//! // A run that began.
//! store.begin_run(&NewRun::new("run-1", "claude", "What does this crate do?")).await?;
//! let runs = store.runs(&RunFilter::default()).await?;
//! assert_eq!(runs[0].status, RunState::Running);
//! # Ok(()) }
//! ```
//!
//! Runs of [`teamster_orchestrator`] write all of that themselves, if they have a [`Recorder`]:
//!
//! ```
//! use std::sync::Arc;
//! use teamster_core::{RunResult, RunStatus};
//! use teamster_orchestrator::{Accepted, Outcome, RunObserver};
//! use teamster_store::{Recorder, RunState, Store};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), teamster_store::StoreError> {
//! let store = Store::open("sqlite::memory:").await?;
//! let recorder = Recorder::new(store.clone()).conversation("slack:U42".parse()?);
//!
//! // What the orchestrator does with the observer of a request.
//! let (run_id, session_id) = ("run-1".into(), "0198c7a2".into());
//! let params = teamster_core::ExecuteParams::new("What does this crate do?");
//! recorder.accepted(Accepted::new(&run_id, "claude", &params, 1_700_000_000_000)).await;
//! recorder.session(&run_id, "claude", &session_id).await;
//! let completed = RunResult::default().status(RunStatus::Completed);
//! recorder.ended(&Outcome::new(run_id, "claude", completed)).await;
//!
//! assert_eq!(recorder.take_errors(), []);
//! let run = store.run("run").await?.expect("what its id begins with will do");
//! assert_eq!((run.status, run.session_id.as_deref()), (RunState::Success, Some("0198c7a2")));
//! # Ok(()) }
//! ```
//!
//! # Sessions
//!
//! A session is found by a [`Conversation`] (channel, user, thread) and a provider, because the session of
//! one CLI means nothing to another: when a run falls back, each provider keeps its own. It is
//! forgotten 7 days after its last use ([`Store::session_ttl`]). CLIs keep their sessions by
//! directory, so [`SessionRecord::working_directory`] is where it can be resumed.
//!
//! # Runs
//!
//! A run is one row. Of the prompt there is only a hash; of the answer nothing.
//!
//! A killed process leaves the store consistent. Every write is one statement, so a row is as it was or
//! as it is to be. A run whose process is gone reads as [`RunState::Interrupted`]; where the process
//! cannot be looked at, because it is on another machine, it does so when it was not heard of for
//! [`LOST_AFTER`]. No clean-up is needed. A run that is heard of again, because its machine only slept, is
//! running again.
//!
//! # What is shared
//!
//! A file of SQLite is for processes of one machine: its locks do not work over most network file
//! systems. Between machines it is a server of PostgreSQL, in a schema of its own if you like; their
//! clocks should agree within some seconds. Tables and indexes have names that begin with `teamster_`.
//!
//! A program that uses sqlx's `Any` itself has to install the drivers by
//! `sqlx::any::install_default_drivers`, as this crate does: with others it panics.
#![warn(missing_docs)]

mod column;
mod error;
mod existing;
mod history;
mod key;
mod location;
mod open;
mod process;
mod recorder;
mod run;
mod session;
mod store;

pub use column::check_run_id;
pub use error::StoreError;
pub use key::{Conversation, SessionKey};
pub use recorder::Recorder;
pub use run::{
    HEARTBEAT, LOST_AFTER, NewRun, RunCursor, RunFilter, RunRecord, RunState, Word, prompt_hash,
};
pub use session::{NewSession, SessionFilter, SessionRecord};
pub use store::{Clock, DEFAULT_SESSION_TTL, Store};
