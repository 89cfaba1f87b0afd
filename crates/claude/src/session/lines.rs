//! Output of the CLI in a session.

use serde_json::{Value, json};
use teamster_core::provider::{Decoder, Events, json_line};
use teamster_core::text::excerpt;
use teamster_core::{
    AgentEvent, Decision, ErrorKind, Id, NoticeLevel, NoticeSource, PermissionChange,
    PermissionEvent, PermissionMode, PermissionRequest, ToolStage, TurnEnd,
};

use super::ask_user::{self, ASK_USER};
use super::wire::{
    Answer, Ask, Elicitation, HOOK_CALLBACK, Hook, HookEvent, LineKind, SessionLine, heard,
};
use super::{ClaudeSession, Question, Request, refused, wire};

/// Prefix of nearly all lines. Only the main agent has them.
const STREAM: &[u8] = br#"{"type":"stream_event","#;

impl ClaudeSession {
    pub(super) fn read(&mut self, line: &[u8], out: &mut Events) {
        if line.starts_with(STREAM) {
            self.decode(line, out);
            return self.is_written_down();
        }
        let Some(SessionLine { session_id, what }) = json_line::read(line, heard) else {
            return self.decode(line, out);
        };
        if self.is_of_clearing(session_id.as_deref(), &what) {
            if let LineKind::Result { failed, text, .. } = what {
                self.cleared(line, session_id.as_deref(), failed, &text, out);
            }
            return;
        }
        match what {
            LineKind::Result { unasked, .. } => self.result(line, unasked, out),
            LineKind::Taken { uuid } => {
                self.decode(line, out);
                self.is_written_down();
                self.taken(&uuid);
            }
            LineKind::Dropped { uuid, word } => self.dropped(&uuid, &word, out),
            LineKind::Answer {
                request_id,
                outcome,
            } => self.answered(&request_id, outcome),
            LineKind::Ask(ask) => self.ask(line, *ask, out),
            LineKind::Elicitation(asked) => self.elicit(*asked, out),
            LineKind::Hook(hook) => self.call_hook(*hook),
            LineKind::Request {
                request_id,
                subtype,
            } => {
                let error = format!("{subtype} is not supported");
                // After an error, the CLI would run the tool without the caller.
                let response = if self.has_hooks && subtype == HOOK_CALLBACK {
                    wire::answer(&request_id, &json!({"decision": "block", "reason": error}))
                } else {
                    wire::refusal(&request_id, &error)
                };
                self.outbox.write(&response);
                let message =
                    format!("Claude Code made a request that is not supported: {subtype}");
                out.notice(NoticeLevel::Warning, NoticeSource::Stdout, message);
            }
            LineKind::Withdrawn { request_id } => self.withdrawn(&request_id),
            // Ignore an agent of an earlier turn; the CLI reports its end.
            LineKind::OfAgent { parent } if !self.decoder.has_called(&parent) => {}
            LineKind::Mode { word } => {
                self.decode(line, out);
                self.mode_is(&word, out);
            }
            LineKind::OfAgent { .. } | LineKind::Other => self.decode(line, out),
            LineKind::Message => {
                self.decode(line, out);
                self.is_written_down();
            }
        }
        self.show_offers(out);
        self.look_for_end(out);
    }

    /// Handles the CLI's report of its permission mode: once its plan was approved, it leaves the plan mode by itself.
    fn mode_is(&mut self, word: &str, out: &mut Events) {
        let mode = match word {
            "default" => PermissionMode::Default,
            "acceptEdits" => PermissionMode::AcceptEdits,
            "bypassPermissions" => PermissionMode::Bypass,
            _ => return,
        };
        if std::mem::take(&mut self.is_planning) {
            self.planned_for = Some(mode);
            out.push(PermissionChange::new(mode));
        }
    }

    /// Reports changed offers, once the session is known.
    fn show_offers(&mut self, out: &mut Events) {
        if self.has_offers && self.decoder.session().is_some() {
            self.offers.named(self.decoder.commands());
            self.offers.emit(out);
        }
    }

