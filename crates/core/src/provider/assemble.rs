//! Shared logic of all providers between a decoder and the stream.

mod mixed;

use crate::provider::{Activity, Decoder, Events, Exit, RecordFiles, RunSummary, Secrets, Stop};
use crate::text::{excerpt, tail};
use crate::{
    AgentError, AgentEvent, Decision, Diagnostics, Done, ErrorCode, ErrorKind, Id, NoticeLevel,
    NoticeSource, PermissionDenial, RawJson, RunResult, RunStatus, Text, TextLedger, Thinking,
    ToolLedger, UsageReport,
};

/// Limit of stderr in an error message, in bytes.
const EVIDENCE_BYTES: usize = 2048;

/// Runs a [`Decoder`] on the lines of one run, enforces the grammar of the stream, and creates the [`RunResult`].
///
/// It is pure: the engine, replay, tests, fuzzing and benchmarks all use it.
pub struct RunAssembler {
    decoder: Box<dyn Decoder>,
    include_native: bool,
    secrets: Secrets,
    text: TextLedger,
    /// Tool calls with the names of their tools.
    tools: ToolLedger<String>,
    errors: Vec<AgentError>,
    denials: Vec<PermissionDenial>,
    session_id: Option<Id>,
    model: Option<String>,
    turn_ended: bool,
    stopping: bool,
    started: bool,
    resumes: bool,
    diagnostics: Diagnostics,
}

/// The CLI's current activity as seen in its output. It selects the watchdog's limit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// The CLI has printed nothing yet.
    Startup,
    /// The model or the CLI itself works.
    Model,
    /// These tools run.
    Tools(Vec<String>),
    /// The turn is over and work continues in the background.
    Background,
    /// The CLI waits for the caller's answer to a permission request.
    Asking,
    /// The turn is over and no more output is expected.
    Ended,
    /// The process waits for a turn.
    Idle,
}

impl RunAssembler {
    /// Creates an assembler for one run. `include_native` attaches the native line to every event.
    pub fn new(decoder: Box<dyn Decoder>, include_native: bool) -> Self {
        Self {
            decoder,
            include_native,
            secrets: Secrets::default(),
            text: TextLedger::default(),
            tools: ToolLedger::default(),
            errors: Vec::new(),
            denials: Vec::new(),
            session_id: None,
            model: None,
            turn_ended: false,
            stopping: false,
            started: false,
            resumes: false,
            diagnostics: Diagnostics::default(),
        }
    }

