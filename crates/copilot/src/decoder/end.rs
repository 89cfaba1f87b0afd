//! End of a run: the `result` line, errors, interruptions, and data from the session's record.

use teamster_core::provider::{DecodedResult, Events, Exit};
use teamster_core::{
    AgentError, ErrorCode, ErrorKind, NoticeLevel, NoticeSource, TurnEnd, UsageReport,
};

use super::messages::Lane;
use super::session_event::SessionState;
use super::usage::{Spent, Totals};
use super::wire::{CallUsage, ResultLine};

/// State of the end of the run.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// Turns of the main agent. Each is one request to the model.
    pub(super) turns: u32,
    /// Failures. Only the end of the run shows whether one of them ended it.
    errors: Vec<AgentError>,
    /// The interruption of the run, if any.
    aborted: Option<AgentError>,
    /// The model that answered last.
    model: Option<String>,
    /// Outcome of the run, once it is known: true if it failed.
    ended_with_error: Option<bool>,
    /// True after the last line, unless another turn has followed.
    over: bool,
    /// True if the last line had no exit code.
    undecided: bool,
    /// API time of the whole session, in milliseconds.
    total_api_duration_ms: Option<u64>,
    /// Token counts in the output.
    printed: Spent,
    /// Usage of the session before this run.
    pub(super) before: Option<Totals>,
    /// Token counts in the session's record.
    pub(super) recorded: Spent,
}

impl Ending {
    pub(super) fn failed(&mut self, error: AgentError) {
        self.errors.push(error);
    }

    pub(super) fn aborted(&mut self, reason: Option<&str>) {
        if self.aborted.is_none() {
            self.aborted = Some(if reason == Some("autopilot_credit_limit") {
                error(ErrorKind::Budget, "the limit of AI credits was reached")
            } else {
                error(ErrorKind::Aborted, "the run was interrupted")
            });
        }
    }

    /// Marks the run as active: an earlier last line was not the last one.
    pub(super) fn works(&mut self) {
        self.over = false;
    }

    pub(super) fn answered_by(&mut self, model: &str) {
        if self.model.as_deref() != Some(model) {
            self.model = Some(model.to_owned());
        }
    }

    /// Adds one request's usage, of a version that prints it.
    pub(super) fn spent(&mut self, main_agent: bool, call: &CallUsage<'_>, out: &mut Events) {
        self.printed.add(main_agent, call);
        if let Some(usage) = self.printed.usage {
            out.push(UsageReport::new(usage));
        }
    }

    /// Records that the totals of the session begin with this run.
    pub(super) fn begins_at_zero(&mut self) {
        self.printed.begins_at_zero();
    }

    /// Handles the end of the session with its totals, in versions that print it. Without a last line after it, the
    /// exit of the process decides.
    pub(super) fn shut_down(&mut self, totals: Option<Totals>) {
        self.printed.totals_are(totals);
        self.undecided |= !self.over;
    }

    /// Ends the main agent's turn while the run waits for background work.
    pub(super) fn turn_ends(&self, out: &mut Events) {
        turn_end(!self.errors.is_empty(), out);
    }

    /// Handles the last line. Its exit code is 0 even for an interrupted run. A repeated last line only decides
    /// whether the run failed.
    pub(super) fn result(
        &mut self,
        line: &ResultLine<'_>,
        session: &mut SessionState,
        out: &mut Events,
    ) {
        if let Some(id) = line.session_id.get() {
            session.is_really(id, out);
        }
        self.total_api_duration_ms = line.usage.total_api_duration_ms;
        let Some(code) = line.exit_code else {
            // Without the code, the exit of the process decides.
            self.undecided = !self.over;
            return;
        };
        self.undecided = false;
        let failed = code != 0 || self.aborted.is_some();
        let reported = self.ended_with_error == Some(true) || self.aborted.is_some();
        if failed && !reported && self.errors.is_empty() {
            self.errors.push(error(
                ErrorKind::Internal,
                format!("the CLI ended the run with code {code} and said nothing about why"),
            ));
        }
        self.settle(failed, out);
    }