    fn decode(&mut self, line: &[u8], out: &mut Events) {
        let was_in_turn = self.decoder.in_turn();
        self.decoder.line(line, out);
        if !was_in_turn && self.decoder.in_turn() {
            self.begun();
        }
    }

    /// Handles the start of a CLI turn.
    fn begun(&mut self) {
        self.begins = false;
        let turn = self.current.as_ref();
        if turn.is_some_and(|turn| turn.last_end.is_some()) {
            // After a turn, the CLI takes all waiting messages at once.
            for message in &mut self.waiting {
                message.due = true;
            }
        }
        if self.interrupt.as_ref().is_some_and(|it| it.answered) {
            // The CLI received the interruption before this turn. Repeat it.
            self.interrupt();
        }
    }

    /// Records that the session can be resumed. The CLI saves it with its first message.
    fn is_written_down(&mut self) {
        let id = self.decoder.session_id();
        let same = |known: &Id| id.is_some_and(|id| Id::ptr_eq(known, id));
        if !self.resumable.as_ref().is_some_and(same) {
            self.resumable = id.cloned().or(self.resumable.take());
        }
    }

    fn taken(&mut self, uuid: &str) {
        if let Some(at) = self.waiting.iter().position(|it| it.uuid == uuid) {
            self.waiting.remove(at);
            self.begins = !self.decoder.in_turn();
        }
    }

    fn dropped(&mut self, uuid: &str, word: &str, out: &mut Events) {
        let Some(at) = self.waiting.iter().position(|it| it.uuid == uuid) else {
            // Its turn was interrupted or failed.
            return;
        };
        let message = self.waiting.remove(at);
        if self.interrupt.is_some() {
            return;
        }
        if message.is_prompt {
            out.error(refused("the prompt", word));
            self.give_up(out);
        } else {
            let message = refused("the message in the turn", word).message;
            out.notice(NoticeLevel::Warning, NoticeSource::Stdout, message);
        }
    }

    fn answered(&mut self, request_id: &str, outcome: Result<Answer, String>) {
        // The CLI also echoes the session's responses to its own requests.
        let Some(request) = self.requests.remove(request_id) else {
            return;
        };
        match request {
            Request::Interrupt => {
                if let Some(interrupt) = &mut self.interrupt {
                    interrupt.answered = true;
                }
            }
            Request::Cancel(uuid) => {
                let Some(at) = self.waiting.iter().position(|it| it.uuid == uuid) else {
                    return;
                };
                if outcome.is_ok_and(|answer| answer.cancelled) {
                    self.waiting.remove(at);
                } else {
                    self.waiting[at].taken = true;
                }
            }
            Request::Change(command) => {
                let outcome = outcome.map(drop).map_err(|error| refused("that", &error));
                self.outbox.answer(command, outcome);
            }
            Request::Initialize => {
                if let Ok(answer) = outcome {
                    self.offers.initialized(answer);
                }
            }
            Request::End => {}
        }
    }

    fn ask(&mut self, line: &[u8], ask: Ask, out: &mut Events) {
        // A background agent may send a request between two turns, which starts no turn.
        if self.is_in_turn() || self.decoder.in_turn() {
            self.decode(line, out);
        }
        self.last_question += 1;
        let kind = self.decoder.tool_kind(&ask.tool_name);
        let mut request =
            PermissionRequest::new(self.last_question, ask.tool_name, kind, ask.input);
        request.tool_id = ask.tool_id.map(Id::from);
        request.message = ask.message;
        request.takes_input = true;
        if request.tool_name == ASK_USER {
            let (message, schema) = ask_user::form(&request.input);
            request.message = Some(message);
            request.schema = Some(schema);
        }
        let question = Question {
            request_id: ask.request_id,
            tool_name: request.tool_name.clone(),
            input: request.input.clone(),
            suggestions: ask.suggestions,
            hook: None,
            is_of_server: false,
        };
        self.questions.insert(request.id, question);
        self.outbox.ask(request);
    }

