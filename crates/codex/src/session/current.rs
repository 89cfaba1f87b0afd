//! The course of a turn, from its request to its end.

use std::borrow::Cow;

use serde_json::{Value, json};
use teamster_core::provider::{CommandId, Events};
use teamster_core::{AgentError, PermissionMode, SessionStarted, Turn, TurnEnd};

use super::calls::Call;
use super::errors::answer_without;
use super::offers::BuiltIn;
use super::opening::image_item;
use super::permissions::{self, PLAN};
use super::state::CodexSession;
use super::turn::{CurrentTurn, Ended, Interrupt};
use crate::launch::check_prompt;
use crate::wire::Object;

impl CodexSession {
    /// Sends the turn to the CLI.
    pub(super) fn begin_turn(&mut self, turn: &Turn) {
        let Some(thread) = &self.thread else {
            return;
        };
        let id = json!(thread.id);
        let command = self.built_in(turn).and_then(Result::ok);
        let mut params = match command {
            Some(BuiltIn::Compact) => json!({}),
            _ => self.changed_settings(),
        };
        let has_settings = params.as_object().is_some_and(|it| !it.is_empty());
        params["threadId"] = id;
        let number = self.next_turn();
        if let Some(command) = command {
            if !has_settings {
                return self.begin_command(number, command);
            }
            // It has no settings of its own.
            let call = Call::SettingsBefore(number, command);
            self.call(call, "thread/settings/update", &params);
            return;
        }
        params["input"] = input(turn, &self.with_skill(&turn.prompt));
        if let Some(schema) = &self.start.output_schema {
            params["outputSchema"] = schema.clone();
        }
        self.call(Call::Turn(number), "turn/start", &params);
    }

    /// Sends the request of a command, with the settings that the CLI has taken.
    pub(super) fn begin_command(&mut self, turn: u64, command: BuiltIn) {
        let current = self.current.as_ref().filter(|it| it.number == turn);
        let (Some(_), Some(thread)) = (current, &self.thread) else {
            return;
        };
        let (method, mut params) = command.request();
        params["threadId"] = json!(thread.id);
        let call = match command {
            BuiltIn::Compact => Call::Compact(turn),
            BuiltIn::Review(_) => Call::Turn(turn),
            BuiltIn::Goal(command) => Call::Goal(turn, command),
        };
        self.call(call, method, &params);
    }

    /// Returns the settings of a turn that are not those of the thread, in the CLI's terms.
    fn changed_settings(&mut self) -> Value {
        let mut params = json!({});
        let Some(thread) = &self.thread else {
            return params;
        };
        if self.model_changed {
            params["model"] = json!(self.model);
            // Another model may have another default.
            if let Some(effort) = &self.start.effort {
                params["effort"] = json!(effort);
            }
        }
        if self.mode_changed {
            let settings = self.settings();
            let (mode, answers) = (self.mode, self.start.answers);
            let (sandbox, approvals) = match (&thread.defaults, mode) {
                (Some(defaults), PermissionMode::Default) => defaults.clone(),
                _ => (
                    permissions::sandbox_policy(mode, &settings, &self.start),
                    permissions::approval_policy_or_own(mode, answers, &settings),
                ),
            };
            params["sandboxPolicy"] = sandbox;
            params["approvalPolicy"] = approvals;
        }
        let plans = self.mode == PermissionMode::Plan;
        if (plans != self.is_planning || (plans && self.model_changed))
            && let Some(model) = self.model.as_ref().or(thread.model.as_ref())
        {
            let mode = if plans { PLAN } else { "default" };
            // It takes precedence over the turn's model and effort. Without instructions, they are the CLI's own of the mode.
            let settings = json!({"model": model, "reasoning_effort": self.start.effort});
            params["collaborationMode"] = json!({"mode": mode, "settings": settings});
            self.is_planning = plans;
        }
        params
    }

