//! How an agent is kept between two ticks.

mod cold;
mod hot;

use std::future::Future;
use std::pin::Pin;

use teamster_core::{
    AgentError, Capabilities, ErrorCode, ErrorKind, EventStream, ExecuteParams, Id, RunResult,
    RunStatus,
};

pub use cold::ColdAdapter;
pub use hot::HotAdapter;

use crate::machine::TickEnd;

/// What a call of an adapter gives, in time.
pub type AdapterFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An agent, as a loop has it.
pub trait Adapter: Send {
    /// The agent is wanted: the next tick begins it, in this session if there is one. What cannot work with
    /// these parameters is an error.
    fn begin(&mut self, resume: Option<Id>) -> Result<(), AgentError>;

    /// The next process has these parameters: a file that they come from may have changed. Nothing, for an
    /// agent that has none.
    fn set_params(&mut self, params: ExecuteParams) {
        let _ = params;
    }

    /// Its session, as soon as the id is known.
    fn session(&self) -> Option<Id>;

    /// Whether it is there for the next tick. One that has begun and needs no process before that is.
    fn is_alive(&self) -> bool;

    /// Whether its context lasts from one tick to the next.
    fn keeps_context(&self) -> bool;

    /// Whether [`clear`](Self::clear) leaves the process as it is. Only then clears are held back.
    fn clears_in_session(&self) -> bool;

    /// Empties the context. After an error its content is unknown.
    fn clear(&mut self) -> AdapterFuture<'_, Result<(), AgentError>>;

    /// What the agent can do, as far as it matters for the limits of a tick.
    fn capabilities(&self) -> &Capabilities {
        const UNKNOWN: &Capabilities = &Capabilities::none();
        UNKNOWN
    }

    /// Plays a tick. Nothing happens before the stream is polled.
    fn tick(&mut self, prompt: &str) -> Result<EventStream, AgentError>;

    /// Plays a tick, or continues one after a failure: a new attempt has its own prompt, session and limits.
    /// An agent whose process stays knows its session and takes the prompt alone.
    fn attempt(&mut self, params: &ExecuteParams) -> Result<EventStream, AgentError> {
        self.tick(&params.prompt)
    }

    /// A tick has ended so.
    fn tick_ended(&mut self, result: &RunResult);

    /// A turn that the agent began by itself, about work in the background for example.
    fn unasked(&mut self) -> Option<EventStream>;

    /// Ends it, in the way that lets it clean up. A tick that is being played is broken off.
    fn end(&mut self) -> AdapterFuture<'_, ()>;
}

/// What the end of a tick means for the loop. `overran` is whether it was interrupted because it took too
/// long, `alive` whether the agent is there.
pub(crate) fn tick_end(result: &RunResult, overran: bool, alive: bool) -> TickEnd {
    let has = |kind: ErrorKind| result.errors.iter().any(|error| error.kind == kind);
    match (overran, alive) {
        // It may have come to its end in that moment.
        (true, _) if result.status == RunStatus::Completed => TickEnd::Completed,
        (true, true) => TickEnd::TimedOut,
        (true, false) => TickEnd::Stuck,
        _ if result.status == RunStatus::Completed => TickEnd::Completed,
        _ if has(ErrorKind::SessionNotFound) || has(ErrorKind::ContextWindow) => TickEnd::Unusable,
        // An unknown error is in doubt too: a session that fails each time must not go on forever.
        (false, true) if has(ErrorKind::Invalid) || has(ErrorKind::Internal) => TickEnd::Refused,
        (false, true) => TickEnd::Failed,
        (false, false) => TickEnd::Died,
    }
}

/// Whether a run of its own ended without the CLI having come to an end of it: it died, or was never there.
fn died(result: &RunResult) -> bool {
    let of_the_process = |code: &ErrorCode| {
        matches!(
            code,
            ErrorCode::CliNotFound
                | ErrorCode::CliStderr
                | ErrorCode::CliExitError
                | ErrorCode::StartupTimeout
                | ErrorCode::WatchdogTimeout
                | ErrorCode::StreamEndedEarly
                | ErrorCode::OutputLimit
                | ErrorCode::InvalidParams
                | ErrorCode::ConfigLease
                | ErrorCode::Io
        )
    };
    result.status != RunStatus::Completed
        && (result.errors.is_empty()
            || result
                .errors
                .iter()
                .any(|error| of_the_process(&error.code)))
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
    fn what_an_end_means() {
        use RunStatus::{Aborted, Completed, Failed, TimedOut};
        let auth = Some((ErrorCode::CliError, ErrorKind::Auth));
        let lost = Some((ErrorCode::CliError, ErrorKind::SessionNotFound));
        let full = Some((ErrorCode::CliError, ErrorKind::ContextWindow));
        let invalid = Some((ErrorCode::CliError, ErrorKind::Invalid));
        let unknown = Some((ErrorCode::CliError, ErrorKind::Internal));
        let limit = Some((ErrorCode::CliError, ErrorKind::RateLimit));
        for (status, error, overran, alive, expected) in [
            (Completed, None, false, true, TickEnd::Completed),
            // A process that ends after its turn is looked at when the next tick begins.
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
        ] {
            let end = tick_end(&result(status, error), overran, alive);
            assert_eq!(end, expected, "{status:?} {error:?} {overran} {alive}");
        }
    }

    #[test]
    fn a_run_has_died_if_its_cli_did_not_come_to_an_end() {
        use RunStatus::{Completed, Failed, Incomplete, TimedOut};
        for (status, error, expected) in [
            (Completed, None, false),
            (
                Failed,
                Some((ErrorCode::CliError, ErrorKind::RateLimit)),
                false,
            ),
            (
                Failed,
                Some((ErrorCode::CliNotFound, ErrorKind::NotFound)),
                true,
            ),
            (
                Failed,
                Some((ErrorCode::CliExitError, ErrorKind::Internal)),
                true,
            ),
            (
                TimedOut,
                Some((ErrorCode::WatchdogTimeout, ErrorKind::Timeout)),
                true,
            ),
            (Incomplete, None, true),
        ] {
            assert_eq!(
                died(&result(status, error)),
                expected,
                "{status:?} {error:?}"
            );
        }
    }
}
