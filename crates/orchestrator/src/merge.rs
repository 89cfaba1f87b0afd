//! Merges the streams of a run's attempts into one. Pure.

mod ids;
mod total;

use std::collections::HashSet;
use std::mem;
use std::sync::Arc;

use teamster_core::provider::RunAssembler;
use teamster_core::{
    AgentError, AgentEvent, Decision, ErrorDetail, ErrorKind, Id, LogEntry, Next, NoticeLevel,
    NoticeSource, PermissionDenial, Retract, Retry, RunEvent, RunResult, RunStatus, Text,
    TextLedger, UsageLedger,
};

use ids::Ids;
use total::Total;

/// State of a merged stream and its result.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    /// True if more than one attempt is possible. Then all text needs a message id for its retraction.
    may_repeat: bool,
    tools: Ids,
    messages: Ids,
    provider: String,
    /// Number of finished attempts that another one followed.
    made: u32,
    retries: u32,
    now: Current,
    total: Total,
    /// Emitted errors of earlier attempts.
    emitted: Vec<AgentError>,
    /// The result of the last finished attempt.
    last: RunResult,
    /// The error of that attempt.
    failed: Option<AgentError>,
}

/// Data about the end of a run that only its driver has.
#[derive(Debug)]
pub(crate) struct Ending<'a> {
    /// The error of a run that failed.
    pub(crate) error: Option<&'a AgentError>,
    /// True if the caller stopped the run.
    pub(crate) aborted: bool,
    pub(crate) attempts: u32,
    /// Time from the run's acceptance to its end, in milliseconds.
    pub(crate) duration_ms: u64,
    pub(crate) session_id: Option<&'a Id>,
    pub(crate) model: Option<&'a str>,
    /// Text of the agents that was not retracted.
    pub(crate) text: TextLedger,
    /// The calls of all attempts that have not ended.
    pub(crate) open: Vec<Id>,
    /// Reported usage of the last attempt.
    pub(crate) used: UsageLedger,
}

#[derive(Debug, Default)]
struct Current {
    /// Entries from the first error on, held until it is known whether that error is final.
    held: Vec<LogEntry>,
    /// All errors of the attempt.
    errors: Vec<AgentError>,
    /// Number of `errors` that were emitted.
    emitted: usize,
    /// Messages with text that was not retracted, including those of sub-agents.
    messages: Vec<Id>,
    /// The same, to find one.
    known_messages: HashSet<Id>,
    /// The generated id of the current message without one, and the number of such ids.
    unnamed: Option<Id>,
    unnamed_count: u32,
    /// The message of the last event, if that was text of the main agent: its original id, if any, and its id in the
    /// log.
    last_text: Option<(Option<Id>, Id)>,
    denials: Vec<PermissionDenial>,
    result: Option<Box<RunResult>>,
}

impl Merge {
    pub(crate) fn new(may_repeat: bool) -> Self {
        Self {
            may_repeat,
            ..Self::default()
        }
    }

    /// Adds the agent events that follow from an event of the run. `used` is the usage of the last attempt.
    pub(crate) fn lifecycle(
        &mut self,
        event: &RunEvent,
        used: UsageLedger,
        out: &mut Vec<LogEntry>,
    ) {
        match event {
            RunEvent::Start { provider, .. } => self.provider.clone_from(provider),
            RunEvent::Retry {
                reason,
                delay_ms,
                next,
                ..
            } => self.again(reason, Some(*delay_ms), next, used, out),
            RunEvent::Fallback { reason, next, .. } => self.again(reason, None, next, used, out),
            _ => {}
        }
    }

    /// Returns the result of the current attempt, once it is over.
    pub(crate) fn result(&self) -> Option<&RunResult> {
        self.now.result.as_deref()
    }

    /// Returns whether an event is emitted at once, unchanged except for its ids and figures.
    pub(crate) fn passes(&self, event: &AgentEvent) -> bool {
        self.now.held.is_empty() && !matches!(event, AgentEvent::Done(_) | AgentEvent::Error(_))
    }

    /// Adds an [observed](Self::observe) event, and entries that it releases, to the stream.
    pub(crate) fn add(&mut self, entry: LogEntry, out: &mut Vec<LogEntry>) {
        let now = &mut self.now;
        match entry.event {
            AgentEvent::Done(done) => now.result = Some(done.result),
            AgentEvent::Error(_) => now.held.push(entry),
            AgentEvent::Text(_) | AgentEvent::Thinking(_) | AgentEvent::ToolUse(_) => {
                // The agent continues, so the error was not final.
                now.emitted = now.errors.len();
                out.append(&mut now.held);
                out.push(entry);
            }
            _ if now.held.is_empty() => out.push(entry),
            // Keep the order of events.
            _ => now.held.push(entry),
        }
    }

