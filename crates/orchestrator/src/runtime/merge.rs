//! The streams of all attempts of a run as one. Pure.

use std::mem;
use std::sync::Arc;

use teamster_core::{
    AgentError, AgentEvent, CostSource, Decision, Done, ErrorCode, ErrorDetail, ErrorKind, Id,
    LogEntry, NoticeLevel, NoticeSource, PermissionDenial, Retract, Retry, RunAssembler, RunResult,
    RunStatus, Text, TextLedger, ToolLedger, Usage,
};

use super::ids::Ids;
use super::total::Total;
use crate::log::Said;
use crate::{Next, Outcome, OutcomeStatus, RunEvent};

/// Makes one stream of the events of a run.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    /// There may be more than one attempt: all text needs a message id, to be retracted by.
    may_repeat: bool,
    tools: Ids,
    messages: Ids,
    /// What the agents have said: known at the end.
    said: Said,
    /// Where each of their messages ends, by the ids that they have in the stream.
    pieces: TextLedger,
    /// How many of them are of the attempts before.
    pieces_before: usize,
    /// The tools of all attempts, by the names that they have in the stream.
    calls: ToolLedger,
    /// Who works.
    provider: String,
    /// Attempts that were made and followed by another.
    made: u32,
    /// How often something was tried again.
    retries: u32,
    now: Current,
    total: Total,
    /// Errors that were told of attempts before this.
    told: Vec<AgentError>,
    /// The result of the last attempt that is over.
    last: RunResult,
    /// Why that attempt failed.
    failed: Option<AgentError>,
}

/// The attempt that goes on.
#[derive(Debug, Default)]
struct Current {
    /// From the first error on: whether it is final shows later.
    held: Vec<LogEntry>,
    /// All its errors.
    errors: Vec<AgentError>,
    /// How many of them were told.
    told: usize,
    /// Messages with text that was not retracted, those of sub-agents too.
    messages: Vec<Id>,
    /// The name of the message that has none, and how many there were.
    unnamed: Option<Id>,
    unnamed_count: u32,
    usage: Option<Usage>,
    cost_usd: Option<f64>,
    denials: Vec<PermissionDenial>,
    result: Option<Box<RunResult>>,
}

impl Merge {
    pub(crate) fn new(may_repeat: bool) -> Self {
        Self {
            may_repeat,
            pieces: TextLedger::without_text(),
            ..Self::default()
        }
    }

    /// The number of the attempt that goes on; between two attempts of the next.
    pub(crate) fn attempt(&self) -> u32 {
        self.made + 1
    }

    /// What of the stream follows from an event of the run itself.
    pub(crate) fn lifecycle(&mut self, event: &RunEvent, out: &mut Vec<LogEntry>) {
        match event {
            RunEvent::Start { provider, .. } => self.provider.clone_from(provider),
            RunEvent::Retry {
                attempt,
                reason,
                delay_ms,
                next,
                ..
            } => self.again(*attempt, reason, *delay_ms, next, false, out),
            RunEvent::Fallback {
                attempt,
                reason,
                delay_ms,
                next,
                ..
            } => self.again(*attempt, reason, *delay_ms, next, true, out),
            RunEvent::End {
                duration_ms,
                result,
                ..
            } => self.end(*duration_ms, result, out),
            _ => {}
        }
    }

    /// What the agents have said, which `done` says again.
    pub(crate) fn said(&mut self, said: Said) {
        self.said = said;
    }

    /// The end of a stream whose run is gone without an end.
    pub(crate) fn lost(&mut self, aborted: bool, out: &mut Vec<LogEntry>) {
        let error = if aborted {
            RunAssembler::aborted_error()
        } else {
            AgentError::new(
                ErrorCode::StreamEndedEarly,
                ErrorKind::Internal,
                "the run is gone without an end: its Tokio runtime shuts down, or lacks a driver",
            )
        };
        let mut now = mem::take(&mut self.now);
        out.append(&mut now.held);
        let mut result = now.result();
        result.status = if aborted {
            RunStatus::Aborted
        } else {
            RunStatus::Failed
        };
        result.errors = now.errors;
        self.done(result, Some(error), out);
    }

