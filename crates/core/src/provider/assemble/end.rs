//! The end of a run: its errors, its status and its result.

use std::collections::HashMap;

use super::RunAssembler;
use crate::provider::{DecodedResult, Exit, Stop};
use crate::text::{error_of_stack, tail};
use crate::{AgentError, ErrorCode, ErrorKind, RunResult, RunStatus};

/// Limit of stderr in an error message, in bytes.
const EVIDENCE_BYTES: usize = 2048;

impl RunAssembler {
    /// Returns the error of a run that the CLI reports as a success although nothing came of the prompt: no text, no
    /// reasoning, no tool call, no plan and no changed file.
    ///
    /// It is an error with every CLI. Copilot and Gemini report it themselves, others end such a turn as any other: after a
    /// failed request, beside another process that works with the session, or if the model had nothing to say.
    pub(super) fn unanswered(&self, exit: &Exit, summary: &DecodedResult) -> Option<AgentError> {
        let is_success = summary.ended_with_error == Some(false)
            && matches!(exit.stop, None | Some(Stop::Lingering));
        let final_message = summary.final_message.as_deref().unwrap_or_default();
        let has_output = self.has_output
            || self.changed_files
            || !self.text.is_blank()
            || !self.tools.is_empty()
            || !self.denials.is_empty()
            || !final_message.trim().is_empty()
            || summary.structured_output.is_some();
        // Programs that print text may have nothing to print.
        if !is_success || has_output || self.may_be_silent || self.decoder.takes_text() {
            return None;
        }
        let message = if self.resumes {
            "the CLI resumed the session and reported success, but produced no text and no tool use: another process may \
             be working with this session"
        } else if summary.num_turns == Some(0) {
            "the CLI reported success without asking the model"
        } else {
            "the CLI reported success, but there is no answer: no text, no reasoning and no tool use"
        };
        let note = stderr_note(&self.decoder.stderr_evidence(&exit.stderr));
        Some(AgentError::new(
            ErrorCode::CliError,
            ErrorKind::Protocol,
            format!("{message}{note}"),
        ))
    }

    /// Returns whether permission was denied and nothing else came of the run: every call was denied, or some
    /// were and there is no text. A question without an answer denies nothing.
    fn did_nothing_but_denied_calls(&self) -> bool {
        self.has_denied_tool
            && (self.text.is_blank() || !(self.changed_files || self.has_permitted_calls()))
    }

    /// Returns whether a call was not denied. A denial without an id is of one call of its tool.
    fn has_permitted_calls(&self) -> bool {
        let mut unnamed: HashMap<&str, usize> = HashMap::new();
        for denial in &self.denials {
            if denial.tool_id.is_none() {
                *unnamed.entry(&denial.tool_name).or_default() += 1;
            }
        }
        self.tools.calls().any(|(id, name)| {
            let is_named = self.denied_calls.contains(id);
            match unnamed.get_mut(name.as_str()).filter(|left| **left > 0) {
                _ if is_named => false,
                Some(left) => {
                    *left -= 1;
                    false
                }
                None => true,
            }
        })
    }

    /// Returns the errors to report at the end: why the process was stopped, or how it failed.
    pub(super) fn errors_of_the_end(
        &self,
        exit: &Exit,
        summary: &DecodedResult,
    ) -> Vec<AgentError> {
        match &exit.stop {
            Some(Stop::Aborted) => vec![Self::aborted_error()],
            Some(Stop::Timeout(error)) => vec![AgentError {
                message: format!(
                    "{}{}",
                    error.message,
                    stderr_note(&self.decoder.stderr_evidence(&exit.stderr))
                ),
                ..error.clone()
            }],
            Some(Stop::Failed(error)) => vec![error.clone()],
            Some(Stop::Lingering) | None => self.failure(exit, summary).into_iter().collect(),
        }
    }

