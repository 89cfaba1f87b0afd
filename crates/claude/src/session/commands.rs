//! Commands to the CLI.

use serde_json::{Value, json};
use teamster_core::provider::{CommandId, Events, RunAssembler, SessionCommand};
use teamster_core::{AgentError, PermissionAnswer, PermissionMode, Turn, TurnEnd};

use super::ask_user::{self, ASK_USER};
use super::wire::HookEvent;
use super::{ClaudeSession, Clearing, CurrentTurn, Interrupt, Question, Request, Waiting, wire};
use crate::launch::{content, not_a_command};

/// Default reason for the agent if a denial has none.
const DENIED: &str = "The user did not allow this.";

impl ClaudeSession {
    pub(super) fn run_command(&mut self, command: SessionCommand, out: &mut Events) {
        match command {
            SessionCommand::Turn(turn) => {
                self.decoder.next_turn();
                self.interrupt = None;
                self.interrupted = false;
                self.current.get_or_insert_with(CurrentTurn::default);
                if self.clearing.is_some() || !self.held.is_empty() {
                    self.held.push_back(SessionCommand::Turn(turn));
                } else {
                    self.send(&turn, out);
                }
            }
            SessionCommand::Interrupt => self.stop(out),
            SessionCommand::Steer(id, text) => self.steer(id, text),
            SessionCommand::Clear(id) => {
                self.held.push_back(SessionCommand::Clear(id));
                if self.current.is_none() && self.held.len() == 1 {
                    self.go_on(out);
                }
            }
            SessionCommand::SetModel(id, model) => {
                let request = json!({"subtype": "set_model", "model": model});
                self.request(Request::Change(id), &request);
            }
            SessionCommand::SetPermission(id, mode) => self.set_permission(id, mode),
            SessionCommand::Answer(id, answer) => self.answer(id, answer),
            SessionCommand::Close => self.request(Request::End, &json!({"subtype": "end_session"})),
            _ => {}
        }
    }

    /// Executes the commands that were held back, as far as possible.
    pub(super) fn go_on(&mut self, out: &mut Events) {
        while self.clearing.is_none()
            && let Some(command) = self.held.pop_front()
        {
            match command {
                SessionCommand::Clear(id) if self.current.is_some() => {
                    return self.held.push_front(SessionCommand::Clear(id));
                }
                SessionCommand::Clear(id) => self.clear(id),
                SessionCommand::Turn(turn) => self.send(&turn, out),
                SessionCommand::Steer(id, text) => self.steer(id, text),
                _ => {}
            }
        }
    }

    fn send(&mut self, turn: &Turn, out: &mut Events) {
        if let Err(error) = self.try_send(turn) {
            out.error(error);
            self.give_up(out);
        } else if let Some(current) = &mut self.current {
            current.sent = true;
        }
    }

    fn try_send(&mut self, turn: &Turn) -> Result<(), AgentError> {
        let prompt = not_a_command(&turn.prompt, self.slash_commands);
        let content = if !turn.images.is_empty() {
            content(&prompt, &turn.images)?
        } else if prompt.trim().is_empty() {
            return Err(AgentError::refused("prompt", "it is empty"));
        } else {
            Value::from(prompt)
        };
        self.send_message(true, &content);
        Ok(())
    }

    fn send_message(&mut self, is_prompt: bool, content: &Value) {
        let uuid = self.ids.uuid();
        self.outbox.write(&wire::message(&uuid, content));
        self.waiting.push(Waiting {
            uuid,
            is_prompt,
            due: false,
            taken: false,
        });
    }

    /// Fails a turn for which the CLI will send no result.
    pub(super) fn give_up(&mut self, out: &mut Events) {
        if let Some(current) = &mut self.current {
            current.over = true;
            current.failed = true;
            out.push(
                TurnEnd::new(true)
                    .usage(current.usage)
                    .cost_usd(current.cost_usd),
            );
        }
    }

