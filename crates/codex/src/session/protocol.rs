//! The protocol of one `codex app-server` process.

use std::borrow::Cow;

use serde_json::{Value, json};
use teamster_core::provider::{
    CommandId, DecodedResult, Decoder, Events, Exit, Outbox, SessionCommand, SessionProtocol,
    json_line,
};
use teamster_core::text::without_colors;
use teamster_core::{AgentError, ErrorKind, Id, PermissionAnswer, PermissionMode};

use super::approvals::Asker;
use super::calls::{Call, refusal};
use super::errors::answer_without;
use super::state::CodexSession;
use super::turn::{Interrupt, Worker};
use crate::decoder::errors;
use crate::wire::Object;

impl CodexSession {
    /// Handles a message. Returns `None` if it is unknown; then the state is unchanged.
    fn message(&mut self, message: &Object<'_>, out: &mut Events) -> Option<()> {
        let none = || Object::parse("{}");
        match (message.text("method"), message.value("id")) {
            (Some(method), Some(id)) => {
                let params = message.object("params").or_else(none)?;
                self.asked(&method, &id, &params, out);
                Some(())
            }
            (Some(method), None) => {
                let params = message.object("params").or_else(none)?;
                self.notification(&method, &params, out)
            }
            (None, Some(id)) => match self.offers_answered(&id, message, out) {
                Some(()) => Some(()),
                None => self.answered(id.as_u64()?, message, out),
            },
            (None, None) => None,
        }
    }

    /// Handles a request of the CLI.
    fn asked(&mut self, method: &str, id: &Value, params: &Object<'_>, out: &mut Events) {
        let worker = self.worker(params);
        let current = self.current.as_mut().zip(worker.as_ref());
        let asker = current.map(|(current, worker)| Asker {
            work: current.work(worker, &self.agents).0,
            is_agent: matches!(worker, Worker::Agent { .. }),
        });
        let known = self
            .approvals
            .asked(method, id, params, asker.as_ref(), &mut self.outbox, out);
        if known.is_none() {
            let error = json!({"code": -32601, "message": "method not found"});
            self.outbox.write(&json!({"id": id, "error": error}));
        }
    }

    /// Handles the response to one of our requests.
    fn answered(&mut self, id: u64, message: &Object<'_>, out: &mut Events) -> Option<()> {
        let call = self.calls.answered(id)?;
        let result = match (message.object("result"), message.object("error")) {
            (_, Some(error)) => Err(refusal(&error)),
            (Some(result), None) => Ok(result),
            (None, None) => Err(answer_without("a result")),
        };
        match (call, result) {
            (Call::Settings, result) => self.settings_answered(result.ok().as_ref()),
            (Call::Initialize, Err(error)) => self.not_opened(error, out),
            (Call::Open, Err(error)) if self.is_opening(id) => self.not_opened(error, out),
            (Call::Open, Ok(result)) if self.is_opening(id) => self.opened(&result, out),
            (Call::Open, Ok(result)) => self.opened_unwanted(&result),
            (Call::Turn(number), result) => self.turn_answered(number, result, out),
            (Call::SettingsBefore(number, command), Ok(_)) => self.begin_command(number, command),
            (Call::Goal(number, command), result) => {
                self.goal_answered(number, &command, result, out);
            }
            // The start of the turn identifies it.
            (Call::Compact(number) | Call::SettingsBefore(number, _), Err(error))
                if (self.current.as_ref()).is_some_and(|current| current.number == number) =>
            {
                self.fail(error, out);
            }
            // The turn has not begun, or is already over. The next line shows which.
            (Call::Interrupt, Err(_)) => {
                if let Some(current) = &mut self.current
                    && current.interrupt == Interrupt::Sent
                {
                    current.interrupt = Interrupt::Wanted;
                }
            }
            // The agent has no turn to interrupt, so its end is not awaited.
            (Call::InterruptAgent(thread, turn), Err(_)) => {
                self.agents.completed(&thread, &turn);
                self.end_with_agents(out);
            }
            (Call::Resume(command), result) => self.resumed(command, result, out),
            (Call::Steer(command), result) => self.outbox.answer(command, result.map(|_| ())),
            _ => {}
        }
        Some(())
    }

    fn set_permission(&mut self, command: CommandId, mode: PermissionMode) {
        if !crate::CAPABILITIES.has_session_mode(mode) {
            let problem = format!("Codex has no mode {mode}");
            let error = AgentError::refused("permission", problem);
            return self.outbox.answer(command, Err(error));
        }
        self.mode = mode;
        self.mode_changed = true;
        self.outbox.answer(command, Ok(()));
    }

