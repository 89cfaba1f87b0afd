//! Errors of a run that follow from more than its last attempt.

use std::time::Duration;

use teamster_core::{AgentError, ErrorCode, ErrorKind};

use crate::Held;

/// The error of a candidate that is given up because its provider is on hold.
pub(super) fn on_hold(provider: &str, held: &Held) -> AgentError {
    AgentError {
        message: format!(
            "{provider} is on hold because of an earlier error: {}",
            held.reason.message
        ),
        code: ErrorCode::ProviderOnHold,
        kind: held.reason.kind,
        retryable: held.reason.retryable,
        retry_after_ms: None,
        resets_at: Some(held.until_ms),
    }
}

/// The error of a run that had to wait for its slot for too long: that of its last attempt, if there
/// was one.
pub(super) fn late(failed: Option<AgentError>, most: Duration) -> AgentError {
    let waited = format!("no slot was free in the time for attempts ({most:?})");
    match failed {
        Some(error) => explained(error, Some(format!("not tried again: {waited}"))),
        None => AgentError::new(ErrorCode::StartupTimeout, ErrorKind::Timeout, waited),
    }
}

/// Why a run did not go on whose own session is gone.
pub(super) fn without_session(lost: &AgentError, why: Option<&str>) -> String {
    let look = "look at what has been done before you ask again";
    format!(
        "its session could not be resumed: {}; {}",
        lost.message,
        why.unwrap_or(look)
    )
}

/// The error of a run, with why it did not go on.
pub(super) fn explained(mut error: AgentError, why: Option<String>) -> AgentError {
    if let Some(why) = why {
        error.message = format!("{} ({why})", error.message);
    }
    error
}
