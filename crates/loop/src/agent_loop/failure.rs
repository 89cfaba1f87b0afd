//! Failure of a tick or a start.

use jiff::Timestamp;
use teamster_api::agents::TickError;
use teamster_core::text::{excerpt, one_line};
use teamster_core::{AgentError, ErrorCode, ErrorKind, RunResult};

use crate::machine::TickEnd;

/// Maximum length of an error in `sleep.json`, in bytes.
const LONGEST: usize = 200;

/// Failure of the last tick or start.
pub(super) struct TickFailure {
    pub(super) error: AgentError,
    at: Timestamp,
}

impl TickFailure {
    pub(super) fn new(error: AgentError, at: Timestamp) -> Self {
        Self { error, at }
    }

    /// Returns whether the agent's program could not be started.
    pub(super) fn is_start_failure(&self) -> bool {
        matches!(self.error.code, ErrorCode::CliNotFound)
    }

    /// Returns the error in the form of `sleep.json`.
    pub(super) fn to_tick_error(&self) -> TickError {
        let message = excerpt(&one_line(&self.error.message), LONGEST);
        TickError::new(self.error.kind, message, self.at.as_second())
    }
}

/// Returns the error of the tick, if it failed.
pub(super) fn failure_of(result: &RunResult, end: TickEnd) -> Option<AgentError> {
    let last = || result.errors.last().cloned();
    let error = AgentError::new;
    match end {
        TickEnd::Completed => None,
        // The CLI's error after an interrupt is not the cause.
        TickEnd::TimedOut | TickEnd::Stuck => Some(error(
            ErrorCode::Aborted,
            ErrorKind::Timeout,
            "the turn took too long",
        )),
        TickEnd::Failed | TickEnd::Refused | TickEnd::Died | TickEnd::Unusable => {
            Some(last().unwrap_or_else(|| {
                error(
                    ErrorCode::StreamEndedEarly,
                    ErrorKind::Internal,
                    "its output ended early",
                )
            }))
        }
    }
}