    /// Returns whether `text` continues the text of the last event, and sets its message id. Such an event needs no
    /// [observing](Self::observe).
    #[inline]
    pub(crate) fn goes_on(&self, text: &mut Text) -> bool {
        let Some((id, name)) = &self.now.last_text else {
            return false;
        };
        let is_same = match (&text.message_id, id) {
            (Some(own), Some(id)) => Arc::ptr_eq(own, id),
            (own, id) => own.is_none() && id.is_none(),
        };
        if !is_same || text.parent_tool_id.is_some() {
            return false;
        }
        if !id.as_ref().is_some_and(|id| Arc::ptr_eq(id, name)) {
            text.message_id = Some(name.clone());
        }
        true
    }

    /// Replaces ids by ids that are unique over all attempts.
    pub(crate) fn rename(&mut self, event: &mut AgentEvent) {
        self.now.last_text = None;
        match event {
            AgentEvent::Text(e) => {
                let id = e.message_id.clone();
                self.name(e);
                self.messages.rename_any(&mut e.message_id);
                self.tools.rename_any(&mut e.parent_tool_id);
                let name = (e.message_id.clone()).filter(|_| e.parent_tool_id.is_none());
                self.now.last_text = name.map(|name| (id, name));
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
            AgentEvent::ToolOutput(e) => self.tools.rename(&mut e.tool_id),
            AgentEvent::ToolResult(e) => {
                self.tools.rename(&mut e.tool_id);
                self.tools.rename_any(&mut e.parent_tool_id);
            }
            AgentEvent::FileChange(e) => self.tools.rename_any(&mut e.tool_id),
            AgentEvent::Permission(e) => self.tools.rename_any(&mut e.tool_id),
            AgentEvent::Done(e) => {
                for denial in &mut e.result.permission_denials {
                    self.tools.rename_any(&mut denial.tool_id);
                }
            }
            _ => {}
        }
    }

    /// Assigns a message id to the main agent's text, so that it can be retracted. A tool call separates two messages.
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

    /// Records an event, and replaces figures of the attempt by those of the run.
    pub(crate) fn observe(&mut self, event: &mut AgentEvent) {
        let now = &mut self.now;
        match event {
            AgentEvent::Text(e) => {
                if let Some(id) = &e.message_id
                    // Most deltas belong to the last message.
                    && !now.messages.last().is_some_and(|last| Arc::ptr_eq(last, id))
                    && now.known_messages.insert(id.clone())
                {
                    now.messages.push(id.clone());
                }
            }
            AgentEvent::Retract(e) if now.known_messages.remove(&e.message_id) => {
                now.messages.retain(|id| *id != e.message_id);
            }
            AgentEvent::ToolUse(e) => {
                now.unnamed.take_if(|_| e.parent_tool_id.is_none());
            }
            AgentEvent::ToolResult(e) => {
                now.unnamed.take_if(|_| e.parent_tool_id.is_none());
            }
            AgentEvent::Permission(e) if e.decision == Decision::Denied => {
                now.denials.push(
                    PermissionDenial::new(e.tool_name.clone())
                        .tool_id(e.tool_id.clone())
                        .reason(e.reason.clone()),
                );
            }
            AgentEvent::TurnEnd(_) => now.unnamed = None,
            // The figures include those of earlier attempts.
            AgentEvent::Usage(e) => self.total.add_to(e),
            AgentEvent::Error(e) => now.errors.push(e.error.clone()),
            _ => {}
        }
    }
}

impl Merge {
    /// Ends a failed attempt that another one follows: of the same candidate after this delay, or of another candidate.
    fn again(
        &mut self,
        reason: &AgentError,
        retry_after_ms: Option<u64>,
        next: &Next,
        used: UsageLedger,
        out: &mut Vec<LogEntry>,
    ) {
        // A candidate on hold can be skipped without an attempt.
        let attempted = next.attempt > self.made + 1;
        let mut now = mem::take(&mut self.now);
        let error = match now.cause(reason).or_else(|| self.failed_before(reason)) {
            Some(cause) => cause.clone(),
            None => reason.clone(),
        };
        let is_error = |entry: &LogEntry| matches!(entry.event, AgentEvent::Error(_));
        let held = mem::take(&mut now.held);
        out.extend(held.into_iter().filter(|entry| !is_error(entry)));
        self.failed = Some(error.clone());
        let emitted = now.errors.iter().take(now.emitted).cloned();
        self.emitted.extend(emitted);
        if attempted {
            self.last = now.result(used);
            self.total.add(&mut self.last);
            self.last.structured_output = None;
        }
        if next.resumes.is_none() {
            self.last.final_message = None;
            for message_id in now.messages {
                out.push(AgentEvent::Retract(Retract::new(message_id)).into());
            }
        }
        if let Some(delay_ms) = retry_after_ms {
            self.retries += 1;
            let retry = Retry::new(self.retries, error).delay_ms(delay_ms);
            out.push(AgentEvent::Retry(Box::new(retry)).into());
        } else {
            let model = next
                .model
                .as_ref()
                .map_or_else(String::new, |model| format!(" {model}"));
            let account = next
                .account
                .as_ref()
                .map_or_else(String::new, |account| format!("@{account}"));
            let message = format!(
                "{} failed ({}): continuing with {}{account}{model}",
                self.provider, reason.message, next.provider
            );
            out.push(runtime_notice(message));
        }
        self.provider.clone_from(&next.provider);
        self.made = next.attempt.saturating_sub(1);
        self.tools.next_attempt();
        self.messages.next_attempt();
    }