    /// Events of the attempt that goes on.
    pub(crate) fn agents(&mut self, mut entries: Vec<LogEntry>, out: &mut Vec<LogEntry>) {
        let mut passed = 0;
        if self.now.held.is_empty() {
            for entry in &mut entries {
                if matches!(entry.event, AgentEvent::Done(_) | AgentEvent::Error(_)) {
                    break;
                }
                self.rename(&mut entry.event);
                self.observe(&entry.event);
                passed += 1;
            }
        }
        if passed == entries.len() && out.is_empty() {
            // Mostly all of them go on as they are.
            *out = entries;
            return;
        }
        for (index, entry) in entries.into_iter().enumerate() {
            if index < passed {
                out.push(entry);
            } else {
                self.agent(entry, out);
            }
        }
    }

    fn agent(&mut self, mut entry: LogEntry, out: &mut Vec<LogEntry>) {
        self.rename(&mut entry.event);
        self.observe(&entry.event);
        let now = &mut self.now;
        match entry.event {
            AgentEvent::Done(done) => now.result = Some(done.result),
            AgentEvent::Error(_) => now.held.push(entry),
            AgentEvent::Text(_) | AgentEvent::Thinking(_) | AgentEvent::ToolUse(_) => {
                // The agent works on: the error was one on the way, and no end.
                now.told = now.errors.len();
                out.append(&mut now.held);
                out.push(entry);
            }
            _ if now.held.is_empty() => out.push(entry),
            // The order of events stays.
            _ => now.held.push(entry),
        }
    }

    /// Makes ids unique over all attempts.
    fn rename(&mut self, event: &mut AgentEvent) {
        match event {
            AgentEvent::Text(e) => {
                self.name(e);
                self.messages.rename_any(&mut e.message_id);
                self.tools.rename_any(&mut e.parent_tool_id);
            }
            AgentEvent::Thinking(e) => {
                self.messages.rename_any(&mut e.message_id);
                self.tools.rename_any(&mut e.parent_tool_id);
            }
            AgentEvent::Retract(e) => self.messages.rename(&mut e.message_id),
            AgentEvent::ToolUse(e) => {
                self.tools.rename(&mut e.tool_id);
                self.tools.rename_any(&mut e.parent_tool_id);
            }
            AgentEvent::ToolResult(e) => {
                self.tools.rename(&mut e.tool_id);
                self.tools.rename_any(&mut e.parent_tool_id);
            }
            AgentEvent::FileChange(e) => self.tools.rename_any(&mut e.tool_id),
            AgentEvent::Permission(e) => self.tools.rename_any(&mut e.tool_id),
            AgentEvent::Usage(e) => {
                self.now.usage = Some(e.usage);
                // The figures are those of the run so far, which began before this attempt.
                if let Some(before) = self.total.usage {
                    e.usage = before.plus(e.usage);
                }
                self.now.cost_usd = e.cost_usd.or(self.now.cost_usd);
                e.cost_usd = self.total.cost_with(e.cost_usd);
            }
            AgentEvent::Done(e) => {
                for denial in &mut e.result.permission_denials {
                    self.tools.rename_any(&mut denial.tool_id);
                }
            }
            _ => {}
        }
    }

    /// Gives the main agent's text a message, so that it can be retracted. A tool call parts two.
    fn name(&mut self, text: &mut Text) {
        let (attempt, now) = (self.made + 1, &mut self.now);
        if !self.may_repeat || text.parent_tool_id.is_some() {
            return;
        }
        if text.message_id.is_some() {
            now.unnamed = None;
            return;
        }
        let name = now.unnamed.get_or_insert_with(|| {
            now.unnamed_count += 1;
            match now.unnamed_count {
                1 => format!("attempt-{attempt}").into(),
                count => format!("attempt-{attempt}.{count}").into(),
            }
        });
        text.message_id = Some(name.clone());
    }

