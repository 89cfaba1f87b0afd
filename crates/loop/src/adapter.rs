//! Adapters: how a loop reaches its agent.

mod cold;
mod hot;

use teamster_core::{
    AgentError, Capabilities, ErrorCode, ErrorKind, EventStream, ExecuteParams, Id, RunResult,
    RunStatus, SharedRuntime,
};

pub use cold::ColdAdapter;
pub use hot::HotAdapter;

use crate::machine::TickEnd;

/// Interface of a loop to its agent.
#[async_trait::async_trait]
pub trait Adapter: Send {
    /// Prepares the agent for the next tick, in this session if one is given.
    ///
    /// # Errors
    ///
    /// Fails if the agent refuses its parameters.
    fn begin(&mut self, resume: Option<Id>) -> Result<(), AgentError>;

    /// Sets the parameters of the next process. Default: no effect.
    fn set_params(&mut self, params: ExecuteParams) {
        let _ = params;
    }

    /// Returns the session, once its id is known.
    fn session(&self) -> Option<Id>;

    /// Returns whether the agent is ready for the next tick. A process need not be running yet.
    fn is_alive(&self) -> bool;

    /// Returns whether [`clear`](Self::clear) keeps the process. Only then `clear_min_gap` applies.
    fn clears_in_session(&self) -> bool;

    /// Empties the context.
    ///
    /// # Errors
    ///
    /// After an error the content of the context is unknown.
    async fn clear(&mut self) -> Result<(), AgentError>;

    /// Returns the agent's capabilities, which decide the limits that a tick can have.
    fn capabilities(&self) -> &Capabilities {
        const UNKNOWN: &Capabilities = &Capabilities::none();
        UNKNOWN
    }

    /// Returns the runtime of the next tick, whose runs are the tick's attempts: each has its own prompt, session and
    /// limits. An agent whose process stays knows its session and takes the prompt alone.
    ///
    /// # Errors
    ///
    /// Fails if the agent has not [begun](Self::begin).
    fn runtime(&mut self) -> Result<SharedRuntime, AgentError>;

    /// Tells the adapter how a tick ended.
    fn tick_ended(&mut self, result: &RunResult);

    /// Returns the next turn that the agent began by itself, for example after work in the background.
    fn unasked(&mut self) -> Option<EventStream>;

    /// Ends the agent gracefully. A tick in progress is aborted.
    async fn end(&mut self);
}

/// Classifies the end of a tick. `overran`: it was interrupted at its time limit. `alive`: the agent is ready
/// for the next tick.
pub(crate) fn tick_end(result: &RunResult, overran: bool, alive: bool) -> TickEnd {
    let has = |kind: ErrorKind| result.errors.iter().any(|error| error.kind == kind);
    match (overran, alive) {
        // It may have completed at that moment.
        (true, _) if result.status == RunStatus::Completed => TickEnd::Completed,
        (true, true) => TickEnd::TimedOut,
        (true, false) => TickEnd::Stuck,
        _ if result.status == RunStatus::Completed => TickEnd::Completed,
        _ if has(ErrorKind::SessionNotFound) || has(ErrorKind::ContextWindow) => TickEnd::Unusable,
        // Unknown errors count as well: a session that fails each time must be given up.
        (false, true) if result.errors.iter().any(is_refusal) => TickEnd::Refused,
        (false, true) => TickEnd::Failed,
        (false, false) => TickEnd::Died,
    }
}

/// Returns whether the agent reported that a request was refused, for a reason that waiting does not change. The exit
/// of a process that ran one tick does not count: its next process may do better.
fn is_refusal(error: &AgentError) -> bool {
    matches!(error.kind, ErrorKind::Invalid | ErrorKind::Internal)
        && !matches!(
            error.code,
            ErrorCode::CliStderr
                | ErrorCode::CliExitError
                | ErrorCode::OutputLimit
                | ErrorCode::SessionInUse
        )
}