    /// Begins the next turn and returns its number.
    fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.current = Some(CurrentTurn {
            number: self.turns,
            ..CurrentTurn::default()
        });
        self.figures.turn_begins();
        self.turns
    }

    pub(super) fn turn_answered(
        &mut self,
        number: u64,
        result: Result<Object<'_>, AgentError>,
        out: &mut Events,
    ) {
        let Some(current) = self.current.as_mut().filter(|it| it.number == number) else {
            return;
        };
        let id = result.and_then(|result| {
            let turn = result.object("turn");
            let id = turn.and_then(|turn| turn.text("id"));
            id.ok_or_else(|| answer_without("the id of the turn"))
                .map(Cow::into_owned)
        });
        match id {
            Ok(id) => {
                // A turn that was already active takes up the requested prompt.
                let runs = self.running.as_ref() == Some(&id);
                current.id = Some(id);
                if runs {
                    self.turn_started();
                }
            }
            Err(error) => self.fail(error, out),
        }
    }

    /// Marks the turn as active, so it can be interrupted and steered.
    pub(super) fn turn_started(&mut self) {
        if let Some(current) = &mut self.current {
            current.started = true;
        }
        self.request_offers();
        for (command, text) in std::mem::take(&mut self.waiting.steers) {
            self.steer(command, text);
        }
        self.interrupt_if_wanted();
    }

    pub(super) fn steer(&mut self, command: CommandId, text: String) {
        if self.current.is_none() && self.waiting.turn.is_none() {
            return self.outbox.answer(command, Err(AgentError::no_turn()));
        }
        let turn = self.current.as_ref().filter(|current| current.started);
        if turn.is_some_and(|turn| turn.held.is_some()) {
            return self.resume(command, &text);
        }
        let ids = turn.and_then(|turn| Some((turn.id.clone()?, self.thread.as_ref()?.id.clone())));
        let Some((turn, thread)) = ids else {
            self.waiting.steers.push((command, text));
            return;
        };
        let params =
            json!({"threadId": thread, "expectedTurnId": turn, "input": [text_item(&text)]});
        self.call(Call::Steer(command), "turn/steer", &params);
    }

    /// Begins another turn of the main agent while other agents are at work. It belongs to the same turn of ours.
    fn resume(&mut self, command: CommandId, text: &str) {
        let thread = self.thread.as_ref().map(|thread| &*thread.id);
        let mut params = json!({"threadId": thread, "input": [text_item(text)]});
        if let Some(schema) = &self.start.output_schema {
            params["outputSchema"] = schema.clone();
        }
        if let Some(current) = &mut self.current {
            current.is_resuming = true;
        }
        self.call(Call::Resume(command), "turn/start", &params);
    }

    pub(super) fn resumed(
        &mut self,
        command: CommandId,
        result: Result<Object<'_>, AgentError>,
        out: &mut Events,
    ) {
        let id = result.as_ref().ok().and_then(|it| it.object("turn"));
        let id = id.and_then(|turn| turn.text("id")).map(Cow::into_owned);
        self.outbox.answer(command, result.map(|_| ()));
        let Some(current) = &mut self.current else {
            return;
        };
        current.is_resuming = false;
        if let Some(id) = id
            && !current.is_root(&id)
        {
            current.goes_on(id);
        }
        self.interrupt_if_wanted();
        self.end_with_agents(out);
    }

    pub(super) fn interrupt(&mut self, out: &mut Events) {
        if let Some(current) = &mut self.current {
            if current.interrupt == Interrupt::No {
                current.interrupt = Interrupt::Wanted;
            }
            self.interrupt_if_wanted();
        } else if self.waiting.turn.take().is_some() {
            // The CLI does not know the turn yet.
            self.end(Ended::interrupted(), out);
        }
    }

    pub(super) fn interrupt_if_wanted(&mut self) {
        let (Some(current), Some(thread)) = (&mut self.current, &self.thread) else {
            return;
        };
        let wanted = current.interrupt == Interrupt::Wanted && current.started;
        let Some(id) = current.id.clone().filter(|_| wanted) else {
            return;
        };
        current.interrupt = Interrupt::Sent;
        // Without this, the turn's agents would continue.
        let agents = self.agents.working_for(|turn| current.is_root(turn));
        if let Some(held) = &mut current.held {
            *held = Ended::interrupted();
        } else {
            // A review is carried out by a turn with another id than that of its lines.
            let running = self.running.as_ref().unwrap_or(&id);
            let params = json!({"threadId": thread.id, "turnId": running});
            self.call(Call::Interrupt, "turn/interrupt", &params);
        }
        for (thread, turn) in agents {
            self.interrupt_agent(thread, turn);
        }
    }

    pub(super) fn interrupt_agent(&mut self, thread: String, turn: String) {
        let params = json!({"threadId": thread, "turnId": turn});
        let call = Call::InterruptAgent(thread, turn);
        self.call(call, "turn/interrupt", &params);
    }

    /// Ends the turn's commands, which the CLI leaves running after an interrupt.
    pub(super) fn end_commands(&mut self) {
        let Some(current) = &self.current else {
            return;
        };
        let commands = self.agents.take_commands(|turn| current.is_root(turn));
        for (thread, process) in commands {
            let params = json!({"threadId": thread, "processId": process});
            self.call(Call::Other, "thread/backgroundTerminals/terminate", &params);
        }
    }

    /// Ends the turn if the main agent has ended it and no other agent works for it.
    pub(super) fn end_with_agents(&mut self, out: &mut Events) {
        let Some(current) = &self.current else {
            return;
        };
        let Some(held) = &current.held else {
            return;
        };
        let at_work = self.agents.working_for(|turn| current.is_root(turn));
        if current.is_resuming || !at_work.is_empty() {
            if held.interrupted {
                self.end_commands();
            }
            return;
        }
        let held = held.clone();
        self.end(held, out);
    }

    /// Fails a turn that cannot be run.
    pub(super) fn fail(&mut self, error: AgentError, out: &mut Events) {
        out.error(error);
        let ended = Ended {
            is_error: true,
            ..Ended::default()
        };
        self.end(ended, out);
    }

    /// Ends the turn.
    pub(super) fn end(&mut self, ended: Ended, out: &mut Events) {
        self.live.clear();
        if ended.interrupted {
            self.end_commands();
        }
        if let Some(mut current) = self.current.take() {
            current.finish(out);
            if let Some(id) = current.id.filter(|_| ended.interrupted) {
                self.agents.interrupted(id);
            }
            if let (Some(model), Some(thread)) = (current.model, &mut self.thread) {
                thread.answered_by = Some(model);
            }
        }
        self.waiting.turn = None;
        self.approvals.withdraw_all(&mut self.outbox);
        for (command, _) in self.waiting.steers.drain(..) {
            self.outbox.answer(command, Err(AgentError::no_turn()));
        }
        self.interrupted = ended.interrupted;
        out.push(
            TurnEnd::new(ended.is_error)
                .stop_reason(ended.stop_reason.clone())
                .usage(self.figures.of_turn()),
        );
        self.figures.turn_ends();
        self.ended = Some(ended);
    }

    /// Begins another turn.
    pub(super) fn turn_begins(&mut self, out: &mut Events) {
        self.ended = None;
        self.interrupted = false;
        if let Some(thread) = &mut self.thread {
            thread.answered_by = None;
        }
        if self.opening.is_none() {
            self.report_session(out);
        }
    }

    /// Reports the session in each of its turns.
    pub(super) fn report_session(&self, out: &mut Events) {
        if let Some(thread) = &self.thread {
            out.push(
                SessionStarted::new(thread.id.clone())
                    .model(self.model.clone().or_else(|| thread.model.clone())),
            );
        }
    }

    pub(super) fn take_turn(&mut self, turn: Turn, out: &mut Events) {
        // The new turn takes over one that the CLI began by itself and that has no reader.
        self.current = None;
        self.open_if_needed();
        self.turn_begins(out);
        self.figures.turn_begins();
        if let Err(error) = check_prompt(&turn.prompt, turn.images.len()) {
            return self.fail(error, out);
        }
        if let Some(Err(error)) = self.built_in(&turn) {
            return self.fail(error, out);
        }
        self.waiting.turn = Some(turn);
    }
}

fn text_item(text: &str) -> Value {
    json!({"type": "text", "text": text, "text_elements": []})
}

/// Returns the images and the prompt as the CLI takes it, in the same order as in a run.
fn input(turn: &Turn, prompt: &str) -> Value {
    let images = turn.images.iter().filter_map(image_item);
    // An empty text would still be an additional part.
    let text = (!prompt.is_empty()).then(|| text_item(prompt));
    images.chain(text).collect()
}
