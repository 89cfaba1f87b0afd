//! Sessions by conversation, and the history of runs.
//!
//! A [`Store`] is an SQLite file, a PostgreSQL server (feature `postgres`), or memory, with the same code and tables for
//! each. Several processes may use the same store.
//!
//! ```
//! use teamster_store::{Conversation, NewRun, NewSession, RunFilter, RunState, Store};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), teamster_store::StoreError> {
//! let store = Store::open("sqlite::memory:").await?;
//!
//! // The session of a conversation, to resume it later.
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
//! // The orchestrator calls the observer of a request like this.
//! let (run_id, session_id) = ("run-1".into(), "0198c7a2".into());
//! let params = teamster_core::ExecuteParams::new("What does this crate do?");
//! recorder.accepted(Accepted::new(&run_id, "claude", &params).at_ms(1_700_000_000_000)).await;
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
//! A session is found by a [`Conversation`] (channel, user, thread) and a provider, because one CLI cannot resume the
//! session of another. When a run falls back, each provider keeps its own session. A session expires 7 days after its
//! last use ([`Store::session_ttl`]). CLIs keep their sessions by directory, so a session can be resumed only in its
//! [`SessionRecord::working_directory`].
//!
//! Two first messages of a conversation at once must not begin two sessions. [`Store::session_or_lock`] returns the
//! session, or a lock for the caller that begins it; others wait until that session is known. A [`Recorder`] with the
//! locks ([`Recorder::session_locks`]) releases them then, and at the latest at the end of the run. The lock of a killed
//! process is free at once for processes of the same machine, for others after [`LOST_AFTER`].
//!
//! # Runs
//!
//! A run is one row. The row has a hash of the prompt, and no text of the answer.
//!
//! A killed process leaves the store consistent: every write is one statement, so a row has either its old or its new
//! content. A run whose process is gone reads as [`RunState::Interrupted`]. If the process cannot be checked because it
//! is on another machine, the run reads so once its last heartbeat is older than [`LOST_AFTER`]. No clean-up is needed.
//! If heartbeats resume, because the machine only slept, the run is running again.
//!
//! # Sharing
//!
//! An SQLite file is shared by processes of one machine: its locks do not work over most network file systems. Several
//! machines share a PostgreSQL server, optionally in a separate schema, and their clocks should agree within some
//! seconds. Names of tables and indexes begin with `teamster_`.
//!
//! A program that uses sqlx's `Any` itself must install the drivers with `sqlx::any::install_default_drivers`, as this
//! crate does. Installing other drivers panics.
#![warn(missing_docs)]

mod column;
mod error;
mod existing;
mod history;
mod holds;
mod key;
mod location;
mod open;
mod process;
mod recorder;
mod run;
mod session;
mod session_lock;
mod store;
mod turns;

pub use column::check_run_id;
pub use error::StoreError;
pub use key::{Conversation, SessionKey};
pub use recorder::Recorder;
pub use run::{HEARTBEAT, LOST_AFTER, NewRun, prompt_hash};
pub use session::{NewSession, SessionFilter, SessionRecord};
pub use session_lock::{SessionLock, SessionOrLock};
pub use store::{Clock, DEFAULT_SESSION_TTL, Store};
pub use teamster_api::history::{RunCursor, RunFilter, RunRecord, RunState, Word};
