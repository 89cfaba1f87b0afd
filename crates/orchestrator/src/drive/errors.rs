//! Errors that originate in the run itself.

use std::time::Duration;

use teamster_core::{AgentError, ErrorCode, ErrorDetail, ErrorKind, NotRetried};

use crate::Held;

/// Creates the error of a candidate whose provider, or group, is on hold.
pub(super) fn on_hold(group: &str, held: &Held) -> AgentError {
    let reason = &held.reason;
    let message = format!("{group} is on hold because of an earlier error: {reason}");
    AgentError::new(ErrorCode::ProviderOnHold, reason.kind, message)
        .retryable(reason.retryable)
        .resets_at_ms(held.until_ms)
        .cause(reason.clone())
}

/// Creates the error of a run that waited too long for a slot. If there was an attempt, it is the error of the last
/// one.
pub(super) fn late(failed: Option<AgentError>, most: Duration) -> AgentError {
    let waited = format!("no slot was free in the time for attempts ({most:?})");
    match failed {
        Some(error) => explained(
            error,
            Some((NotRetried::NoSlot, format!("not tried again: {waited}"))),
        ),
        None => AgentError::new(ErrorCode::StartupTimeout, ErrorKind::Timeout, &waited)
            .detail(ErrorDetail::not_retried(NotRetried::NoSlot, waited)),
    }
}

/// Returns the reason why a run did not continue after its own session was lost.
pub(super) fn without_session(
    lost: &AgentError,
    why: Option<(NotRetried, String)>,
) -> (NotRetried, String) {
    let look = "look at what has been done before you ask again";
    let why = why.map_or_else(|| look.to_owned(), |(_, why)| why);
    let why = format!("its session could not be resumed: {lost}; {why}");
    (NotRetried::SessionLost, why)
}

/// Adds the reason for no further attempt to an error.
pub(super) fn explained(error: AgentError, why: Option<(NotRetried, String)>) -> AgentError {
    let Some((reason, why)) = why else {
        return error;
    };
    let explained = error.clone().message(format!("{error} ({why})"));
    explained
        .detail(ErrorDetail::not_retried(reason, why))
        .cause(error)
}
