//! Derives a run's lifecycle events and outcome from the events of its agents. Pure.

mod ended;
mod known;
mod spent;

use std::collections::HashSet;
use std::mem;

use teamster_core::text::excerpt;
use teamster_core::{
    AgentError, AgentEvent, Capabilities, Decision, ErrorKind, ExecuteParams, FileChange, Id,
    RunResult, Text, TextLedger, ToolLedger, ToolUse, UsageLedger,
};

use crate::policy::SideEffects;
use crate::{Attempt, RunEvent};

use ended::how;
pub(crate) use ended::{Ended, broken_off};
pub(crate) use spent::Spent;

/// How much of a call's input is repeated to the agent, in bytes.
const CALL_BYTES: usize = 500;

/// Keeps account of one run.
#[derive(Debug)]
pub(crate) struct Account {
    run_id: Id,
    side_effects: SideEffects,
    /// Also make events of what the agents' own events say: text and tools.
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
    /// Why nothing may be started over, in words.
    changed: Option<String>,
    /// Calls that can change things and had no result when the last attempt ended, in words.
    cut_off: Vec<String>,
    now: Current,
}

/// The current attempt.
#[derive(Debug, Default)]
struct Current {
    provider: String,
    model: Option<String>,
    session: Option<Id>,
    /// The agent has reported its session itself, or the session was there before.
    session_exists: bool,
    resumed: bool,
    announces_tools: bool,
    runs_calls_after_answer: bool,
    /// The prompt may have been taken for a command, which changes things without a tool.
    commands: bool,
    began_ms: u64,
    /// How many messages there were before it.
    messages_before: usize,
    /// How many messages of all were emitted.
    emitted: usize,
    /// How many calls of all attempts were open before it, or, when it is over, after it.
    open_before: usize,
    /// Uses of tools that count, until they turn out to have been denied.
    changes: Vec<(Id, String)>,
    /// How many of them may have run in any case: those before the last result of a tool.
    ran: usize,
    /// Something was changed that no denial takes back.
    changed: Option<String>,
    denied: HashSet<Id>,
    used: UsageLedger,
    turns: u32,
    turn_open: bool,
    is_over: bool,
    resets_at: Option<u64>,
}

/// The call of a tool.
#[derive(Debug, Clone)]
struct Call {
    name: String,
    since_ms: u64,
    /// The call in words, if it can change things.
    changes: Option<String>,
}

impl Call {
    /// The event of its end.
    fn ended(&self, run_id: &Id, id: &Id, is_error: bool, now_ms: u64) -> RunEvent {
        RunEvent::ToolEnd {
            run_id: run_id.clone(),
            tool_name: self.name.clone(),
            tool_id: id.clone(),
            duration_ms: now_ms.saturating_sub(self.since_ms),
            is_error,
        }
    }
}

impl Account {
    pub(crate) fn new(run_id: Id, side_effects: SideEffects, details: bool) -> Self {
        Self {
            run_id,
            side_effects,
            details,
            started: false,
            begun: None,
            text: TextLedger::default(),
            log: Vec::new(),
            tools: ToolLedger::default(),
            spent: Spent::default(),
            changed: None,
            cut_off: Vec::new(),
            now: Current::default(),
        }
    }