    /// Settles the outcome of the run. A reported error stays an error.
    fn settle(&mut self, failed: bool, out: &mut Events) {
        if failed {
            self.push_errors(out);
        } else {
            // The run continued after them.
            self.notice_errors(out);
        }
        self.ended_with_error = Some(failed || self.ended_with_error == Some(true));
        if !self.over {
            turn_end(failed, out);
        }
        self.over = true;
    }

    /// Settles the outcome by the exit of the process, because the last line had no code.
    fn decide(&mut self, exit: &Exit, out: &mut Events) {
        let failed = exit.is_failure() || self.aborted.is_some();
        if failed && self.errors.is_empty() && self.aborted.is_none() {
            // stderr or the exit code reports the reason.
            turn_end(true, out);
        } else {
            self.settle(failed, out);
        }
    }

    /// Handles the exit of the process.
    pub(super) fn finish(
        &mut self,
        exit: &Exit,
        session: &SessionState,
        lane: &Lane,
        out: &mut Events,
    ) -> DecodedResult {
        if self.undecided {
            self.decide(exit, out);
        } else if self.over {
            // The run was over before these errors.
            self.notice_errors(out);
        } else if !self.errors.is_empty() || self.aborted.is_some() {
            self.push_errors(out);
            self.ended_with_error = self.ended_with_error.map(|_| true);
        }
        self.recorded.settle(self.before.as_ref());
        self.printed.settle(self.before.as_ref());
        let spent = if self.recorded.usage.is_some() {
            std::mem::take(&mut self.recorded)
        } else {
            std::mem::take(&mut self.printed)
        };
        // The CLI exits successfully after an answer that was truncated or blocked.
        if self.ended_with_error == Some(false)
            && let Some(reason) = spent.finish_reason.as_deref()
            && let Some(message) = incomplete_answer(reason)
        {
            out.error(error(ErrorKind::Invalid, message));
            self.ended_with_error = Some(true);
        }
        // The answer has no end and no explanation of that.
        if self.ended_with_error == Some(false) && lane.unfinished && spent.finish_reason.is_none()
        {
            out.error(AgentError::new(
                ErrorCode::StreamEndedEarly,
                ErrorKind::Protocol,
                "the last message is incomplete: it was cut off or blocked, and the CLI does not report \
                 which",
            ));
            self.ended_with_error = None;
        }
        // Failed requests are not counted, so 0 is a missing figure.
        let of_this_run = self
            .total_api_duration_ms
            .filter(|ms| session.is_new && *ms > 0);
        DecodedResult {
            ended_with_error: self.ended_with_error,
            final_message: lane.answer.clone(),
            session_id: session.id(),
            model: self.model.clone().or_else(|| session.model().cloned()),
            api_duration_ms: spent.duration_ms.or(of_this_run),
            usage: spent.usage,
            usage_by_model: spent.by_model,
            num_turns: Some(self.turns).filter(|turns| *turns > 0),
            stop_reason: spent.finish_reason,
            ..DecodedResult::default()
        }
    }

    /// Emits errors that did not end the run as notices.
    fn notice_errors(&mut self, out: &mut Events) {
        // An interruption of a run that failed anyway is not reported.
        let aborted = self.aborted.take();
        let aborted = aborted.filter(|_| self.ended_with_error != Some(true));
        for error in self.errors.drain(..).chain(aborted) {
            out.notice(NoticeLevel::Warning, NoticeSource::Stdout, error.message);
        }
    }

    /// Reports failures, or else the interruption.
    fn push_errors(&mut self, out: &mut Events) {
        let aborted = self.aborted.take().filter(|_| self.errors.is_empty());
        for error in self.errors.drain(..).chain(aborted) {
            out.error(error);
        }
    }
}

/// Returns why the answer is incomplete, by the finish reason of the last request.
fn incomplete_answer(finish_reason: &str) -> Option<&'static str> {
    match finish_reason {
        "length" | "max_tokens" | "max_output_tokens" => {
            Some("the answer was cut off: the model reached its output limit")
        }
        "content_filter" => Some("the answer was blocked by the service's content filter"),
        "refusal" => Some("the model refused to answer"),
        _ => None,
    }
}

fn error(kind: ErrorKind, message: impl Into<String>) -> AgentError {
    AgentError::new(ErrorCode::CliError, kind, message)
}

fn turn_end(is_error: bool, out: &mut Events) {
    out.push(TurnEnd::new(is_error));
}