    /// Keeps account of the stream.
    fn observe(&mut self, event: &AgentEvent) {
        self.pieces.event(event);
        let now = &mut self.now;
        match event {
            AgentEvent::Text(e) => {
                if let Some(id) = &e.message_id
                    // A delta is mostly of the last message.
                    && !now.messages.last().is_some_and(|last| Arc::ptr_eq(last, id))
                    && !now.messages.contains(id)
                {
                    now.messages.push(id.clone());
                }
            }
            AgentEvent::Retract(e) => {
                now.messages.retain(|id| *id != e.message_id);
            }
            AgentEvent::ToolUse(e) => {
                now.unnamed.take_if(|_| e.parent_tool_id.is_none());
                self.calls.start(&e.tool_id, &e.tool_name);
            }
            AgentEvent::ToolResult(e) => {
                now.unnamed.take_if(|_| e.parent_tool_id.is_none());
                self.calls.end(&e.tool_id);
            }
            AgentEvent::Permission(e) if e.decision == Decision::Denied => {
                now.denials.push(
                    PermissionDenial::new(e.tool_name.clone())
                        .tool_id(e.tool_id.clone())
                        .reason(e.reason.clone()),
                );
            }
            AgentEvent::Error(e) => now.errors.push(e.error.clone()),
            _ => {}
        }
    }
}

impl Merge {
    /// The attempt has failed, and another follows.
    fn again(
        &mut self,
        attempt: u32,
        reason: &AgentError,
        delay_ms: u64,
        next: &Next,
        fallback: bool,
        out: &mut Vec<LogEntry>,
    ) {
        // A candidate that is on hold is given up without an attempt.
        let attempted = attempt > self.made + 1;
        let mut now = mem::take(&mut self.now);
        let error = match now.cause(reason).or_else(|| self.failed_before(reason)) {
            Some(cause) => cause.clone(),
            None => reason.clone(),
        };
        let is_error = |entry: &LogEntry| matches!(entry.event, AgentEvent::Error(_));
        let held = mem::take(&mut now.held);
        out.extend(held.into_iter().filter(|entry| !is_error(entry)));
        self.failed = Some(error.clone());
        let told = now.errors.iter().take(now.told).cloned();
        self.told.extend(told);
        if attempted {
            self.last = now.result();
            self.total.add(&mut self.last);
            self.last.structured_output = None;
        }
        if next.resumes.is_none() {
            self.last.final_message = None;
            for message_id in now.messages {
                out.push(AgentEvent::Retract(Retract::new(message_id)).into());
            }
            self.pieces.truncate(self.pieces_before);
        }
        self.pieces.end_message();
        self.pieces_before = self.pieces.count();
        if fallback {
            let model = next
                .model
                .as_ref()
                .map_or_else(String::new, |model| format!(" {model}"));
            let message = format!(
                "{} failed ({}): going on with {}{model}",
                self.provider, reason.message, next.provider
            );
            out.push(runtime_notice(message));
        } else {
            self.retries += 1;
            let retry = Retry::new(self.retries, error).delay_ms(delay_ms);
            out.push(AgentEvent::Retry(Box::new(retry)).into());
        }
        self.provider.clone_from(&next.provider);
        self.made = attempt.saturating_sub(1);
        self.tools.next_attempt();
        self.messages.next_attempt();
    }

    /// The run is over.
    fn end(&mut self, duration_ms: u64, outcome: &Outcome, out: &mut Vec<LogEntry>) {
        let meta = &outcome.meta;
        let attempted = meta.attempts > self.made;
        let mut now = mem::take(&mut self.now);
        let whole = attempted && now.result.is_some();
        let mut own = None;
        match (meta.status, &meta.error) {
            (OutcomeStatus::Aborted, _) => {
                let told = now.errors.iter().any(|e| e.kind == ErrorKind::Aborted);
                own = (!told).then(RunAssembler::aborted_error);
            }
            (OutcomeStatus::Error, Some(failure)) => match now.cause(failure) {
                Some(_) => out.extend(why_not(failure)),
                None if self.failed_before(failure).is_some() => {
                    // The attempt that was to resume the session did not find it.
                    now.forget(ErrorKind::SessionNotFound);
                    own = self.failed.take();
                    out.extend(why_not(failure));
                }
                None if now.only_denied() => {}
                None => {
                    if failure.kind == ErrorKind::Budget {
                        // It was not the caller who stopped it.
                        now.forget(ErrorKind::Aborted);
                    }
                    own = Some(failure.clone());
                }
            },
            _ => {}
        }
        out.append(&mut now.held);
        let mut result = if attempted {
            now.result().errors(mem::take(&mut now.errors))
        } else {
            mem::take(&mut self.last).errors(Vec::new())
        };
        if !attempted || !whole {
            result.status = RunStatus::Failed;
        }
        if meta.status == OutcomeStatus::Aborted {
            result.status = RunStatus::Aborted;
        } else if meta.status == OutcomeStatus::Error
            && matches!(result.status, RunStatus::Aborted | RunStatus::Completed)
        {
            result.status = RunStatus::Failed;
        }
        if !(whole && meta.attempts == 1) {
            result.duration_ms = duration_ms;
        }
        if meta.attempts > 1 || (attempted && !whole) {
            result.session_id = result.session_id.or_else(|| meta.session_id.clone());
            result.model = result.model.or_else(|| meta.model.clone());
        }
        if attempted && !whole {
            result.final_message = self.said.last_message.take();
        }
        self.done(result, own, out);
    }

