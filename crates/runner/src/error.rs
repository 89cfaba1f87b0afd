//! Error types of this crate.

use std::io;
use std::path::PathBuf;

use teamster_api::{NEW_RUN_ID_RULE, ProblemCode, RefusalCode, RunnerProcess, ServiceError};

/// Error of an operation on detached runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunsError {
    /// No run has this id or id prefix.
    #[error(
        "no run \"{id}\" has a log: detached runs, sessions and ticks of loops have one until it is removed"
    )]
    NotFound {
        /// The id or prefix.
        id: String,
    },
    /// Several runs have this id prefix.
    #[error("\"{prefix}\" matches several runs: {}", matches.join(", "))]
    Ambiguous {
        /// The prefix.
        prefix: String,
        /// Up to five ids with this prefix.
        matches: Vec<String>,
    },
    /// A run with this id exists already.
    #[error("a run \"{id}\" exists already: give every run an id of its own")]
    Exists {
        /// Id of the run.
        id: String,
    },
    /// The id cannot be the name of a folder, or is one of a turn.
    #[error("\"{id}\" cannot be the id of a detached run: {NEW_RUN_ID_RULE}")]
    InvalidId {
        /// Id of the run.
        id: String,
    },
    /// The run has ended.
    #[error("run {id} has ended")]
    Ended {
        /// Id of the run.
        id: String,
    },
    /// The runner is live, but does not answer.
    #[error("run {id} {}", not_answering(*pid, *is_stopped))]
    NotAnswering {
        /// Id of the run.
        id: String,
        /// Process id of the runner, if it is known.
        pid: Option<u32>,
        /// The process is stopped (`SIGSTOP`).
        is_stopped: bool,
    },
    /// A command is longer than a runner reads. It was not sent.
    #[error(
        "a message of {} MiB is too large for run {id}, which takes {} MiB: send fewer or smaller images, or name files in \
         the prompt",
        bytes.div_ceil(1 << 20),
        limit >> 20
    )]
    TooLarge {
        /// Id of the run.
        id: String,
        /// Size of the command, in bytes.
        bytes: u64,
        /// Maximum size, in bytes.
        limit: u64,
    },
    /// The runner refused a request.
    #[error("{message}")]
    Refused {
        /// Reason, for programs.
        code: RefusalCode,
        /// Reason, for people.
        message: String,
    },
    /// Another process writes to the log.
    #[error("run {id} is being written by another process")]
    Locked {
        /// Id of the run.
        id: String,
    },
    /// A system call failed.
    #[error("cannot {action} {}: {error}", path.display())]
    Io {
        /// Failed action, such as `open`.
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// I/O error.
        error: io::Error,
    },
}

fn not_answering(pid: Option<u32>, is_stopped: bool) -> String {
    match pid {
        Some(pid) if is_stopped => {
            format!("does not answer (pid {pid}): the process is stopped")
        }
        Some(pid) => format!("does not answer (pid {pid})"),
        None => "does not answer: its process is unknown, or in another container".to_owned(),
    }
}

impl From<RunsError> for ServiceError {
    fn from(error: RunsError) -> Self {
        let code = match &error {
            RunsError::NotFound { .. } => ProblemCode::RunNotFound,
            RunsError::Ended { .. } => ProblemCode::RunEnded,
            RunsError::NotAnswering { .. } => ProblemCode::RunnerNotResponding,
            RunsError::Ambiguous { .. } => ProblemCode::RunIdAmbiguous,
            RunsError::Exists { .. } => ProblemCode::RunExists,
            RunsError::InvalidId { .. } => ProblemCode::InvalidParams,
            RunsError::TooLarge { .. } => ProblemCode::BodyTooLarge,
            RunsError::Refused { code, .. } => (*code).into(),
            RunsError::Locked { .. } | RunsError::Io { .. } => ProblemCode::Internal,
        };
        let mut service = Self::new(code, error.to_string());
        match error {
            RunsError::NotAnswering {
                id,
                pid,
                is_stopped,
            } => {
                service.runner = pid.map(|pid| {
                    let mut runner = RunnerProcess::new(pid);
                    runner.is_stopped = is_stopped;
                    runner
                });
                service.run_id = Some(id);
            }
            RunsError::Ended { id } | RunsError::Exists { id } => service.run_id = Some(id),
            _ => {}
        }
        service
    }
}

impl RunsError {
    /// Returns a conversion of I/O errors of this action on this path, for `map_err`.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::Io {
            action,
            path,
            error,
        }
    }
}