    /// Asks the caller before or after a tool.
    fn call_hook(&mut self, hook: Hook) {
        self.last_question += 1;
        let kind = self.decoder.tool_kind(&hook.tool_name);
        let mut request =
            PermissionRequest::new(self.last_question, hook.tool_name, kind, hook.input);
        request.tool_id = hook.tool_id.map(Id::from);
        request.stage = match hook.event {
            HookEvent::PreToolUse => ToolStage::Before,
            HookEvent::PostToolUse | HookEvent::PostToolUseFailure => {
                ToolStage::After(Box::new(hook.output))
            }
        };
        request.takes_input = hook.event == HookEvent::PreToolUse;
        let question = Question {
            request_id: hook.request_id,
            tool_name: request.tool_name.clone(),
            input: Value::Null,
            suggestions: Vec::new(),
            hook: Some(hook.event),
            is_of_server: false,
        };
        self.questions.insert(request.id, question);
        self.outbox.ask(request);
    }

    fn elicit(&mut self, asked: Elicitation, out: &mut Events) {
        self.last_question += 1;
        let schema = asked.schema.unwrap_or_else(|| json!({"type": "object"}));
        let mut request = PermissionRequest::question(
            self.last_question,
            &asked.server,
            &excerpt(&asked.message, 1000),
            schema,
        );
        if let Some(url) = asked.url {
            request.input["url"] = url.into();
        }
        if self.is_in_turn() || self.decoder.in_turn() {
            out.push(
                PermissionEvent::new(request.tool_name.clone(), Decision::Requested)
                    .reason(request.message.clone()),
            );
        }
        let question = Question {
            request_id: asked.request_id,
            tool_name: request.tool_name.clone(),
            input: request.input.clone(),
            suggestions: Vec::new(),
            hook: None,
            is_of_server: true,
        };
        self.questions.insert(request.id, question);
        self.outbox.ask(request);
    }

    fn withdrawn(&mut self, request_id: &str) {
        let mut questions = self.questions.iter();
        let question = questions.find(|(_, question)| question.request_id == request_id);
        if let Some(id) = question.map(|(id, _)| *id) {
            self.questions.remove(&id);
            self.outbox.withdraw(id);
        }
    }

    /// Returns whether a line only concerns clearing the conversation. The start of the new session is
    /// reported, so it is not such a line.
    fn is_of_clearing(&self, session_id: Option<&str>, what: &LineKind) -> bool {
        let Some(clearing) = &self.clearing else {
            return false;
        };
        match what {
            LineKind::Result { unasked, .. } => !unasked,
            LineKind::Message | LineKind::Taken { .. } => session_id != clearing.from.as_deref(),
            _ => false,
        }
    }

    fn cleared(
        &mut self,
        line: &[u8],
        session_id: Option<&str>,
        failed: bool,
        text: &str,
        out: &mut Events,
    ) {
        let Some(clearing) = self.clearing.take() else {
            return;
        };
        let same = clearing.from.is_some() && session_id == clearing.from.as_deref();
        self.decoder.cleared(line);
        if failed || same {
            let error = refused("to clear the conversation", text);
            self.outbox.answer(clearing.command, Err(error));
        } else {
            self.is_written_down();
            self.outbox.answer(clearing.command, Ok(()));
        }
        self.go_on(out);
    }

    /// Handles the end of a CLI turn.
    fn result(&mut self, line: &[u8], unasked: bool, out: &mut Events) {
        let mut events = Events::new();
        self.decoder.line(line, &mut events);
        self.begins = false;
        self.taken_with_it(unasked);
        let agents = self.decoder.agents_at_work();
        let (was_over, goes_on) = match &mut self.current {
            Some(turn) => {
                if let Some(error) = turn.last_error.take() {
                    // The turn continued after the error.
                    let message = error.error.message;
                    out.notice(NoticeLevel::Warning, NoticeSource::Stdout, message);
                }
                (turn.over, !turn.sent || !self.waiting.is_empty() || agents)
            }
            None => (false, false),
        };
        let last_end = self.current.as_ref().and_then(|it| it.last_end.as_ref());
        let answered = last_end.is_some_and(|end| !end.is_error);
        let mut aborted = false;
        for event in events.drain() {
            match event {
                AgentEvent::Error(e)
                    if e.error.kind == ErrorKind::Aborted && self.interrupt.is_some() =>
                {
                    // The end of the turn reports it.
                    aborted = true;
                }
                AgentEvent::Error(e) if e.error.kind == ErrorKind::Permission && answered => {
                    if let Some(turn) = &mut self.current {
                        turn.held_back = true;
                    }
                    let message = e.error.message;
                    out.notice(NoticeLevel::Warning, NoticeSource::Stdout, message);
                }
                AgentEvent::Error(e) if goes_on => {
                    if let Some(turn) = &mut self.current {
                        turn.last_error = Some(e);
                    }
                }
                AgentEvent::TurnEnd(_) if was_over => {}
                AgentEvent::TurnEnd(end) if goes_on => self.add(end),
                AgentEvent::TurnEnd(end) => {
                    self.interrupted = aborted;
                    self.over(end, out);
                }
                event => out.push(event),
            }
        }
    }