    fn steer(&mut self, id: CommandId, text: String) {
        let sent = self.current.as_ref().is_some_and(|turn| turn.sent);
        let why_not = if !self.is_in_turn() {
            Some("no turn is in progress")
        } else if self.interrupt.is_some() {
            Some("the turn is being interrupted")
        } else if text.trim().is_empty() {
            Some("it is empty")
        } else {
            None
        };
        if let Some(why) = why_not {
            let error = AgentError::refused("steer", why);
            self.outbox.answer(id, Err(error));
        } else if sent {
            // Never send a command: the CLI would not add it to the turn.
            let text = Value::from(not_a_command(&text, false));
            self.send_message(false, &text);
            // The agent may read it much later.
            self.outbox.answer(id, Ok(()));
        } else {
            self.held.push_back(SessionCommand::Steer(id, text));
        }
    }

    fn clear(&mut self, id: CommandId) {
        let from = self.decoder.session_id().cloned();
        if from.is_none() && self.resumable.is_none() {
            // The session has no message yet.
            return self.outbox.answer(id, Ok(()));
        }
        let uuid = self.ids.uuid();
        let command = Value::from("/clear");
        self.outbox.write(&wire::message(&uuid, &command));
        self.clearing = Some(Clearing { command: id, from });
    }

    fn stop(&mut self, out: &mut Events) {
        match &self.current {
            Some(turn) if turn.over => return,
            Some(turn) if !turn.sent => return self.drop_held(out),
            Some(_) => {}
            None if self.decoder.in_turn() || self.decoder.agents_at_work() => {}
            None => return,
        }
        if self.interrupt.is_some() {
            return;
        }
        // Waiting messages would get a turn after this one.
        let waiting: Vec<_> = self.waiting.iter().map(|it| it.uuid.clone()).collect();
        for uuid in waiting {
            let request = json!({"subtype": "cancel_async_message", "message_uuid": uuid});
            self.request(Request::Cancel(uuid), &request);
        }
        self.interrupt();
    }

    pub(super) fn interrupt(&mut self) {
        self.interrupt = Some(Interrupt {
            answered: false,
            ends_agents: self.waits_for_agents(),
        });
        // Versions without `cancel_queued` ignore it.
        let request = json!({"subtype": "interrupt", "cancel_queued": true});
        self.request(Request::Interrupt, &request);
    }

    /// Ends a turn whose prompt was not sent yet.
    fn drop_held(&mut self, out: &mut Events) {
        let held = std::mem::take(&mut self.held);
        for command in held {
            match command {
                SessionCommand::Turn(_) => {}
                SessionCommand::Steer(id, _) => {
                    let error = RunAssembler::aborted_error();
                    self.outbox.answer(id, Err(error));
                }
                command => self.held.push_back(command),
            }
        }
        self.interrupted = true;
        self.give_up(out);
    }

    fn set_permission(&mut self, id: CommandId, mode: PermissionMode) {
        let word = match mode {
            PermissionMode::ReadOnly if self.read_only => {
                return self.outbox.answer(id, Ok(()));
            }
            PermissionMode::Plan if self.is_planning => {
                return self.outbox.answer(id, Ok(()));
            }
            // In a plan mode that the CLI enters later, its classifier decides about commands in place of the handler.
            PermissionMode::Plan => {
                let error = AgentError::refused(
                    "permission",
                    "Claude Code asks for permission in its plan mode only if it starts in it; open another session",
                );
                return self.outbox.answer(id, Err(error));
            }
            PermissionMode::Default if !self.read_only => "default",
            PermissionMode::AcceptEdits if !self.read_only => "acceptEdits",
            PermissionMode::Bypass if !self.read_only => "bypassPermissions",
            _ => {
                let error = AgentError::refused(
                    "permission",
                    "Claude Code sets a session's tools when it opens, so read-only cannot change \
                     later; open another session",
                );
                return self.outbox.answer(id, Err(error));
            }
        };
        self.is_planning = false;
        self.planned_for = None;
        let request = json!({"subtype": "set_permission_mode", "mode": word});
        self.request(Request::Change(id), &request);
    }

