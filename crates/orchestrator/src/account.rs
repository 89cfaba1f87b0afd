//! Derives a run's lifecycle events and outcome from the events of its agents. Pure.

mod changes;
mod ended;
mod known;
mod spent;

use std::collections::HashSet;
use std::mem;

use teamster_core::text::excerpt;
use teamster_core::{
    AgentError, AgentEvent, Attempt, Capabilities, Decision, ErrorKind, ExecuteParams, FileChange,
    Id, Next, RunEvent, RunResult, Text, TextLedger, ToolLedger, ToolUse, UsageLedger,
};

use crate::policy::SideEffects;

use changes::Changes;
use ended::how;
pub(crate) use ended::{Ended, broken_off};
pub(crate) use spent::Spent;

/// Maximum size of a call's input in a continuation prompt, in bytes.
const CALL_BYTES: usize = 500;

/// The ledger of one run.
#[derive(Debug, Default)]
pub(crate) struct Account {
    run_id: Id,
    side_effects: SideEffects,
    /// True if text and tool events are also derived.
    details: bool,
    started: bool,
    /// The first attempt, until the run has started.
    begun: Option<RunEvent>,
    /// Text of the agents that was not withdrawn.
    text: TextLedger,
    log: Vec<Attempt>,
    /// The calls of all attempts, by the ids that they have in the log.
    tools: ToolLedger<Call>,
    /// Usage of finished attempts that counts against the budget.
    spent: Spent,
    /// Description of the change that rules out starting over.
    changed: Option<String>,
    /// Descriptions of calls that can change things and had no result when the last attempt ended.
    cut_off: Vec<String>,
    now: Current,
}

#[derive(Debug, Default)]
struct Current {
    provider: String,
    model: Option<String>,
    /// The named account of the agent.
    account: Option<String>,
    session: Option<Id>,
    /// True if the agent has reported its session, or the session existed before.
    session_exists: bool,
    resumed: bool,
    announces_tools: bool,
    runs_calls_after_answer: bool,
    /// True if the prompt may have been taken for a command, which can change things without a tool.
    commands: bool,
    began_ms: u64,
    /// Number of messages before the attempt.
    messages_before: usize,
    /// Number of emitted messages of the run.
    emitted: usize,
    /// Number of open calls before the attempt, or after it once it is over.
    open_before: usize,
    /// Tool uses that count as changes, unless they turn out to have been denied.
    changes: Changes,
    /// Number of entries in `changes` that may have run in any case: those before the last tool result.
    ran: usize,
    /// Description of a change that a denial does not undo.
    changed: Option<String>,
    denied: HashSet<Id>,
    used: UsageLedger,
    turns: u32,
    turn_open: bool,
    /// True if the model has written or acted.
    answered: bool,
    is_over: bool,
    resets_at_ms: Option<u64>,
}

#[derive(Debug, Clone)]
struct Call {
    name: String,
    since_ms: u64,
    /// Description of the call, if it can change things.
    changes: Option<String>,
}

impl Call {
    fn ended(&self, run_id: &Id, id: &Id, is_error: bool, now_ms: u64) -> RunEvent {
        RunEvent::tool_end(
            run_id.clone(),
            &*self.name,
            id.clone(),
            now_ms.saturating_sub(self.since_ms),
            is_error,
        )
    }
}

impl Account {
    pub(crate) fn new(run_id: Id, side_effects: SideEffects, details: bool) -> Self {
        Self {
            run_id,
            side_effects,
            details,
            ..Self::default()
        }
    }

    /// Sets the state for an attempt with these parameters.
    pub(crate) fn begin(
        &mut self,
        provider: &str,
        params: &ExecuteParams,
        resumed: bool,
        capabilities: &Capabilities,
        now_ms: u64,
    ) {
        // A fork works in a new session, not in the one that it was forked from.
        let old = params.session_id.as_deref().filter(|_| !params.fork);
        let session = old.or(params.new_session_id.as_deref());
        self.now = Current {
            provider: provider.to_owned(),
            model: params.model.clone(),
            session: session.map(Id::from),
            session_exists: old.is_some(),
            resumed,
            announces_tools: capabilities.announces_tools,
            runs_calls_after_answer: capabilities.runs_calls_after_answer,
            commands: params.slash_commands,
            began_ms: now_ms,
            messages_before: self.text.count(),
            emitted: self.text.count(),
            open_before: self.tools.open().len(),
            ..Current::default()
        };
    }

    /// Sets the named account of the attempt that [began](Self::begin).
    pub(crate) fn with_account(&mut self, account: Option<&str>) {
        self.now.account = account.map(str::to_owned);
    }

    /// Prepares the event of the attempt that [began](Self::begin), and emits it if the run has started.
    pub(crate) fn attempt_begins(&mut self, out: &mut Vec<RunEvent>) {
        let mut begins = Next::new(self.attempt(), &*self.now.provider);
        begins.model.clone_from(&self.now.model);
        begins.account.clone_from(&self.now.account);
        begins.resumes = (self.now.session.clone()).filter(|_| self.now.resumed);
        self.begun = Some(RunEvent::attempt(self.run_id.clone(), begins));
        if self.started {
            out.extend(self.begun.take());
        }
    }

