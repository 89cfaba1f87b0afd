//! Errors of this crate.

use std::io;
use std::path::PathBuf;

/// Why something could not be done with a detached run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunsError {
    /// No run has this id, and none begins with it.
    #[error(
        "no detached run `{id}`: a run has a log only if it was started with --detach; `teamster runs list` \
         shows the ids of all runs"
    )]
    NotFound {
        /// The id, or its beginning.
        id: String,
    },
    /// Several runs begin with this id.
    #[error("`{prefix}` is the beginning of several runs: {}", matches.join(", "))]
    Ambiguous {
        /// What was given.
        prefix: String,
        /// The ids that begin with it; at most five.
        matches: Vec<String>,
    },
    /// A run has this id already.
    #[error("a run `{id}` exists already: give every run an id of its own")]
    Exists {
        /// The id.
        id: String,
    },
    /// The id cannot be the name of a folder.
    #[error(
        "`{id}` cannot be the id of a detached run: use up to 100 letters, digits, `-`, `_`, `.` and `:`, and \
         no dot at the beginning"
    )]
    InvalidId {
        /// The id.
        id: String,
    },
    /// The run has ended.
    #[error("run {id} has ended: `teamster attach {id}` shows its log")]
    Ended {
        /// The id.
        id: String,
    },
    /// The runner refused a request.
    #[error("{message}")]
    Refused {
        /// Why, as a word for programs.
        code: RefusalCode,
        /// Why.
        message: String,
    },
    /// Another process writes to the log.
    #[error("run {id} is being written by another process")]
    Locked {
        /// The id.
        id: String,
    },
    /// The log is damaged: a line of it cannot be read.
    #[error("{}: no entry at byte {offset}: the file was changed or damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the line begins.
        offset: u64,
    },
    /// The system refused an operation.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, such as `open`.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl RunsError {
    /// An operation that the system refused.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

/// Why a runner refused a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum RefusalCode {
    /// The request was answered already, by a caller or by its time limit.
    AlreadyAnswered,
    /// No request has this id.
    UnknownRequest,
    /// The answer does not fit the request.
    InvalidAnswer,
    /// The runner does not know this command, or it makes no sense for this run.
    Unsupported,
    /// A turn of the session is in progress: it takes a prompt when that has ended.
    Busy,
    /// No turn is in progress.
    NoTurn,
    /// The session is being ended.
    Ending,
    /// The budget of the session is spent.
    OverBudget,
    /// The key was used with another prompt.
    KeyReused,
    /// What only a newer version knows.
    #[serde(other)]
    Other,
}