    fn answer(&mut self, id: u64, answer: PermissionAnswer) {
        let Some(question) = self.questions.remove(&id) else {
            // The request was withdrawn.
            return;
        };
        let response = match answer {
            answer if question.hook.is_some() => hooked(question.hook, answer),
            answer if question.is_of_server => elicited(answer),
            answer if question.tool_name == ASK_USER => {
                ask_user::response(&question.input, &answer)
            }
            PermissionAnswer::AllowWith(input) => {
                json!({"behavior": "allow", "updatedInput": input})
            }
            PermissionAnswer::Allow => {
                json!({"behavior": "allow", "updatedInput": question.input})
            }
            PermissionAnswer::AllowAlways => json!({
                "behavior": "allow",
                "updatedInput": question.input,
                "updatedPermissions": rules(&question),
            }),
            PermissionAnswer::Deny(reason) => {
                let reason = reason.as_deref().unwrap_or(DENIED);
                json!({"behavior": "deny", "message": reason})
            }
            _ => json!({"behavior": "deny", "message": DENIED}),
        };
        self.outbox
            .write(&wire::answer(&question.request_id, &response));
    }

    fn request(&mut self, what: Request, request: &Value) {
        let id = self.ids.request();
        self.outbox.write(&wire::request(&id, request));
        self.requests.insert(id, what);
    }
}

/// Returns the response to the call of a hook. An empty one changes nothing.
fn hooked(event: Option<HookEvent>, answer: PermissionAnswer) -> Value {
    let specific = |event: &str, mut output: Value| {
        output["hookEventName"] = event.into();
        json!({"hookSpecificOutput": output})
    };
    let before = "PreToolUse";
    match (event, answer) {
        (Some(HookEvent::PreToolUse), PermissionAnswer::Deny(reason)) => {
            let reason = reason.as_deref().unwrap_or(DENIED);
            let output = json!({"permissionDecision": "deny", "permissionDecisionReason": reason});
            specific(before, output)
        }
        (Some(HookEvent::PreToolUse), PermissionAnswer::AllowWith(input)) => {
            // The CLI takes an input with this decision alone.
            let output = json!({"permissionDecision": "allow", "updatedInput": input});
            specific(before, output)
        }
        (Some(HookEvent::PostToolUse), PermissionAnswer::Deny(Some(reason))) => {
            json!({"decision": "block", "reason": reason})
        }
        (Some(HookEvent::PostToolUseFailure), PermissionAnswer::Deny(Some(reason))) => {
            specific("PostToolUseFailure", json!({"additionalContext": reason}))
        }
        _ => json!({}),
    }
}

/// Returns the response to a request of an MCP server.
fn elicited(answer: PermissionAnswer) -> Value {
    match answer {
        PermissionAnswer::AllowWith(content) => json!({"action": "accept", "content": content}),
        PermissionAnswer::Allow | PermissionAnswer::AllowAlways => {
            json!({"action": "accept", "content": {}})
        }
        _ => json!({"action": "decline"}),
    }
}

/// Returns the rules that prevent the same request later: those that the CLI suggests, or one for the tool. They
/// apply to this session only; the CLI would write some of its own to the project's settings. Suggested modes are
/// left out, because they would allow more than the request.
fn rules(question: &Question) -> Vec<Value> {
    let suggested = question.suggestions.iter();
    let mut rules: Vec<_> = suggested
        .filter(|rule| matches!(rule["type"].as_str(), Some("addRules" | "addDirectories")))
        .cloned()
        .collect();
    if rules.is_empty() {
        rules.push(json!({
            "type": "addRules",
            "rules": [{"toolName": question.tool_name}],
            "behavior": "allow",
        }));
    }
    for rule in &mut rules {
        rule["destination"] = json!("session");
    }
    rules
}
