//! The end of a turn and of a run.

use teamster_core::provider::{DecodedResult, Events, Exit};
use teamster_core::{AgentError, CostSource, ErrorCode, ErrorKind, TurnEnd};

use super::PiDecoder;
use super::errors;
use super::wire::Message;

/// State of the end so far.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// Number of answers.
    pub(super) turns: u32,
    pub(super) stop_reason: Option<String>,
    /// Reason of the last answer's failure, until the CLI continues or has settled.
    pub(super) failure: Option<AgentError>,
    /// True if the CLI has begun to work on the prompt.
    pub(crate) begun: bool,
    /// True if the last answer, or the wait for another one, was aborted.
    aborted: bool,
    /// The reported end: `Some(true)` for a failure.
    pub(crate) ended: Option<bool>,
}

impl Ending {
    /// Handles the end of an answer.
    pub(super) fn answer(&mut self, message: &Message) {
        self.stop_reason.clone_from(&message.stop_reason);
        self.failure = match message.stop_reason.as_deref() {
            Some("error") => Some(errors::of_answer(message.error.as_deref())),
            Some("aborted") => Some(aborted()),
            Some("length") => Some(AgentError::new(
                ErrorCode::CliError,
                ErrorKind::Invalid,
                "the answer was cut off at the limit of output tokens",
            )),
            _ => None,
        };
        let kind = self.failure.as_ref().map(|error| error.kind);
        self.aborted = kind == Some(ErrorKind::Aborted);
        if !matches!(message.stop_reason.as_deref(), Some("error" | "aborted")) {
            self.turns += 1;
        }
    }

    /// Handles the end of a wait for a retry: without a success and without another failure it was aborted.
    pub(super) fn waited(&mut self, success: Option<bool>) {
        if success == Some(false) && self.failure.is_none() {
            self.abort();
        }
    }

    /// Handles the report that the turn was aborted, wherever it was.
    fn abort(&mut self) {
        self.aborted = true;
        self.failure.get_or_insert_with(aborted);
    }

    /// Returns whether an answer has ended, with any outcome.
    pub(crate) fn has_answer(&self) -> bool {
        self.stop_reason.is_some()
    }

    /// Returns whether the last answer, or a wait, was aborted.
    pub(crate) fn is_aborted(&self) -> bool {
        self.aborted
    }
}

fn aborted() -> AgentError {
    AgentError::new(
        ErrorCode::Aborted,
        ErrorKind::Aborted,
        "the answer was aborted",
    )
}

impl PiDecoder {
    /// Handles the report that the CLI has settled: it will not continue by itself.
    pub(crate) fn settled(&mut self, is_aborted: bool, out: &mut Events) {
        if is_aborted {
            self.ending.abort();
        }
        let failure = self.ending.failure.take();
        let is_error = failure.is_some();
        if let Some(error) = failure {
            out.error(error);
        }
        self.turn_end(is_error, out);
    }

    /// Emits the end of the turn.
    pub(crate) fn turn_end(&mut self, is_error: bool, out: &mut Events) {
        self.ending.ended = Some(is_error);
        out.push(
            TurnEnd::new(is_error)
                .stop_reason(self.ending.stop_reason.clone())
                .usage(self.used.tokens)
                .cost_usd(self.used.cost_usd),
        );
    }

    pub(super) fn end(&mut self, exit: &Exit, out: &mut Events) -> DecodedResult {
        self.calls.finish(out);
        let is_command = self.slash_commands
            && self.session.is_some()
            && !self.ending.begun
            && exit.code == Some(0)
            && exit.stop.is_none();
        if is_command {
            // A command of an extension prints nothing itself.
            self.turn_end(false, out);
        }
        if self.ending.ended.is_none()
            && let Some(error) = self.ending.failure.take()
            && exit.stop.is_none()
        {
            out.error(error);
        }
        DecodedResult {
            ended_with_error: self.ending.ended,
            session_id: self.session.clone(),
            model: self.model.clone(),
            usage: self.used.tokens,
            usage_by_model: std::mem::take(&mut self.used.by_model),
            cost: self.used.cost_usd.map(|usd| (usd, CostSource::Reported)),
            num_turns: Some(self.ending.turns).filter(|turns| *turns > 0),
            stop_reason: self.ending.stop_reason.clone(),
            ..DecodedResult::default()
        }
    }
}