    /// Returns the error of a run that ended without the CLI's own end and without any error.
    fn failure(&self, exit: &Exit, summary: &DecodedResult) -> Option<AgentError> {
        if summary.ended_with_error.is_some() || !self.errors.is_empty() {
            return None;
        }
        let by_itself = exit.stop.is_none();
        let stderr = self.decoder.stderr_evidence(&exit.stderr);
        let stderr = stderr.trim();
        let kind = self.decoder.classify_stderr(stderr);
        let kind_of_code = || self.decoder.classify_exit_code(exit.code?);
        // A process that is killed cannot write why.
        let is_unexplained = exit.signal.as_deref() == Some("SIGKILL") && kind.is_none();
        if !stderr.is_empty()
            && by_itself
            && !is_unexplained
            && (exit.is_failure() || self.diagnostics.lines == 0 || kind.is_some())
        {
            return Some(AgentError::new(
                ErrorCode::CliStderr,
                kind.or_else(kind_of_code).unwrap_or(ErrorKind::Internal),
                tail(error_of_stack(stderr).unwrap_or(stderr), EVIDENCE_BYTES),
            ));
        }
        if by_itself && exit.is_failure() {
            let how = match (&exit.signal, exit.code) {
                (Some(signal), _) => format!("was ended by {signal}"),
                (None, Some(code)) => format!("exited with code {code}"),
                (None, None) => "ended in an unknown way".to_owned(),
            };
            return Some(AgentError {
                // A signal from elsewhere does not predict the next run.
                retryable: exit.signal.is_some(),
                ..AgentError::new(
                    ErrorCode::CliExitError,
                    kind_of_code().unwrap_or(ErrorKind::Internal),
                    format!(
                        "the CLI {how} before its run was over and said nothing about why{}",
                        stderr_note(stderr)
                    ),
                )
            });
        }
        Some(AgentError::new(
            ErrorCode::StreamEndedEarly,
            ErrorKind::Protocol,
            format!(
                "the CLI's output ended before its run was over, so the answer may be incomplete{}",
                stderr_note(stderr)
            ),
        ))
    }

    pub(super) fn into_result(
        self,
        exit: Exit,
        summary: DecodedResult,
        duration_ms: u64,
    ) -> RunResult {
        let denied = summary.structured_output.is_none() && self.did_nothing_but_denied_calls();
        let final_message = summary.final_message.or_else(|| self.text.last_message());
        let pieces = self.text.text_pieces();
        let text = self.text.into_text();
        let status = match (&exit.stop, summary.ended_with_error) {
            (Some(Stop::Aborted), _) => RunStatus::Aborted,
            (Some(Stop::Timeout(_)), _) => RunStatus::TimedOut,
            (Some(Stop::Failed(_)), _) | (_, Some(true)) => RunStatus::Failed,
            (_, Some(false)) if denied => RunStatus::Incomplete,
            (_, Some(false)) => RunStatus::Completed,
            (_, None) => match self.errors.last().map(|e| e.code) {
                Some(ErrorCode::StreamEndedEarly) | None => RunStatus::Incomplete,
                Some(_) => RunStatus::Failed,
            },
        };
        RunResult {
            status,
            text,
            pieces,
            final_message,
            session_id: summary.session_id.or(self.session_id),
            model: summary.model.or(self.model),
            duration_ms,
            api_duration_ms: summary.api_duration_ms,
            usage: summary.usage.filter(|u| !u.is_empty()),
            session_usage: summary.session_usage.filter(|u| !u.is_empty()),
            usage_by_model: summary.usage_by_model,
            total_cost_usd: summary.cost.map(|(usd, _)| usd),
            cost_source: summary.cost.map(|(_, source)| source),
            num_turns: summary.num_turns,
            stop_reason: summary.stop_reason,
            aborted: status == RunStatus::Aborted,
            exit_code: exit.code,
            exit_signal: exit.signal,
            stderr: Some(exit.stderr).filter(|s| !s.trim().is_empty()),
            errors: self.errors,
            permission_denials: self.denials,
            open_tool_ids: self.tools.into_open(),
            structured_output: summary.structured_output,
            workspace: None,
            diagnostics: self.diagnostics,
        }
    }
}

fn stderr_note(stderr: &str) -> String {
    match stderr.trim() {
        "" => String::new(),
        stderr => format!("; stderr: {}", tail(stderr, EVIDENCE_BYTES)),
    }
}
