//! Runs that outlive the terminal.
//!
//! Each run has a folder below [`Runs`], private to its user:
//!
//! | File | Content |
//! |---|---|
//! | `run.json` | what the run is ([`RunInfo`]), written once |
//! | `events.ndjson` | the run's log: one [`RunLogEntry`] a line, `seq` from 1 without gaps, `done` last |
//! | `lock` | locked by the process that writes the log, for as long as it lives |
//! | `recovery.lock` | locked by a reader that appends the end after a killed runner |
//! | `control.sock` | where that process listens ([`client`], [`server`]) |
//!
//! The process that works on a run (its runner) appends to the log ([`RunLogWriter`]), and announces only what
//! has been handed to the operating system. Readers ([`RunLogReader`], [`client::Follow`]) read the file and ask
//! the runner for nothing but the number of the newest entry, so a slow reader costs the runner nothing.
//!
//! Whether a runner lives is a lock, never a process id. A runner that was killed leaves a log without its end:
//! whoever notices first appends `error` (kind `interrupted`) and `done`, under the lock
//! ([`RunFolder::settle`]).
//!
//! [`RunLogEntry`]: teamster_orchestrator::RunLogEntry
#![warn(missing_docs)]

pub mod client;
mod error;
mod folder;
mod log;
pub mod protocol;
mod recover;
mod requests;
pub mod server;
mod sessions;
mod socket_path;

pub use error::{RefusalCode, RunsError};
pub use folder::{NewRun, RunFolder, RunInfo, RunKind, RunLock, RunState, Runs};
pub use log::{LogLimits, LogLine, Position, RunLogReader, RunLogWriter};
pub use requests::Requests;
pub use sessions::{OneWriter, SessionHolder, SessionLocks, SessionWriter};