    fn set_model(&mut self, command: CommandId, model: String) {
        if model.trim().is_empty() {
            let error = AgentError::refused("model", "it is empty");
            return self.outbox.answer(command, Err(error));
        }
        self.model = Some(model);
        self.model_changed = true;
        self.outbox.answer(command, Ok(()));
    }

    /// Sends requests that were waiting for the CLI to be ready.
    fn advance(&mut self) {
        self.open_if_ready();
        let is_ready = self.opening.is_none() && self.thread.is_some();
        if !is_ready || self.waiting.turn.is_none() {
            return;
        }
        let defaults = self
            .thread
            .as_ref()
            .and_then(|thread| thread.defaults.as_ref());
        let needs_settings = match self.mode {
            PermissionMode::ReadOnly | PermissionMode::Bypass | PermissionMode::Plan => false,
            PermissionMode::Default => defaults.is_none(),
            _ => true,
        };
        if self.mode_changed && needs_settings && !self.has_settings() {
            return;
        }
        if let Some(turn) = self.waiting.turn.take() {
            if self.awaits_skills(&turn) {
                self.waiting.turn = Some(turn);
            } else {
                self.begin_turn(&turn);
            }
        }
    }
}

impl Decoder for CodexSession {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        let text = json_line::text(line);
        let known = Object::parse(&text).and_then(|message| self.message(&message, out));
        if known.is_none() {
            out.unknown(line);
        }
        self.advance();
    }

    fn finish(&mut self, _: &Exit, out: &mut Events) -> DecodedResult {
        // The CLI exited in the middle of the turn.
        if let Some(mut current) = self.current.take() {
            current.finish(out);
            if let Some(failure) = current.main.pending.take() {
                out.error(failure.error());
            }
        }
        self.waiting.turn = None;
        let ended = self.ended.take();
        let thread = self.thread.as_ref();
        let answered_by = thread.and_then(|thread| thread.answered_by.clone());
        let model = (answered_by.or_else(|| self.model.clone()))
            .or_else(|| thread.and_then(|thread| thread.model.clone()));
        let answer = ended.as_ref().and_then(|ended| ended.answer.as_deref());
        let is_structured = self.start.output_schema.is_some();
        DecodedResult {
            ended_with_error: ended.as_ref().map(|ended| ended.is_error),
            session_id: thread.map(|thread| thread.id.clone()),
            model,
            usage: self.figures.of_turn(),
            session_usage: self.figures.of_session(),
            stop_reason: ended.as_ref().and_then(|ended| ended.stop_reason.clone()),
            structured_output: answer
                .filter(|_| is_structured)
                .and_then(|text| serde_json::from_str(text).ok()),
            ..DecodedResult::default()
        }
    }

    fn stderr_evidence<'a>(&self, stderr: &'a str) -> Cow<'a, str> {
        Cow::Owned(errors::evidence(&without_colors(stderr)))
    }

    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        errors::kind_of_stderr(stderr)
    }
}

impl SessionProtocol for CodexSession {
    fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    fn open(&mut self) {
        self.initialize();
        self.advance();
    }

    fn command(&mut self, command: SessionCommand, out: &mut Events) {
        match command {
            SessionCommand::Turn(turn) => self.take_turn(turn, out),
            SessionCommand::Interrupt => self.interrupt(out),
            SessionCommand::Steer(command, text) => self.steer(command, text),
            SessionCommand::Clear(command) => self.clear(command, out),
            SessionCommand::SetModel(command, model) => self.set_model(command, model),
            SessionCommand::SetPermission(command, mode) => self.set_permission(command, mode),
            SessionCommand::Answer(id, answer) => {
                self.approvals.answer(id, &answer, &mut self.outbox);
            }
            // The end of its input is enough to make the CLI exit.
            _ => {}
        }
        self.advance();
    }

    fn unsupported_answer(&self, id: u64, answer: &PermissionAnswer) -> Option<String> {
        self.approvals.unsupported(id, answer)
    }

    fn interrupted(&self) -> bool {
        self.interrupted
    }

    fn session_id(&self) -> Option<Id> {
        let thread = self.thread.as_ref().filter(|thread| thread.can_be_resumed);
        thread.map(|thread| thread.id.clone())
    }
}