    /// Removes secrets from notices, errors and the end of stderr, but not from the output of the agent and its tools.
    #[must_use]
    pub fn hide(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// Keeps no text for the result. Its `text` is empty, and its `final_message` is only set if the CLI reports one.
    #[must_use]
    pub fn without_text(mut self) -> Self {
        self.text = TextLedger::without_text();
        self
    }

    /// Marks the process as started: it has already printed output.
    #[must_use]
    pub fn started(mut self) -> Self {
        self.started = true;
        self
    }

    /// Sets whether the prompt goes to an existing session. If such a run ends in success without any text or tool use,
    /// the CLI has lost the prompt, and the run has failed.
    #[must_use]
    pub fn resumes(mut self, resumes: bool) -> Self {
        self.resumes = resumes;
        self
    }

    /// Processes the events that `push` adds, which have no line.
    pub fn events(&mut self, out: &mut Events, push: impl FnOnce(&mut Events)) {
        let from = out.items.len();
        push(out);
        self.check(from, None, out);
    }

    /// Processes one line without its newline and pushes its events.
    pub fn line(&mut self, line: &[u8], out: &mut Events) {
        if self.decoder.takes_text() {
            self.diagnostics.lines += 1;
            let from = out.items.len();
            self.decoder.line(line, out);
            return self.check(from, None, out);
        }
        let Some(first) = line.iter().find(|b| !b.is_ascii_whitespace()) else {
            return;
        };
        self.diagnostics.lines += 1;
        let from = out.items.len();
        if *first != b'{' {
            return self.mixed_line(line, out);
        }
        let malformed = out.malformed;
        self.decoder.line(line, out);
        if out.malformed > malformed && out.items.len() == from + 1 {
            return self.malformed_line(line, out);
        }
        self.check(from, Some(line), out);
    }

    /// Reports a line that was longer than the limit: `bytes` long, beginning with `head`.
    pub fn oversize_line(&mut self, bytes: u64, head: &[u8], out: &mut Events) {
        self.diagnostics.lines += 1;
        self.diagnostics.oversize += 1;
        out.notice(
            NoticeLevel::Warning,
            NoticeSource::Runtime,
            format!(
                "a line of {bytes} bytes was longer than the limit and is lost; it began with: {}",
                excerpt(&String::from_utf8_lossy(head), 200)
            ),
        );
    }

    /// Reports output of this size, in bytes, that was left out: the CLI was stopped and printed ever more.
    pub fn lost_output(&mut self, bytes: u64, out: &mut Events) {
        out.malformed += 1;
        out.notice(
            NoticeLevel::Warning,
            NoticeSource::Runtime,
            format!("the CLI printed {bytes} bytes after it was stopped, and the last of them are left out"),
        );
    }

    /// Returns the files in which the CLI records data that it does not print, as soon as they are known.
    pub fn record_files(&self) -> Option<RecordFiles> {
        self.decoder.record_files()
    }

    /// Processes a new line of these files and pushes the usage that it reports.
    pub fn record_line(&mut self, line: &str, out: &mut Events) {
        if let Some(usage) = self.decoder.record_line(line) {
            out.push(AgentEvent::Usage(Box::new(UsageReport {
                usage,
                cost_usd: None,
            })));
        }
    }

    /// Returns the CLI's current activity.
    pub fn phase(&self) -> Phase {
        if self.diagnostics.lines == 0 && !self.started {
            return Phase::Startup;
        }
        match self.decoder.activity() {
            Activity::None if self.turn_ended => Phase::Ended,
            Activity::Background if self.turn_ended => Phase::Background,
            _ if self.tools.open().len() == 0 => Phase::Model,
            _ => Phase::Tools(self.tools.open().map(|(_, name)| name.clone()).collect()),
        }
    }

    /// Returns whether the CLI reported the end of its turn and no more output is expected.
    pub fn has_ended(&self) -> bool {
        self.turn_ended && self.decoder.activity() == Activity::None
    }

    /// Announces that the process is about to be stopped from outside. An interruption that the CLI reports is then
    /// ignored: the end of the run has the reason for the stop.
    pub fn stop_requested(&mut self) {
        self.stopping = true;
        self.decoder.stop_requested();
    }

    /// Returns whether any tool was used.
    pub fn used_tools(&self) -> bool {
        !self.tools.is_empty()
    }

    /// Ends the run: pushes the remaining events, with `done` last.
    pub fn finish(mut self, mut exit: Exit, duration_ms: u64, out: &mut Events) {
        for line in &exit.record {
            self.decoder.record_line(line);
        }
        let from = out.items.len();
        let mut summary = self.decoder.finish(&exit, out);
        self.check(from, None, out);
        if self.lost_the_prompt(&exit, &summary) {
            summary.ended_with_error = Some(true);
            let error = AgentError::new(
                ErrorCode::StreamEndedEarly,
                ErrorKind::Protocol,
                "the CLI resumed the session and reported success, but produced no text and no tool use: another process may \
                 be working with this session",
            );
            self.errors.push(error.clone());
            out.error(error);
        }
        self.secrets.hide_in(&mut exit.stderr);
        for mut error in self.errors_of_the_end(&exit, &summary) {
            self.secrets.hide_in(&mut error.message);
            self.errors.push(error.clone());
            out.error(error);
        }
        self.diagnostics.malformed = out.malformed;
        self.diagnostics.unknown = out.unknown;
        let result = self.into_result(exit, summary, duration_ms);
        out.push(AgentEvent::Done(Done {
            result: Box::new(result),
        }));
    }

    /// Returns the whole stream of a run that could not begin.
    pub fn refuse(error: AgentError) -> [AgentEvent; 2] {
        let status = if error.kind == ErrorKind::Aborted {
            RunStatus::Aborted
        } else {
            RunStatus::Failed
        };
        let result = RunResult {
            status,
            aborted: status == RunStatus::Aborted,
            errors: vec![error.clone()],
            ..RunResult::default()
        };
        [
            AgentEvent::error(error),
            AgentEvent::Done(Done {
                result: Box::new(result),
            }),
        ]
    }

    /// Creates the error of a run that the caller stopped.
    pub fn aborted_error() -> AgentError {
        AgentError::new(
            ErrorCode::Aborted,
            ErrorKind::Aborted,
            "the run was stopped by its caller",
        )
    }

    /// Checks the events pushed since `from`: removes those that would break the grammar, attaches the line, and
    /// collects the data of the result.
    fn check(&mut self, from: usize, line: Option<&[u8]>, out: &mut Events) {
        let mut refused = false;
        let mut index = from;
        if self.stopping {
            let mut at = 0;
            out.items.retain(|event| {
                at += 1;
                at <= from
                    || !matches!(event, AgentEvent::Error(e) if e.error.kind == ErrorKind::Aborted)
            });
        }
        for event in &mut out.items[from..] {
            match event {
                AgentEvent::Notice(notice) => self.secrets.hide_in(&mut notice.message),
                AgentEvent::Error(error) => self.secrets.hide_in(&mut error.error.message),
                _ => {}
            }
        }
        while index < out.items.len() {
            if self.is_already_reported(&out.items[index]) {
                out.items.remove(index);
            } else if self.observe(&out.items[index]) {
                index += 1;
            } else {
                out.items.remove(index);
                refused = true;
            }
        }
        let Some(line) = line else { return };
        if refused {
            // A result whose call was lost, or an id that is used twice.
            out.unknown(line);
        }
        if self.include_native
            && out.items.len() > from
            && let Ok(native) = RawJson::from_bytes(line)
        {
            out.set_native(from, &native);
        }
    }

    /// Returns whether a denial was already reported. Both the CLI and the engine, which answered, report it.
    fn is_already_reported(&self, event: &AgentEvent) -> bool {
        let AgentEvent::Permission(e) = event else {
            return false;
        };
        let is_of_call = |denial: &PermissionDenial| denial.tool_id == e.tool_id;
        e.decision == Decision::Denied && e.tool_id.is_some() && self.denials.iter().any(is_of_call)
    }

    /// Records an event. Returns `false` if it MUST NOT be in the stream.
    fn observe(&mut self, event: &AgentEvent) -> bool {
        let in_stream = self.note(event);
        if in_stream {
            self.text.event(event);
        }
        in_stream
    }

    /// Records an event except its text. Returns `false` if it MUST NOT be in the stream.
    fn note(&mut self, event: &AgentEvent) -> bool {
        match event {
            AgentEvent::Text(Text { parent_tool_id, .. })
            | AgentEvent::Thinking(Thinking { parent_tool_id, .. })
                if parent_tool_id.is_none() =>
            {
                self.turn_ended = false;
            }
            AgentEvent::ToolUse(e) => {
                // A sub-agent's call in the background does not begin a new turn.
                if e.parent_tool_id.is_none() {
                    self.turn_ended = false;
                }
                return self.tools.start(&e.tool_id, e.tool_name.clone());
            }
            AgentEvent::ToolResult(e) => return self.tools.end(&e.tool_id).is_some(),
            AgentEvent::Session(e) => {
                self.session_id = Some(e.session_id.clone());
                if e.model.is_some() {
                    self.model.clone_from(&e.model);
                }
                self.turn_ended = false;
            }
            AgentEvent::Permission(e) if e.decision == Decision::Denied => {
                self.denials.push(PermissionDenial {
                    tool_name: e.tool_name.clone(),
                    tool_id: e.tool_id.clone(),
                    reason: e.reason.clone(),
                });
            }
            AgentEvent::TurnEnd(_) => self.turn_ended = true,
            AgentEvent::Error(e) => self.errors.push(e.error.clone()),
            AgentEvent::Done(_) | AgentEvent::Newer(_) => return false,
            _ => {}
        }
        true
    }

    /// Returns whether a resumed session ended in success without any output or tool use.
    fn lost_the_prompt(&self, exit: &Exit, summary: &RunSummary) -> bool {
        let answered = (summary.usage.as_ref()).is_some_and(|it| it.output_tokens > Some(0));
        self.resumes
            && matches!(exit.stop, None | Some(Stop::Lingering))
            && summary.ended_with_error == Some(false)
            && summary.structured_output.is_none()
            && self.text.is_blank()
            && self.tools.is_empty()
            && self.denials.is_empty()
            && !answered
    }

    /// Returns the errors to report at the end: why the process was stopped, or how it failed.
    fn errors_of_the_end(&self, exit: &Exit, summary: &RunSummary) -> Vec<AgentError> {
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
    fn failure(&self, exit: &Exit, summary: &RunSummary) -> Option<AgentError> {
        if summary.ended_with_error.is_some() || !self.errors.is_empty() {
            return None;
        }
        let by_itself = exit.stop.is_none();
        let stderr = self.decoder.stderr_evidence(&exit.stderr);
        let stderr = stderr.trim();
        let kind = self.decoder.classify_stderr(stderr);
        let kind_of_code = || self.decoder.classify_exit_code(exit.code?);
        if !stderr.is_empty()
            && by_itself
            && (exit.is_failure() || self.diagnostics.lines == 0 || kind.is_some())
        {
            return Some(AgentError::new(
                ErrorCode::CliStderr,
                kind.or_else(kind_of_code).unwrap_or(ErrorKind::Internal),
                tail(stderr, EVIDENCE_BYTES),
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
                    format!("the CLI {how} before its run was over and said nothing about why"),
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

    fn into_result(self, exit: Exit, summary: RunSummary, duration_ms: u64) -> RunResult {
        let empty = self.text.is_blank() && summary.structured_output.is_none();
        let final_message = summary.final_message.or_else(|| self.text.last_message());
        let pieces = self.text.text_pieces();
        let text = self.text.into_text();
        let status = match (&exit.stop, summary.ended_with_error) {
            (Some(Stop::Aborted), _) => RunStatus::Aborted,
            (Some(Stop::Timeout(_)), _) => RunStatus::TimedOut,
            (Some(Stop::Failed(_)), _) | (_, Some(true)) => RunStatus::Failed,
            (_, Some(false)) if empty && !self.denials.is_empty() => RunStatus::Incomplete,
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

#[cfg(test)]
mod tests;