    /// An attempt begins with these parameters.
    pub(crate) fn begin(
        &mut self,
        provider: &str,
        params: &ExecuteParams,
        resumed: bool,
        capabilities: &Capabilities,
        now_ms: u64,
    ) {
        // A fork works in a session of its own, and not in the one that it comes from.
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

    /// The attempt that [began](Self::begin) is made, and is announced at once if the run was.
    pub(crate) fn attempt_begins(&mut self, out: &mut Vec<RunEvent>) {
        self.begun = Some(RunEvent::Attempt {
            run_id: self.run_id.clone(),
            attempt: self.attempt(),
            provider: self.now.provider.clone(),
            model: self.now.model.clone(),
            resumes: (self.now.session.clone()).filter(|_| self.now.resumed),
        });
        if self.started {
            out.extend(self.begun.take());
        }
    }

    /// The first event of the run, unless it has been already, and the attempt that has begun before.
    pub(crate) fn start(&mut self, out: &mut Vec<RunEvent>) {
        if !mem::replace(&mut self.started, true) {
            out.push(RunEvent::Start {
                run_id: self.run_id.clone(),
                session_id: self.now.session.clone(),
                provider: self.now.provider.clone(),
                model: self.now.model.clone(),
            });
            out.extend(self.begun.take());
        }
    }

    /// Processes an event of the agent, at this time in milliseconds.
    pub(crate) fn event(&mut self, event: &AgentEvent, now_ms: u64, out: &mut Vec<RunEvent>) {
        if let AgentEvent::Session(session) = event {
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
                self.now.ran = self.now.changes.len();
                self.tool_end(&result.tool_id, result.is_error == Some(true), now_ms, out);
            }
            AgentEvent::FileChange(change) => self.file_change(change),
            AgentEvent::Permission(permission) => {
                if let Some(id) = &permission.tool_id {
                    match permission.decision {
                        Decision::Denied => self.now.denied.insert(id.clone()),
                        // Asked again and answered otherwise.
                        _ => self.now.denied.remove(id),
                    };
                }
            }
            AgentEvent::Usage(_) => self.now.used.event(event),
            AgentEvent::RateLimit(limit) if !limit.status.starts_with("allowed") => {
                self.now.resets_at = limit.resets_at.or(self.now.resets_at);
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

    /// The attempt is over: its tools too. Without a result its stream broke off, or, if it was not
    /// `begun`, there was none.
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
            && error.resets_at.is_none()
            && matches!(error.kind, ErrorKind::RateLimit | ErrorKind::Quota)
        {
            error.resets_at = now.resets_at;
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
        // What was changed in a session was changed in one that exists.
        now.session_exists |= self.changed.is_some();
        self.log.push(Attempt {
            provider: now.provider.clone(),
            model: now.model.clone(),
            session_id: now.session.clone(),
            resumed: now.resumed,
            duration_ms: now_ms.saturating_sub(now.began_ms),
            usage: now.used.usage.filter(|usage| !usage.is_empty()),
            cost_usd: now.used.cost_usd,
            error: ended.error.clone(),
        });
        ended
    }

    /// After the end of an attempt: this is why it failed, in place of its result's error.
    pub(crate) fn blame(&mut self, error: &AgentError) {
        if let Some(attempt) = self.log.last_mut() {
            attempt.error = Some(error.clone());
        }
    }

    /// After the end of an attempt: its last message is kept.
    pub(crate) fn keep(&mut self, out: &mut Vec<RunEvent>) {
        self.text.end_message();
        self.messages(out);
    }

    /// After the end of an attempt: the prompt is sent again, and the agent's text is discarded.
    pub(crate) fn discard(&mut self) {
        self.text.truncate(self.now.messages_before);
    }

    /// The last message of the attempt.
    pub(crate) fn last_message(&self) -> Option<String> {
        self.text.last_message_after(self.now.messages_before)
    }

    /// The number of the current attempt; between two, of the next.
    pub(crate) fn attempt(&self) -> u32 {
        u32::try_from(self.log.len())
            .unwrap_or(u32::MAX)
            .saturating_add(1)
    }

    /// The number of the current attempt; between two, of the last.
    pub(crate) fn current_attempt(&self) -> u32 {
        let over = u32::from(self.now.is_over);
        self.attempt().saturating_sub(over)
    }

    /// The model writes or acts: begins a turn unless one is in progress.
    fn turn(&mut self) {
        if !mem::replace(&mut self.now.turn_open, true) {
            self.now.turns += 1;
        }
    }

    /// More of the text that the last event was: a delta, without the events that follow from it.
    #[inline]
    pub(crate) fn more_text(&mut self, text: &str) {
        self.text.push_more(text);
    }

    fn text(&mut self, text: &Text, out: &mut Vec<RunEvent>) {
        self.text.push(text.message_id.as_ref(), &text.text);
        if self.details {
            self.messages(out);
            out.push(RunEvent::Chunk {
                run_id: self.run_id.clone(),
                content: text.text.clone(),
            });
        }
    }

    /// Emits the complete messages.
    fn messages(&mut self, out: &mut Vec<RunEvent>) {
        let over = self.text.count_over();
        if self.details && self.now.emitted < over {
            let messages = self.text.pieces().take(over).skip(self.now.emitted);
            out.extend(messages.map(|(_, content)| RunEvent::Message {
                run_id: self.run_id.clone(),
                content: content.to_owned(),
            }));
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
            let change = (tool.tool_id.clone(), tool.tool_name.clone());
            self.now.changes.push(change);
            if tool.parent_tool_id.is_some() {
                // The call that started the sub-agent runs.
                self.now.ran = self.now.changes.len();
            }
        }
        if self.details {
            out.push(RunEvent::ToolStart {
                run_id: self.run_id.clone(),
                tool_name: tool.tool_name.clone(),
                tool_id: tool.tool_id.clone(),
            });
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
        // The tool that the change belongs to is judged as a use of a tool, and can be denied.
        let judged = (change.tool_id.as_ref())
            .is_some_and(|id| self.now.changes.iter().any(|(used, _)| used == id));
        if !judged {
            self.now.changed = Some("the agent had changed a file".into());
        }
    }
}

#[cfg(test)]
mod tests;
