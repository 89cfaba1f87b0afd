//! Shared logic of all providers between a decoder and the stream.

mod end;
mod mixed;

use std::collections::HashSet;

use crate::provider::{Activity, Decoder, Events, Exit, RecordFiles, Secrets};
use crate::raw_json::make_readable;
use crate::readable_json::readable;
use crate::setters::setters;
use crate::text::excerpt;
use crate::{
    AgentError, AgentEvent, Decision, Diagnostics, Done, ErrorCode, ErrorKind, Id, NoticeLevel,
    NoticeSource, PermissionDenial, RawJson, RunResult, RunStatus, SessionStarted, Text,
    TextLedger, Thinking, ToolLedger, UsageReport,
};

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
    /// Ids of the calls in `denials`.
    denied_calls: HashSet<Id>,
    /// True if a tool was denied. Of a question in `denials` it is only known that it has no answer.
    has_denied_tool: bool,
    session_id: Option<Id>,
    model: Option<String>,
    turn_ended: bool,
    stopping: bool,
    started: bool,
    resumes: bool,
    may_be_silent: bool,
    /// True if there was output other than text of the main agent and calls of tools.
    has_output: bool,
    changed_files: bool,
    /// Error that the CLI retries although it cannot heal.
    hopeless: Option<AgentError>,
    reset_time: fn(&str) -> Option<u64>,
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

setters! {
    RunAssembler {
        /// Attaches the native line to every event ([`ExecuteParams::include_native`](crate::ExecuteParams)).
        set include_native: bool,
        /// Removes secrets from notices, errors and the end of stderr, but not from the output of the agent and its tools.
        set secrets as hide: Secrets,
        /// Sets whether the prompt goes to an existing session, for the error of a run without an answer.
        set resumes: bool,
        /// Sets whether the run may end in success without any output: its prompt is a command of the CLI
        /// ([`ExecuteParams::is_command`](crate::ExecuteParams::is_command)), or it has none. Any other run has failed
        /// then ([`ErrorKind::Protocol`]), unless the decoder [takes text](Decoder::takes_text).
        set may_be_silent: bool,
        /// Sets a function that finds the time at which a limit resets in the message about it, in milliseconds since the
        /// Unix epoch. A clock time depends on the current time and the time zone, which this code does not know.
        set reset_time: fn(&str) -> Option<u64>,
    }
}

impl RunAssembler {
    /// Creates an assembler for one run.
    pub fn new(decoder: Box<dyn Decoder>) -> Self {
        Self {
            decoder,
            include_native: false,
            secrets: Secrets::default(),
            text: TextLedger::default(),
            tools: ToolLedger::default(),
            errors: Vec::new(),
            denials: Vec::new(),
            denied_calls: HashSet::new(),
            has_denied_tool: false,
            session_id: None,
            model: None,
            turn_ended: false,
            stopping: false,
            started: false,
            resumes: false,
            may_be_silent: false,
            has_output: false,
            changed_files: false,
            hopeless: None,
            reset_time: |_| None,
            diagnostics: Diagnostics::default(),
        }
    }

    /// Marks the process as started: it has already printed output.
    #[must_use]
    pub fn started(mut self) -> Self {
        self.started = true;
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
        let head = self
            .secrets
            .hide(String::from_utf8_lossy(head).into_owned());
        out.notice(
            NoticeLevel::Warning,
            NoticeSource::Runtime,
            format!(
                "a line of {bytes} bytes was longer than the limit and is lost; it began with: {}",
                excerpt(&head, 200)
            ),
        );
    }

    /// Reports output of this size, in bytes, that was left out: the CLI was stopped and printed ever more.
    pub fn lost_output(&mut self, bytes: u64, out: &mut Events) {
        out.malformed += 1;
        out.notice(
            NoticeLevel::Warning,
            NoticeSource::Runtime,
            format!("the CLI printed {bytes} bytes while it was being stopped; the end of them is left out"),
        );
    }

    /// Returns the files in which the CLI records data that it does not print, as soon as they are known.
    pub fn record_files(&self) -> Option<RecordFiles> {
        self.decoder.record_files()
    }

    /// Processes a new line of these files and pushes the usage that it reports.
    pub fn record_line(&mut self, line: &str, out: &mut Events) {
        let replaced = readable(line);
        let line = replaced.as_deref().unwrap_or(line);
        if let Some(usage) = self.decoder.record_line(line) {
            self.model_is_recorded(out);
            out.push(UsageReport::new(usage));
        }
    }

    /// Pushes the session with its model, once the CLI's files name one that the output does not.
    fn model_is_recorded(&mut self, out: &mut Events) {
        if self.model.is_none()
            && let Some(id) = &self.session_id
            && let Some(model) = self.decoder.recorded_model()
        {
            self.model = Some(model.clone());
            out.push(SessionStarted::new(id.clone()).model(model));
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
            Activity::Waiting => Phase::Background,
            _ if self.tools.open().len() == 0 => Phase::Model,
            _ => Phase::Tools(self.tools.open().map(|(_, name)| name.clone()).collect()),
        }
    }

