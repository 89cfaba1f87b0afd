//! Why a tick did not come to its own end.

use teamster_core::{AgentError, ErrorCode, ErrorKind, RunResult};

use super::AgentLoop;
use crate::machine::TickEnd;

/// So much of it is told beside the reason of a sleep, in bytes.
const LONGEST: usize = 200;

impl AgentLoop {
    /// The reason of a sleep, with what went wrong before it: for those who see nothing else of the loop.
    pub(super) fn with_trouble(&self, reason: String) -> String {
        let Some(error) = &self.trouble else {
            return reason;
        };
        let words: Vec<&str> = error.message.split_whitespace().collect();
        let words = teamster_core::excerpt(&words.join(" "), LONGEST);
        format!("{reason}; the last error: {words}")
    }
}

/// Why the tick failed, if it did.
pub(super) fn trouble(result: &RunResult, end: TickEnd) -> Option<AgentError> {
    let told = || result.errors.last().cloned();
    let error = AgentError::new;
    match end {
        TickEnd::Completed => None,
        // What the CLI says to an interrupt is not why there was one.
        TickEnd::TimedOut | TickEnd::Stuck => Some(error(
            ErrorCode::Aborted,
            ErrorKind::Timeout,
            "the turn took too long",
        )),
        TickEnd::Failed | TickEnd::Refused | TickEnd::Died | TickEnd::Unusable => {
            Some(told().unwrap_or_else(|| {
                error(
                    ErrorCode::StreamEndedEarly,
                    ErrorKind::Internal,
                    "its output broke off",
                )
            }))
        }
    }
}
