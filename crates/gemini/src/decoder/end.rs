//! End of a run.

use std::collections::BTreeMap;

use teamster_core::provider::{DecodedResult, Events, Exit, Stop};
use teamster_core::{
    AgentError, ErrorCode, ErrorKind, ModelUsage, NoticeLevel, NoticeSource, TurnEnd, Usage,
};

use super::errors::{self, Failure};
use super::stderr::{self, Retry};
use super::wire::{ErrorLine, ErrorObject, ResultLine};

/// State of the end so far.
#[derive(Debug, Default)]
pub(super) struct End {
    /// The last `error` line, until the next line shows whether the run continues.
    last_error: Option<LastError>,
    /// Reason of the run's failure, if the exit code is needed to classify it.
    failure: Option<Failure>,
    failed: Option<bool>,
    /// True if the CLI resumed another session than the requested one.
    wrong_session: bool,
    /// Reason for which a hook stopped the agent with a tool's result.
    stopped: Option<String>,
    usage: Option<Usage>,
    usage_by_model: BTreeMap<String, ModelUsage>,
    /// True if there are rules that deny something.
    has_policy: bool,
    /// True if there was output of the model.
    answered: bool,
    /// True if a hook sent the answer back to the model: the next piece begins another answer.
    answer_blocked: bool,
    /// The answer after one that a hook sent back.
    next_answer: Option<String>,
}

#[derive(Debug)]
struct LastError {
    message: String,
    /// True if it is more than a warning.
    is_error: bool,
}

impl End {
    /// Creates the end of a run with or without rules that deny something.
    pub(super) fn new(has_policy: bool) -> Self {
        Self {
            has_policy,
            ..Self::default()
        }
    }

    /// Handles an `error` line, which may or may not end the run.
    pub(super) fn error_line(&mut self, line: ErrorLine<'_>, out: &mut Events) -> Option<()> {
        let message = line.message?.into_owned();
        self.warn(out);
        let is_error = line.severity.as_deref() == Some("error") || errors::ends_the_run(&message);
        self.answer_blocked |= errors::blocks_the_answer(&message);
        self.last_error = Some(LastError { message, is_error });
        Some(())
    }

    /// Records that the run continues after an `error` line.
    pub(super) fn continues(&mut self, out: &mut Events) {
        self.answered = true;
        self.warn(out);
    }

    /// Adds a piece of the answer.
    pub(super) fn answer(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if std::mem::take(&mut self.answer_blocked) {
            self.next_answer = Some(String::new());
        }
        if let Some(answer) = &mut self.next_answer {
            answer.push_str(text);
        }
    }

    /// Handles a tool call: the last message begins after it.
    pub(super) fn tool_called(&mut self) {
        self.answer_blocked = false;
        self.next_answer = None;
    }

    /// Emits the last `error` line as a warning.
    fn warn(&mut self, out: &mut Events) {
        if let Some(last) = self.last_error.take() {
            warning(last.message, out);
        }
        self.stopped = None;
    }

    /// Handles a tool's result, which may end the run.
    pub(super) fn tool_ended(&mut self, error: Option<&ErrorObject<'_>>) {
        let stopped = error.filter(|e| e.kind.as_deref() == Some(STOP));
        self.stopped = stopped.map(|e| e.message.as_deref().unwrap_or_default().to_owned());
    }

    /// Reports that the CLI resumed another session than the requested one.
    pub(super) fn wrong_session(&mut self, asked: &str, got: &str, out: &mut Events) {
        self.wrong_session = true;
        out.error(AgentError::new(
            ErrorCode::CliError,
            ErrorKind::SessionNotFound,
            format!("the CLI resumed the session {got} instead of {asked}"),
        ));
    }

