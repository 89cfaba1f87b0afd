//! Why a tick did not come to its own end.

use jiff::Timestamp;
use teamster_core::{AgentError, ErrorCode, ErrorKind, RunResult};

use crate::machine::TickEnd;
use crate::status::TickError;

/// How much of it is shown beside the reason of a sleep, in bytes.
const LONGEST: usize = 200;

/// Why the last tick or start failed.
pub(super) struct Trouble {
    pub(super) error: AgentError,
    at: Timestamp,
}

impl Trouble {
    pub(super) fn new(error: AgentError, at: Timestamp) -> Self {
        Self { error, at }
    }

    /// The agent's program did not come to work at all.
    pub(super) fn is_of_the_start(&self) -> bool {
        matches!(self.error.code, ErrorCode::CliNotFound)
    }

    /// The error as `sleep.json` has it.
    pub(super) fn short(&self) -> TickError {
        TickError {
            kind: self.error.kind,
            message: one_line(&self.error.message),
            at_epoch: self.at.as_second(),
        }
    }
}

fn one_line(message: &str) -> String {
    let words: Vec<&str> = message.split_whitespace().collect();
    teamster_core::text::excerpt(&words.join(" "), LONGEST)
}

/// Why the tick failed, if it did.
pub(super) fn trouble(result: &RunResult, end: TickEnd) -> Option<AgentError> {
    let last = || result.errors.last().cloned();
    let error = AgentError::new;
    match end {
        TickEnd::Completed => None,
        // The CLI's answer to an interrupt is not the reason for it.
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
                    "its output broke off",
                )
            }))
        }
    }
}