    /// Returns whether the start of the run was emitted.
    pub(crate) fn has_started(&self) -> bool {
        self.started
    }

    /// Emits the start of the run, and the prepared event of the first attempt, unless that was done before.
    pub(crate) fn start(&mut self, out: &mut Vec<RunEvent>) {
        if !mem::replace(&mut self.started, true) {
            out.push(RunEvent::start(
                self.run_id.clone(),
                self.now.session.clone(),
                &*self.now.provider,
                self.now.model.clone(),
            ));
            out.extend(self.begun.take());
        }
    }

    /// Processes an event of the agent. `now_ms` is the time since the run's acceptance, in milliseconds.
    pub(crate) fn event(&mut self, event: &AgentEvent, now_ms: u64, out: &mut Vec<RunEvent>) {
        if let AgentEvent::SessionStarted(session) = event {
            self.now.session = Some(session.session_id.clone());
            self.now.session_exists = true;
            if session.model.is_some() {
                self.now.model.clone_from(&session.model);
            }
        }
        self.start(out);
        match event {
            AgentEvent::Text(text) if text.parent_tool_id.is_none() => {
                self.turn();
                self.text(text, out);
            }
            AgentEvent::Thinking(thinking) if thinking.parent_tool_id.is_none() => self.turn(),
            AgentEvent::Retract(retract) => self.retract(&retract.message_id),
            AgentEvent::ToolUse(tool) => {
                self.text.event(event);
                self.tool_use(tool, now_ms, out);
            }
            AgentEvent::ToolResult(result) => {
                self.text.event(event);
                self.messages(out);
                if result.parent_tool_id.is_none() {
                    self.now.turn_open = false;
                }
                self.now.ran = self.now.changes.count();
                self.tool_end(&result.tool_id, result.is_error == Some(true), now_ms, out);
            }
            AgentEvent::FileChange(change) => self.file_change(change),
            AgentEvent::Permission(permission) => {
                if let Some(id) = &permission.tool_id {
                    match permission.decision {
                        Decision::Denied => self.now.denied.insert(id.clone()),
                        // Requested again and answered differently.
                        _ => self.now.denied.remove(id),
                    };
                }
            }
            AgentEvent::Usage(_) => self.now.used.event(event),
            AgentEvent::RateLimit(limit) if !limit.status.starts_with("allowed") => {
                self.now.resets_at_ms = limit.resets_at_ms.or(self.now.resets_at_ms);
            }
            AgentEvent::TurnEnd(_) => {
                self.now.turn_open = false;
                self.now.used.event(event);
                self.text.event(event);
                self.messages(out);
            }
            _ => {}
        }
    }

    /// Ends the attempt and its open tool calls. `result` is absent if the stream broke off. It is also absent if the
    /// attempt has not `begun`, so that there was no stream.
    pub(crate) fn end(
        &mut self,
        result: Option<&RunResult>,
        begun: bool,
        now_ms: u64,
        out: &mut Vec<RunEvent>,
    ) -> Ended {
        self.start(out);
        let mut cut_off = Vec::new();
        for (id, call) in self.tools.open().skip(self.now.open_before) {
            let changes = call.changes.clone();
            cut_off.extend(changes.map(|changes| (id.clone(), changes)));
            if self.details {
                out.push(call.ended(&self.run_id, id, true, now_ms));
            }
        }
        let now = &mut self.now;
        now.open_before = self.tools.open().len();
        if let Some(result) = result {
            now.session_exists |= result.session_id.is_some();
            now.session = result.session_id.clone().or(now.session.take());
            now.model = result.model.clone().or(now.model.take());
            now.used.result(result);
            now.denied.extend(
                result
                    .permission_denials
                    .iter()
                    .filter_map(|denial| denial.tool_id.clone()),
            );
            now.turns = result.num_turns.unwrap_or(now.turns);
        }
        let mut ended = match result {
            Some(result) => how(result),
            None => Ended {
                error: Some(broken_off("the stream of the run ended without `done`")),
                aborted: false,
            },
        };
        if let Some(error) = &mut ended.error
            && error.retry_after_ms.is_none()
            && error.resets_at_ms.is_none()
            && matches!(error.kind, ErrorKind::RateLimit | ErrorKind::Quota)
        {
            error.resets_at_ms = now.resets_at_ms;
        }
        self.spent = self.spent.plus(now.spent());
        let failed = ended.error.as_ref().filter(|_| begun);
        if let (Some(result), Some(error)) = (result, failed) {
            now.forget_calls_not_run(result, error);
        }
        cut_off.retain(|(id, _)| now.may_have_run(id));
        self.cut_off = cut_off.into_iter().map(|(_, call)| call).collect();
        self.remember_changes(result, failed);
        let now = &mut self.now;
        now.is_over = true;
        // Something was changed in the session, so it exists.
        now.session_exists |= self.changed.is_some();
        let mut attempt = Attempt::new(&*now.provider, now_ms.saturating_sub(now.began_ms));
        attempt.model.clone_from(&now.model);
        attempt.account.clone_from(&now.account);
        attempt.session_id.clone_from(&now.session);
        attempt.resumed = now.resumed;
        attempt.usage = now.used.usage.filter(|usage| !usage.is_empty());
        attempt.cost_usd = now.used.cost_usd;
        attempt.cost_source = now.used.cost_source();
        attempt.error.clone_from(&ended.error);
        self.log.push(attempt);
        ended
    }

