//! Detached runs: runs that outlive the terminal.
//!
//! Each run has a folder below [`Runs`], private to its user:
//!
//! | File | Content |
//! |---|---|
//! | `run.json` | what the run is ([`RunInfo`]), written once |
//! | `events.ndjson` | the run's log: one [`RunLogEntry`] a line, `seq` from 1 without gaps, `done` last |
//! | `lock` | locked by the process that writes the log, for as long as it lives; has its process id |
//! | `recovery.lock` | locked by a reader that appends the end after a killed runner |
//! | `control.sock` | where that process listens ([`client`], [`server`]) |
//!
//! The process that works on a run (its runner) appends to the log ([`RunLogWriter`]) and announces only
//! entries that it has handed to the operating system. Readers ([`RunLogReader`], [`client::Follow`]) read the
//! file and get only the number of the newest entry from the runner, so a slow reader does not slow the runner.
//!
//! A live session has such a folder too. Each of its turns is a run with the id `SESSION_ID.NUMBER`. The `done`
//! with the session's id is the last entry.
//!
//! [`launch`] starts a runner, [`DetachedRun`] and [`DetachedSession`] are its work, and [`client`] sends it
//! commands.
//!
//! A runner is live while it holds the lock. Its process id is used only to name or kill a runner that does not
//! answer. A runner that was killed leaves an incomplete log. The first process that notices appends `error` (kind
//! `interrupted`) and `done`, under `recovery.lock` ([`RunFolder::settle`]).
//!
//! [`RunLogEntry`]: teamster_api::RunLogEntry
#![warn(missing_docs)]

mod account_session;
mod background;
pub mod client;
mod detached_run;
mod detached_session;
mod error;
mod files;
mod folder;
mod holder;
mod kept_spec;
pub mod launch;
mod log;
mod log_sink;
mod log_task;
mod old_text;
mod recent;
mod recorder;
mod recover;
mod requests;
mod retention;
pub mod server;
mod session_control;
mod session_runs;
mod sessions;
mod socket_path;
mod status;
#[cfg(feature = "test-hooks")]
pub mod step;
#[cfg(not(feature = "test-hooks"))]
#[expect(unreachable_pub, reason = "with the feature, its items are public")]
mod step;
mod title;

pub use account_session::{BringConversation, SessionAccount};
pub use detached_run::{DetachedRun, Finished};
pub use detached_session::{AtRest, AttachedClient, AttachedSession, DetachedSession, SessionPlan};
pub use error::RunsError;
pub use files::try_lock_past_probes;
pub use folder::{AcceptedRun, RunFolder, RunLock, RunState, Runs};
pub use log::{LogLimits, Position, RunLogReader, RunLogWriter};
pub use log_sink::EntryReader;
pub use recorder::{OnLostLog, RunRecorder};
pub use requests::{RequestChannel, Requests};
pub use retention::{Pruned, Retention};
pub use session_control::SessionControl;
pub use session_runs::{SessionCandidate, SessionRuns, SpentBudget};
pub use sessions::{OneWriter, SessionHolder, SessionLocks, SessionReservation, SessionWriter};
pub use teamster_api::{
    Answer, Command, Grants, Launch, Launched, LiveState, LiveStatus, LogLine, PendingRequest,
    RefusalCode, Reply, RunInfo, RunKind, TurnStatus,
};