    /// Handles the CLI's result line.
    pub(super) fn result(&mut self, line: &ResultLine<'_>, out: &mut Events) {
        let last = self.last_error.take();
        let (cause, warned) = match last {
            Some(last) if last.is_error => (Some(last.message), None),
            last => (None, last.map(|last| last.message)),
        };
        let is_failure = line.status.as_deref() != Some("success") || cause.is_some();
        let failed = is_failure || self.stopped.is_some();
        if let Some(message) = warned {
            warning(message, out);
        }
        if let Some(why) = self.stopped.as_deref().filter(|_| !is_failure) {
            // The CLI calls that a success.
            out.error(AgentError::new(
                ErrorCode::CliError,
                ErrorKind::Permission,
                format!("a hook ended the run: {why}"),
            ));
        }
        if is_failure {
            let error = line.error.and_then(ErrorObject::read);
            let message = error.as_ref().and_then(|e| e.message.as_deref());
            let message = message.or(cause.as_deref());
            let failure = Failure::new(
                error.as_ref().and_then(|e| e.kind.as_deref()),
                message.unwrap_or("the CLI reported a failure and said nothing about why"),
            );
            if failure.is_understood() {
                out.error(failure.into_error(None));
            } else {
                self.failure = Some(failure);
            }
        }
        self.failed = Some(failed);
        if let Some(stats) = &line.stats {
            self.usage = stats.usage();
            self.usage_by_model = stats.by_model();
        }
        out.push(
            TurnEnd::new(failed || self.wrong_session)
                .stop_reason(self.stop_reason())
                .usage(self.usage),
        );
    }

    /// Returns the stop reason. The CLI never reports the model's, only that a hook stopped the agent.
    fn stop_reason(&self) -> Option<String> {
        self.stopped.as_ref().map(|_| STOP.to_owned())
    }

    /// Handles the exit of the process.
    pub(super) fn finish(&mut self, exit: &Exit, out: &mut Events) -> DecodedResult {
        if let Some(failure) = self.failure.take() {
            let reported = stderr::reported(&exit.stderr);
            let reported = reported.map(|message| Failure::new(None, &message));
            out.error(reported.unwrap_or(failure).into_error(exit.code));
        }
        match self.last_error.take() {
            // The expected result never came.
            Some(last) if last.is_error => {
                out.error(Failure::new(None, &last.message).into_error(exit.code));
            }
            Some(last) => warning(last.message, out),
            None => self.gone_while_retrying(exit, out),
        }
        if self.has_policy && stderr::policy_was_ignored(&exit.stderr) {
            self.failed = Some(true);
            out.error(AgentError::new(
                ErrorCode::CliStderr,
                ErrorKind::Permission,
                "the CLI did not read this run's rules, so denied tools may have run; see its stderr",
            ));
        }
        DecodedResult {
            ended_with_error: if self.wrong_session {
                Some(true)
            } else {
                self.failed
            },
            usage: self.usage.take(),
            usage_by_model: std::mem::take(&mut self.usage_by_model),
            stop_reason: self.stop_reason(),
            final_message: self.next_answer.take(),
            ..DecodedResult::default()
        }
    }
}

impl End {
    /// Reports the CLI's message about a request that it wanted to repeat, if the process has exited without a result
    /// and there is no other reason.
    fn gone_while_retrying(&self, exit: &Exit, out: &mut Events) {
        let stopped = exit.stop == Some(Stop::Aborted);
        if self.failed.is_some() || stopped || !stderr::evidence(&exit.stderr).is_empty() {
            return;
        }
        let Some(Retry { how, kind }) = Retry::last(&exit.stderr) else {
            return;
        };
        let last = format!("the last reported request failed{how}");
        if exit.stop.is_some() || !exit.is_failure() {
            return out.notice(NoticeLevel::Warning, NoticeSource::Stderr, last);
        }
        let ended = match (&exit.signal, exit.code) {
            (Some(signal), _) => format!("was ended by {signal}"),
            (None, Some(code)) => format!("exited with code {code}"),
            (None, None) => "ended in an unknown way".to_owned(),
        };
        // After output of the model, that request may have succeeded long ago.
        let kind = kind.filter(|_| !self.answered);
        let kind = kind.or_else(|| exit.code.and_then(errors::kind_of_exit_code));
        out.error(AgentError::new(
            ErrorCode::CliExitError,
            kind.unwrap_or(ErrorKind::Internal),
            format!("the CLI {ended} before its run was over; {last}"),
        ));
    }
}

/// Type of a tool's error with which a hook ends the run.
const STOP: &str = "stop_execution";

fn warning(message: String, out: &mut Events) {
    out.notice(NoticeLevel::Warning, NoticeSource::Stdout, message);
}