    /// Removes the messages that the CLI must have received by the end of its turn. It does not confirm its own
    /// commands, nor messages that a hook blocked.
    fn taken_with_it(&mut self, unasked: bool) {
        let stopped = self.interrupt.is_some();
        self.waiting.retain_mut(|message| {
            let taken = !unasked && (message.is_prompt || message.due);
            let lost = stopped && message.taken && !message.is_prompt;
            message.due = false;
            !taken && !lost
        });
    }

    /// Adds a CLI turn to the caller's turn, which continues.
    fn add(&mut self, end: Box<TurnEnd>) {
        let Some(turn) = &mut self.current else {
            return;
        };
        turn.usage = match (turn.usage, end.usage) {
            (Some(before), Some(now)) => Some(before.plus(now)),
            (before, now) => before.or(now),
        };
        turn.cost_usd = match (turn.cost_usd, end.cost_usd) {
            (Some(before), Some(now)) => Some(before + now),
            (before, now) => before.or(now),
        };
        turn.last_end = Some(end);
    }

    /// Ends the caller's turn with this CLI turn.
    fn over(&mut self, end: Box<TurnEnd>, out: &mut Events) {
        let mut sum = end.clone();
        self.add(end);
        if let Some(turn) = &mut self.current {
            turn.over = true;
            sum.is_error &= !turn.held_back;
            sum.usage = turn.usage;
            sum.cost_usd = turn.cost_usd;
        }
        out.push(AgentEvent::TurnEnd(sum));
    }

    /// Returns whether the turn only waits for background agents.
    pub(super) fn waits_for_agents(&self) -> bool {
        let turn = self.current.as_ref();
        turn.is_some_and(|turn| !turn.over && turn.last_end.is_some())
            && !self.decoder.in_turn()
            && self.decoder.agents_at_work()
    }

    /// Ends a turn without a final result: an interrupted one whose messages were all withdrawn, or one whose last
    /// background agents ended without another CLI turn.
    fn look_for_end(&mut self, out: &mut Events) {
        let quiet = self.waiting.is_empty()
            && !self.begins
            && !self.decoder.in_turn()
            && !self.decoder.agents_at_work();
        if !(quiet && self.is_in_turn()) {
            return;
        }
        let (heard, ended_agents) = match &self.interrupt {
            Some(interrupt) => (interrupt.answered, interrupt.ends_agents),
            // Its messages were received, and the CLI turn has ended.
            None => (self.current.as_ref().is_some_and(|it| it.sent), false),
        };
        if !heard {
            return;
        }
        let turn = self.current.as_mut();
        let last = turn.and_then(|turn| Some((turn.last_end.take()?, turn.last_error.take())));
        match last {
            Some((mut end, error)) => {
                if let Some(turn) = &mut self.current {
                    turn.over = true;
                    end.usage = turn.usage;
                    end.cost_usd = turn.cost_usd;
                }
                self.interrupted = ended_agents;
                if let Some(error) = error {
                    out.push(AgentEvent::Error(error));
                }
                out.push(AgentEvent::TurnEnd(end));
            }
            None if self.interrupt.is_some() => {
                self.interrupted = true;
                self.give_up(out);
            }
            None => {}
        }
    }
}