    /// Returns the error that ends the run, if the CLI reports that it retries after one that cannot heal: its
    /// credentials are wrong ([`ErrorKind::Auth`]). CLIs retry it for up to three minutes.
    ///
    /// A retry whose error is marked as retryable is left to the CLI.
    pub fn hopeless(&self) -> Option<&AgentError> {
        self.hopeless.as_ref()
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
        if let Some(output) = &mut summary.structured_output {
            make_readable(output);
        }
        summary.cost = summary.cost.filter(|(usd, _)| is_figure(*usd));
        for of_model in summary.usage_by_model.values_mut() {
            keep_figure(&mut of_model.cost_usd);
        }
        summary.model = summary.model.or_else(|| self.decoder.recorded_model());
        self.check(from, None, out);
        self.secrets.hide_in(&mut exit.stderr);
        if let Some(error) = self.unanswered(&exit, &summary) {
            summary.ended_with_error = Some(true);
            self.errors.push(error.clone());
            out.error(error);
        }
        for mut error in self.errors_of_the_end(&exit, &summary) {
            self.complete(&mut error);
            self.errors.push(error.clone());
            out.error(error);
        }
        self.diagnostics.malformed = out.malformed + out.too_deep;
        self.diagnostics.unknown = out.unknown;
        self.diagnostics.unfinished_calls = out.unfinished_calls;
        let result = self.into_result(exit, summary, duration_ms);
        out.push(Done {
            result: Box::new(result),
        });
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
                AgentEvent::Error(error) => self.complete(&mut error.error),
                AgentEvent::Retry(retry) => self.secrets.hide_in(&mut retry.error.message),
                AgentEvent::ToolUse(call) => make_readable(&mut call.input),
                AgentEvent::Usage(report) => keep_figure(&mut report.cost_usd),
                AgentEvent::TurnEnd(end) => keep_figure(&mut end.cost_usd),
                AgentEvent::RateLimit(limit) => keep_figure(&mut limit.utilization),
                _ => {}
            }
        }
        while index < out.items.len() {
            if self.is_already_reported(&out.items[index]) {
                out.items.remove(index);
            } else if self.observe(&out.items[index]) {
                if let AgentEvent::Permission(permission) = &mut out.items[index] {
                    // It is not part of the event.
                    permission.of_question = false;
                }
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

    /// Removes secrets from an error's message, and adds the time in the message at which a limit resets.
    fn complete(&self, error: &mut AgentError) {
        self.secrets.hide_in(&mut error.message);
        let is_limit = matches!(error.kind, ErrorKind::Quota | ErrorKind::RateLimit);
        if is_limit && error.resets_at_ms.is_none() && error.retry_after_ms.is_none() {
            error.resets_at_ms = (self.reset_time)(&error.message);
        }
    }

    /// Returns whether a denial was already reported. Both the CLI and the engine, which answered, report it.
    fn is_already_reported(&self, event: &AgentEvent) -> bool {
        let AgentEvent::Permission(e) = event else {
            return false;
        };
        let is_known = |id| self.denied_calls.contains(id);
        e.decision == Decision::Denied && e.tool_id.as_ref().is_some_and(is_known)
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
        self.has_output |= match event {
            AgentEvent::Text(text) => text.parent_tool_id.is_some(),
            AgentEvent::Thinking(_) | AgentEvent::Plan(_) => true,
            _ => false,
        };
        match event {
            AgentEvent::Retry(retry) if retry.error.kind == ErrorKind::Auth => {
                self.hopeless = (!retry.error.retryable).then(|| {
                    let mut error = retry.error.clone();
                    error.message +=
                        "; the CLI's own retries were cut short, as they would fail too";
                    error
                });
            }
            // The CLI gave up by itself.
            AgentEvent::Error(_) if !self.stopping => self.hopeless = None,
            // It was no error of the credentials after all.
            AgentEvent::Text(_) | AgentEvent::Thinking(_) | AgentEvent::ToolUse(_)
                if !self.stopping =>
            {
                self.hopeless = None;
            }
            _ => {}
        }
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
            AgentEvent::SessionStarted(e) => {
                self.session_id = Some(e.session_id.clone());
                if e.model.is_some() {
                    self.model.clone_from(&e.model);
                }
                self.turn_ended = false;
            }
            AgentEvent::Permission(e) if e.decision == Decision::Denied => {
                self.denied_calls.extend(e.tool_id.clone());
                self.has_denied_tool |= !e.of_question;
                self.denials.push(PermissionDenial {
                    tool_name: e.tool_name.clone(),
                    tool_id: e.tool_id.clone(),
                    reason: e.reason.clone(),
                });
            }
            AgentEvent::FileChange(_) => self.changed_files = true,
            AgentEvent::TurnEnd(_) => self.turn_ended = true,
            AgentEvent::Error(e) => self.errors.push(e.error.clone()),
            AgentEvent::Done(_) | AgentEvent::Newer(_) => return false,
            _ => {}
        }
        true
    }
}

/// Removes a figure that no CLI means: a negative one, one that JSON cannot hold, or whose sum with others it could not.
fn keep_figure(figure: &mut Option<f64>) {
    *figure = figure.filter(|figure| is_figure(*figure));
}

fn is_figure(figure: f64) -> bool {
    /// The limit of [`json_line::whole`](crate::provider::json_line::whole).
    const MOST: f64 = 1e15;
    (0.0..MOST).contains(&figure)
}

#[cfg(test)]
mod tests;
