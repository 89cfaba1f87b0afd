//! The end of a run. It has no line: the last lines, the exit code and stderr show it together.

use teamster_core::provider::{DecodedResult, Events, Exit, Stop};
use teamster_core::text::without_colors;
use teamster_core::{AgentError, ErrorCode, ErrorKind, NoticeLevel, NoticeSource, Retry, TurnEnd};

use super::OpenCodeDecoder;
use super::errors;
use super::stderr::{failed_requests, missing_servers, without_log, without_warnings};
use super::steps::End;

impl OpenCodeDecoder {
    pub(super) fn end(&mut self, exit: &Exit, out: &mut Events) -> DecodedResult {
        let stderr = without_colors(&exit.stderr);
        for line in stderr.lines() {
            if line.contains("Falling back to default agent") {
                let line = line.trim_start_matches(['!', ' ']);
                out.notice(NoticeLevel::Warning, NoticeSource::Stderr, line);
            }
        }
        for message in missing_servers(&stderr) {
            out.notice(NoticeLevel::Warning, NoticeSource::Stderr, message);
        }
        self.silent_retries(&stderr, out);
        let ended_with_error = self.how_it_ended(exit, &stderr, out);
        let stop_reason = self.steps.reason().map(str::to_owned);
        let usage = self.steps.usage();
        let cost = self.steps.cost();
        if let Some(is_error) = ended_with_error {
            out.push(
                TurnEnd::new(is_error)
                    .stop_reason(stop_reason.clone())
                    .usage(usage)
                    .cost_usd(cost.map(|(usd, _)| usd)),
            );
        }
        DecodedResult {
            ended_with_error,
            session_id: self.session.clone(),
            model: self.model.clone(),
            usage,
            cost,
            num_turns: self.steps.finished(),
            stop_reason,
            ..DecodedResult::default()
        }
    }

    /// Reports requests that were repeated without a line of output. The log has every failed request; all but the
    /// final one were repeated.
    fn silent_retries(&self, stderr: &str, out: &mut Events) {
        // A conversation that was too long is not resent unchanged.
        let failed = |kind| kind != Some(ErrorKind::ContextWindow);
        let got_over = self.overcome.as_ref();
        // The log may repeat failures of the output. Too few reports are better than duplicates.
        if self.reported_retry || got_over.is_some_and(|error| failed(Some(error.error.kind))) {
            return;
        }
        let mut messages = failed_requests(stderr, self.session.as_deref());
        messages.retain(|message| failed(errors::kind_of_text(message)));
        if let Some(error) = &self.error
            && failed(Some(error.error.kind))
        {
            messages.pop();
        }
        for (message, attempt) in messages.into_iter().zip(1..) {
            let kind = errors::kind_of_text(&message).unwrap_or(ErrorKind::Internal);
            let error = AgentError::new(ErrorCode::CliError, kind, message).retryable(true);
            // Without a maximum: the log does not distinguish requests.
            out.push(Retry::new(attempt, error));
        }
    }

    /// Returns whether the run failed, or `None` if it did not come to its end. Pushes the error of a failed run.
    fn how_it_ended(&mut self, exit: &Exit, stderr: &str, out: &mut Events) -> Option<bool> {
        if let Some(error) = self.error.take() {
            out.error(error.explained(stderr));
            return Some(true);
        }
        if self.broken {
            return None;
        }
        match self.steps.end() {
            End::Complete => self.exited_well(exit).then_some(false),
            End::Cut => {
                let message = if self.steps.reason() == Some("length") {
                    "the answer was cut off at the limit of output tokens"
                } else {
                    "the answer was blocked by the service's content filter"
                };
                out.error(AgentError::new(
                    ErrorCode::CliError,
                    ErrorKind::Invalid,
                    message,
                ));
                Some(true)
            }
            End::Failed => {
                out.error(AgentError::new(
                    ErrorCode::CliError,
                    ErrorKind::Internal,
                    "the model's service ended the answer with an error and did not say which",
                ));
                Some(true)
            }
            End::None => {
                self.explain_missing_end(exit, stderr, out);
                None
            }
        }
    }

    /// Returns whether the process exited successfully. The exit code is 1 after any error, even one after which the
    /// run continued.
    fn exited_well(&self, exit: &Exit) -> bool {
        match (exit.stop.as_ref(), exit.code) {
            (Some(Stop::Lingering), _) | (None, Some(0)) => true,
            (None, Some(1)) => self.overcome.is_some(),
            // A recording may not contain how its process exited.
            (None, None) => exit.signal.is_none(),
            _ => false,
        }
    }

    /// Explains a missing end if more is known than the exit code and stderr.
    fn explain_missing_end(&mut self, exit: &Exit, stderr: &str, out: &mut Events) {
        if matches!(exit.stop, Some(Stop::Timeout(_))) && self.resumed && self.session.is_none() {
            out.notice(
                NoticeLevel::Warning,
                NoticeSource::Runtime,
                "OpenCode prints nothing and never ends when a session is resumed in another \
                 directory than its own (`opencode session list` names it): set working_directory \
                 to that",
            );
        }
        if exit.stop.is_some() {
            return;
        }
        if exit.code == Some(0)
            && let Some(tool) = &self.denials.rejected
        {
            let asked = stderr
                .lines()
                .filter_map(|line| line.split_once("permission requested: "))
                .filter_map(|(_, asked)| asked.strip_suffix("; auto-rejecting"))
                .next_back()
                .map_or_else(String::new, |asked| format!(" ({asked})"));
            out.error(AgentError::new(
                ErrorCode::StreamEndedEarly,
                ErrorKind::Permission,
                format!(
                    "OpenCode ended the run because the tool {tool} needs a permission that a run \
                     cannot ask for{asked}; allow it, or set experimental.continue_loop_on_deny"
                ),
            ));
        } else if exit.code == Some(1)
            && let Some(error) = self.overcome.take()
        {
            // The run continued without a result.
            out.error(error.explained(stderr));
        } else if exit.is_failure()
            && self.session.is_none()
            && let Some(error) = self
                .help
                .too_old(stderr)
                .or_else(|| errors::of_database(stderr))
        {
            out.error(error);
        }
    }

    /// Returns the evidence of a failure on stderr, without the log, which also has errors that the run survived. For
    /// a run without a session, the errors of the log are better than nothing.
    pub(super) fn evidence(&self, stderr: &str) -> String {
        let stderr = without_colors(stderr);
        match without_log(&stderr) {
            text if text.is_empty() && self.session.is_none() => without_warnings(&stderr),
            text => text,
        }
    }
}