    /// The error of the attempt before, if the failure is that one.
    fn failed_before(&self, failure: &AgentError) -> Option<&AgentError> {
        self.failed
            .as_ref()
            .filter(|error| is_about(failure, error))
    }

    /// Pushes the run's own error, if any, and `done`.
    fn done(&mut self, mut result: RunResult, own: Option<AgentError>, out: &mut Vec<LogEntry>) {
        let mut total = mem::take(&mut self.total);
        total.add(&mut result);
        total.put(&mut result);
        result.aborted = result.status == RunStatus::Aborted;
        result.text = mem::take(&mut self.said.text);
        result.open_tool_ids = mem::take(&mut self.calls).into_open();
        result.pieces = mem::take(&mut self.pieces).text_pieces();
        let mut errors = mem::take(&mut self.told);
        errors.append(&mut result.errors);
        if let Some(error) = own {
            errors.push(error.clone());
            out.push(AgentEvent::from(error).into());
        }
        result.errors = errors;
        let result = Box::new(result);
        out.push(AgentEvent::Done(Done::new(result)).into());
    }
}

impl Current {
    /// Its result; of an attempt that broke off, what was seen of it.
    fn result(&mut self) -> RunResult {
        match self.result.take() {
            Some(result) => *result,
            None => RunResult::default()
                .usage(self.usage)
                .total_cost_usd(self.cost_usd)
                .cost_source(self.cost_usd.map(|_| CostSource::Reported))
                .permission_denials(mem::take(&mut self.denials)),
        }
    }

    /// The error event that the failure is about.
    fn cause(&self, failure: &AgentError) -> Option<&AgentError> {
        self.errors.iter().find(|error| is_about(failure, error))
    }

    /// It ended with nothing but denials, which is no error in a stream.
    fn only_denied(&self) -> bool {
        let result = self.result.as_ref();
        result.is_some_and(|r| r.status == RunStatus::Incomplete && r.errors.is_empty())
            && !self.denials.is_empty()
    }

    /// Takes back its errors of this kind, unless they were told.
    fn forget(&mut self, kind: ErrorKind) {
        let before = self.held.len();
        self.held
            .retain(|entry| !matches!(&entry.event, AgentEvent::Error(e) if e.error.kind == kind));
        if self.held.len() < before {
            self.errors.retain(|error| error.kind != kind);
        }
    }
}

/// Whether the failure is this error, or that of a run that was not retried because of it.
fn is_about(failure: &AgentError, error: &AgentError) -> bool {
    let failure = (failure.cause.as_deref())
        .filter(|_| explanation(failure).is_some())
        .unwrap_or(failure);
    // When a limit resets may be known from another event than the error.
    error.code == failure.code && error.kind == failure.kind && error.message == failure.message
}

/// What kept a run from another attempt.
fn explanation(failure: &AgentError) -> Option<&str> {
    match failure.detail.as_deref() {
        Some(ErrorDetail::NotRetried { explanation, .. }) => Some(explanation),
        _ => None,
    }
}

/// The same as an event.
fn why_not(failure: &AgentError) -> Option<LogEntry> {
    explanation(failure).map(|why| runtime_notice(why.to_owned()))
}

fn runtime_notice(message: String) -> LogEntry {
    AgentEvent::notice(NoticeLevel::Warning, NoticeSource::Runtime, message).into()
}