/// Returns whether the CLI of a run could not be started, or was ended by a signal that this program did not send. An
/// exit with an error is no death.
fn died(result: &RunResult) -> bool {
    let is_over = matches!(
        result.status,
        RunStatus::Completed | RunStatus::Aborted | RunStatus::TimedOut
    );
    // After other errors this program stopped the process, or the CLI reported its end itself.
    let is_unexplained = result.errors.last().is_none_or(|error| {
        matches!(
            error.code,
            ErrorCode::CliStderr | ErrorCode::CliExitError | ErrorCode::StreamEndedEarly
        )
    });
    let is_killed = result.exit_signal.is_some() && !is_over && is_unexplained;
    is_killed
        || result.errors.iter().any(|error| {
            matches!(
                error.code,
                ErrorCode::CliNotFound
                    | ErrorCode::InvalidParams
                    | ErrorCode::ConfigLease
                    | ErrorCode::SessionInUse
                    | ErrorCode::Io
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(status: RunStatus, error: Option<(ErrorCode, ErrorKind)>) -> RunResult {
        RunResult::default().status(status).errors(
            error
                .into_iter()
                .map(|(code, kind)| AgentError::new(code, kind, "x"))
                .collect(),
        )
    }

    #[test]
    fn tick_end_by_status_error_and_liveness() {
        use RunStatus::{Aborted, Completed, Failed, TimedOut};
        let auth = Some((ErrorCode::CliError, ErrorKind::Auth));
        let lost = Some((ErrorCode::CliError, ErrorKind::SessionNotFound));
        let full = Some((ErrorCode::CliError, ErrorKind::ContextWindow));
        let invalid = Some((ErrorCode::CliError, ErrorKind::Invalid));
        let unknown = Some((ErrorCode::CliError, ErrorKind::Internal));
        let limit = Some((ErrorCode::CliError, ErrorKind::RateLimit));
        let exit = Some((ErrorCode::CliExitError, ErrorKind::Internal));
        for (status, error, overran, alive, expected) in [
            (Completed, None, false, true, TickEnd::Completed),
            // A process that ends after its turn is noticed at the next tick.
            (Completed, None, false, false, TickEnd::Completed),
            (Completed, None, true, true, TickEnd::Completed),
            (Aborted, None, true, true, TickEnd::TimedOut),
            (Aborted, None, true, false, TickEnd::Stuck),
            (Failed, auth, false, true, TickEnd::Failed),
            (Failed, auth, false, false, TickEnd::Died),
            (TimedOut, None, false, false, TickEnd::Died),
            (Failed, lost, false, true, TickEnd::Unusable),
            (Failed, lost, false, false, TickEnd::Unusable),
            (Failed, full, false, true, TickEnd::Unusable),
            (Failed, invalid, false, true, TickEnd::Refused),
            (Failed, invalid, false, false, TickEnd::Died),
            (Failed, unknown, false, true, TickEnd::Refused),
            (Failed, limit, false, true, TickEnd::Failed),
            (Failed, exit, false, true, TickEnd::Failed),
            (Failed, exit, false, false, TickEnd::Died),
        ] {
            let end = tick_end(&result(status, error), overran, alive);
            assert_eq!(end, expected, "{status:?} {error:?} {overran} {alive}");
        }
    }

    #[test]
    fn an_exit_is_no_death_and_a_signal_is_one() {
        use RunStatus::{Aborted, Completed, Failed, Incomplete, TimedOut};
        let of = |code, kind| Some((code, kind));
        for (status, error, expected) in [
            (Completed, None, false),
            (Failed, of(ErrorCode::CliError, ErrorKind::RateLimit), false),
            (
                Failed,
                of(ErrorCode::CliNotFound, ErrorKind::NotFound),
                true,
            ),
            (
                Failed,
                of(ErrorCode::ConfigLease, ErrorKind::Internal),
                true,
            ),
            (
                Failed,
                of(ErrorCode::CliExitError, ErrorKind::Internal),
                false,
            ),
            (
                TimedOut,
                of(ErrorCode::WatchdogTimeout, ErrorKind::Timeout),
                false,
            ),
            (Incomplete, None, false),
        ] {
            let result = result(status, error);
            assert_eq!(died(&result), expected, "{status:?} {error:?}");
        }
        for (status, expected) in [
            (Completed, false),
            (TimedOut, false),
            (Aborted, false),
            (Incomplete, true),
            (Failed, true),
        ] {
            let killed = result(status, None).exit_signal("SIGKILL".to_owned());
            assert_eq!(died(&killed), expected, "{status:?}");
        }
        // A spent budget stops the process.
        let spent = result(Failed, of(ErrorCode::BudgetExceeded, ErrorKind::Budget));
        assert!(!died(&spent.exit_signal("SIGTERM".to_owned())));
    }
}