    /// Replaces the error of the last finished attempt.
    pub(crate) fn blame(&mut self, error: &AgentError) {
        if let Some(attempt) = self.log.last_mut() {
            attempt.error = Some(error.clone());
        }
    }

    /// Keeps the last message of the finished attempt.
    pub(crate) fn keep(&mut self, out: &mut Vec<RunEvent>) {
        self.text.end_message();
        self.messages(out);
    }

    /// Discards the agent's text of the finished attempt, because the prompt is sent again.
    pub(crate) fn discard(&mut self) {
        self.text.truncate(self.now.messages_before);
    }

    /// Returns the number of the current attempt, or of the next one between attempts.
    pub(crate) fn attempt(&self) -> u32 {
        u32::try_from(self.log.len())
            .unwrap_or(u32::MAX)
            .saturating_add(1)
    }

    /// Returns the number of the current attempt, or of the last one between attempts.
    pub(crate) fn current_attempt(&self) -> u32 {
        let over = u32::from(self.now.is_over);
        self.attempt().saturating_sub(over)
    }

    /// Counts a turn when the model writes or acts, unless a turn is in progress.
    fn turn(&mut self) {
        self.now.answered = true;
        if !mem::replace(&mut self.now.turn_open, true) {
            self.now.turns += 1;
        }
    }

    /// Appends a delta to the text of the last event. Derives no events.
    #[inline]
    pub(crate) fn more_text(&mut self, text: &str) {
        self.text.push_more(text);
    }

    fn text(&mut self, text: &Text, out: &mut Vec<RunEvent>) {
        self.text.push(text.message_id.as_ref(), &text.text);
        if self.details {
            self.messages(out);
            out.push(RunEvent::chunk(self.run_id.clone(), &*text.text));
        }
    }

    /// Emits the complete messages.
    fn messages(&mut self, out: &mut Vec<RunEvent>) {
        let over = self.text.count_over();
        if self.details && self.now.emitted < over {
            let messages = self.text.pieces().take(over).skip(self.now.emitted);
            let run_id = &self.run_id;
            out.extend(messages.map(|(_, content)| RunEvent::message(run_id.clone(), content)));
            self.now.emitted = over;
        }
    }

    fn retract(&mut self, retracted: &Id) {
        let now = &mut self.now;
        let emitted = (self.text.pieces().take(now.emitted)).skip(now.messages_before);
        now.emitted -= emitted.filter(|(id, _)| *id == Some(retracted)).count();
        self.text.retract_after(now.messages_before, retracted);
    }

    fn tool_use(&mut self, tool: &ToolUse, now_ms: u64, out: &mut Vec<RunEvent>) {
        if tool.parent_tool_id.is_none() {
            self.turn();
            self.messages(out);
        }
        let mut changes = None;
        if self.side_effects.counts(tool) {
            let input = excerpt(&tool.input.to_string(), CALL_BYTES);
            changes = Some(format!("`{}` {input}", tool.tool_name));
            let (id, name) = (tool.tool_id.clone(), tool.tool_name.clone());
            self.now.changes.push(id, name);
            if tool.parent_tool_id.is_some() {
                // The call that started the sub-agent runs.
                self.now.ran = self.now.changes.count();
            }
        }
        if self.details {
            let run_id = self.run_id.clone();
            let tool_id = tool.tool_id.clone();
            out.push(RunEvent::tool_start(run_id, &*tool.tool_name, tool_id));
        }
        let call = Call {
            name: tool.tool_name.clone(),
            since_ms: now_ms,
            changes,
        };
        self.tools.start(&tool.tool_id, call);
    }

    fn tool_end(&mut self, id: &Id, is_error: bool, now_ms: u64, out: &mut Vec<RunEvent>) {
        if let Some(call) = self.tools.end(id)
            && self.details
        {
            out.push(call.ended(&self.run_id, id, is_error, now_ms));
        }
    }

    fn file_change(&mut self, change: &FileChange) {
        // The change belongs to a tool use, which is judged separately and can be denied.
        let judged = (change.tool_id.as_ref()).is_some_and(|id| self.now.changes.has(id));
        if !judged {
            self.now.changed = Some("the agent had changed a file".into());
        }
    }
}

#[cfg(test)]
mod tests;