    /// Ends the run and returns its result. Adds the remaining entries before `done` to `out`.
    pub(crate) fn end(&mut self, ending: Ending<'_>, out: &mut Vec<LogEntry>) -> RunResult {
        let attempted = ending.attempts > self.made;
        let mut now = mem::take(&mut self.now);
        let complete = attempted && now.result.is_some();
        let mut own = None;
        if ending.aborted {
            let emitted = now.errors.iter().any(|e| e.kind == ErrorKind::Aborted);
            own = (!emitted).then(RunAssembler::aborted_error);
        } else if let Some(failure) = ending.error {
            if now.cause(failure).is_some() {
                out.extend(why_not(failure));
            } else if self.failed_before(failure).is_some() {
                // The attempt that should have resumed the session did not find it.
                now.forget(ErrorKind::SessionNotFound);
                own = self.failed.take();
                out.extend(why_not(failure));
            } else if !now.only_denied() {
                if failure.kind == ErrorKind::Budget {
                    // The budget stopped the run, not the caller.
                    now.forget(ErrorKind::Aborted);
                }
                own = Some(failure.clone());
            }
        }
        out.append(&mut now.held);
        let mut result = if attempted {
            now.result(ending.used).errors(mem::take(&mut now.errors))
        } else {
            mem::take(&mut self.last).errors(Vec::new())
        };
        let stopped = matches!(result.status, RunStatus::Aborted | RunStatus::Completed);
        if ending.aborted {
            result.status = RunStatus::Aborted;
        } else if !complete || (ending.error.is_some() && stopped) {
            result.status = RunStatus::Failed;
        }
        result.aborted = ending.aborted;
        if !(complete && ending.attempts == 1) {
            result.duration_ms = ending.duration_ms;
        }
        if ending.attempts > 1 || (attempted && !complete) {
            result.session_id = result.session_id.or_else(|| ending.session_id.cloned());
            result.model = result.model.or_else(|| ending.model.map(str::to_owned));
        }
        if attempted && !complete {
            result.final_message = ending.text.last_message();
        }
        let mut total = mem::take(&mut self.total);
        total.add(&mut result);
        total.put(&mut result);
        result.pieces = ending.text.text_pieces();
        result.text = ending.text.into_text();
        result.open_tool_ids = ending.open;
        let mut errors = mem::take(&mut self.emitted);
        errors.append(&mut result.errors);
        if let Some(error) = own {
            errors.push(error.clone());
            out.push(AgentEvent::from(error).into());
        }
        result.errors = errors;
        result
    }

    /// Returns the error of the previous attempt, if the failure is about it.
    fn failed_before(&self, failure: &AgentError) -> Option<&AgentError> {
        self.failed.as_ref().filter(|error| error.is_same(failure))
    }
}

impl Current {
    /// Returns the result of the attempt, or what is known of one that broke off. Missing figures are taken from its
    /// events.
    fn result(&mut self, used: UsageLedger) -> RunResult {
        let mut result = match self.result.take() {
            Some(result) => *result,
            None => RunResult::default().permission_denials(mem::take(&mut self.denials)),
        };
        let seen = used.usage.filter(|usage| !usage.is_empty());
        result.usage = result.usage.or(seen);
        if result.total_cost_usd.is_none() {
            result.total_cost_usd = used.cost_usd;
            result.cost_source = used.cost_source();
        }
        result
    }

    /// Returns the error event that the failure is about.
    fn cause(&self, failure: &AgentError) -> Option<&AgentError> {
        self.errors.iter().find(|error| error.is_same(failure))
    }

    /// Returns whether the attempt ended only with denials, which are not an error of the stream.
    fn only_denied(&self) -> bool {
        let result = self.result.as_ref();
        result.is_some_and(|r| r.status == RunStatus::Incomplete && r.errors.is_empty())
            && !self.denials.is_empty()
    }

    /// Removes the errors of this kind that were not emitted.
    fn forget(&mut self, kind: ErrorKind) {
        let before = self.held.len();
        self.held
            .retain(|entry| !matches!(&entry.event, AgentEvent::Error(e) if e.error.kind == kind));
        if self.held.len() < before {
            self.errors.retain(|error| error.kind != kind);
        }
    }
}

/// Returns the reason for no further attempt.
fn explanation(failure: &AgentError) -> Option<&str> {
    match failure.detail.as_deref() {
        Some(ErrorDetail::NotRetried { explanation, .. }) => Some(explanation),
        _ => None,
    }
}

/// Returns the reason for no further attempt as an event.
fn why_not(failure: &AgentError) -> Option<LogEntry> {
    explanation(failure).map(|why| runtime_notice(why.to_owned()))
}

fn runtime_notice(message: String) -> LogEntry {
    AgentEvent::notice(NoticeLevel::Warning, NoticeSource::Runtime, message).into()
}
