//! Prompts and their turns.

use agent_client_protocol_schema::v1::{
    Error, PromptResponse, RequestId, StopReason, Usage as SchemaUsage,
};
use teamster_api::{RunEvent, RunLogEntry};
use teamster_core::{AgentError, AgentEvent, Decision, ErrorKind, RunResult, RunStatus, Usage};

use super::{AcpServer, builtin, settings};
use crate::prompt::PromptParams;
use crate::session::{QUEUE, Turn};
use crate::updates::{self, UpdateContext};
use crate::{Action, Output, Prompt, errors, prompt};

impl AcpServer {
    pub(super) fn prompt(
        &mut self,
        id: &RequestId,
        request: &PromptParams,
        out: &mut Output,
    ) -> Result<(), Error> {
        let session_id = request.session_id.0.to_string();
        let mut left_out = Vec::new();
        let mut prompt = prompt::read(&request.prompt, &mut left_out)?;
        self.leave_out_images(&session_id, &mut prompt, &mut left_out)?;
        self.show_left_out(&session_id, &left_out, out);
        let session = self.session(&session_id)?;
        if session.turn.is_some() {
            if session.queue.len() >= QUEUE {
                return Err(errors::invalid(
                    "a turn is in progress, and too many prompts wait for its end",
                ));
            }
            session.queue.push_back((id.clone(), prompt));
            return Ok(());
        }
        self.start_turn(&session_id, id.clone(), prompt, out);
        Ok(())
    }

    /// Leaves out the images of a prompt to an agent without them.
    fn leave_out_images(
        &mut self,
        session_id: &str,
        prompt: &mut Prompt,
        left_out: &mut Vec<String>,
    ) -> Result<(), Error> {
        let agent = self.session(session_id)?.setup.agent.clone();
        let agent = agent.and_then(|id| self.catalog.agent(&id));
        let Some(agent) = agent.filter(|it| !it.images && !prompt.images.is_empty()) else {
            return Ok(());
        };
        if prompt.text.trim().is_empty() {
            let problem = format!("prompt: {} takes no images, and it has no text", agent.name);
            return Err(errors::invalid(problem));
        }
        prompt.images.clear();
        left_out.push(format!("images are left out: {} takes none", agent.name));
        Ok(())
    }

    fn start_turn(&mut self, session_id: &str, id: RequestId, prompt: Prompt, out: &mut Output) {
        let Some(session) = self.sessions.get(session_id) else {
            return;
        };
        if let Some(command) = builtin::command_of(&prompt, self.agent_commands(session)) {
            self.answer_builtin(session_id, &id, command, out);
            return self.next_prompt(session_id, out);
        }
        let Some(session) = self.sessions.get_mut(session_id) else {
            return;
        };
        session.turn = Some(Turn {
            id,
            run_id: None,
            cancelled: false,
        });
        out.actions.push(Action::Prompt {
            session_id: session_id.to_owned(),
            setup: session.setup.clone(),
            prompt,
        });
        session.asks_offers = false;
        // The next prompt continues this session.
        session.started = true;
        session.setup.resumed = true;
        self.show_changed_options(session_id, out);
    }

    /// Cancels the session's turn, also one that the agent began by itself, and its queued prompts.
    pub(super) fn cancel(&mut self, session_id: &str, out: &mut Output) {
        let Some(session) = self.sessions.get_mut(session_id) else {
            return;
        };
        for (id, _) in session.queue.drain(..) {
            out.response(&id, &PromptResponse::new(StopReason::Cancelled));
        }
        if let Some(turn) = &mut session.turn {
            turn.cancelled = true;
        }
        if session.started {
            out.actions.push(Action::Interrupt {
                session_id: session_id.to_owned(),
            });
        }
    }

    pub(super) fn cancel_prompt(&mut self, session_id: &str, id: &RequestId, out: &mut Output) {
        let Some(session) = self.sessions.get_mut(session_id) else {
            return;
        };
        let before = session.queue.len();
        session.queue.retain(|(queued, _)| queued != id);
        if session.queue.len() < before {
            out.response(id, &PromptResponse::new(StopReason::Cancelled));
        } else if let Some(turn) = &mut session.turn {
            turn.cancelled = true;
            out.actions.push(Action::Interrupt {
                session_id: session_id.to_owned(),
            });
        }
    }

    /// Processes an entry of a session's log. `content` is the current content of a changed file, if the host read it.
    pub fn entry(
        &mut self,
        session_id: &str,
        entry: &RunLogEntry,
        content: Option<&str>,
        out: &mut Output,
    ) {
        let source = self.source.clone();
        let context = UpdateContext {
            content,
            own_source: Some(&source),
            ..self.context()
        };
        let Some(session) = self.sessions.get_mut(session_id) else {
            return;
        };
        let mut updates = Vec::new();
        session.view.apply(entry, context, &mut updates);
        for update in updates {
            out.update(session_id, update);
        }
        let entry = match entry {
            RunLogEntry::Run(entry) => {
                if let RunEvent::UserMessage { run_id, from, .. } = &entry.event
                    && from.as_deref() == Some(&*source)
                    && let Some(turn) = &mut session.turn
                {
                    turn.run_id = Some(run_id.clone());
                }
                if matches!(entry.event, RunEvent::Fallback { .. }) {
                    self.show_changed_commands(session_id, out);
                }
                return;
            }
            RunLogEntry::Agent(entry) => entry,
            _ => return,
        };
        match &entry.event {
            AgentEvent::SessionStarted(_) => self.show_changed_options(session_id, out),
            AgentEvent::Offers(_) => {
                self.show_changed_options(session_id, out);
                self.show_changed_commands(session_id, out);
            }
            AgentEvent::PermissionMode(change) => {
                session.setup.settings.mode = change.mode;
                settings::show_mode(session_id, change.mode, out);
                self.show_changed_options(session_id, out);
            }
            AgentEvent::Permission(permission) if permission.decision != Decision::Requested => {
                if let Some(request_id) = &permission.request_id {
                    self.settled(request_id, out);
                }
            }
            AgentEvent::Done(done) => {
                // A turn that the agent or another client started does not answer this prompt.
                let turn = session.turn.take_if(|turn| turn.run_id == entry.run_id);
                if let Some(turn) = turn {
                    self.turn_done(session_id, &turn, &done.result, out);
                } else if let Err(error) = stop_reason(&done.result, false) {
                    // It is the error of no prompt.
                    self.notice(session_id, "Turn failed", &error.message, out);
                }
            }
            _ => {}
        }
    }

    /// Takes the host's error for an [`Action::Prompt`] whose turn could not start.
    pub fn refused(&mut self, session_id: &str, error: &AgentError, out: &mut Output) {
        let Some(session) = self.sessions.get_mut(session_id) else {
            return;
        };
        if let Some(turn) = session.turn.take() {
            if turn.cancelled {
                out.response(&turn.id, &PromptResponse::new(StopReason::Cancelled));
            } else {
                out.error(&turn.id, &errors::from_agent(error));
            }
        }
        self.next_prompt(session_id, out);
    }

    /// Takes the end of the log of a run, which is one of this session. `error` answers the prompt of its turn that is in
    /// progress, if there is one: no other entry will.
    pub fn lost(&mut self, session_id: &str, run_id: &str, error: &AgentError, out: &mut Output) {
        let is_of_run = |turn: &mut Turn| {
            let turn = turn
                .run_id
                .as_deref()
                .and_then(|id| id.strip_prefix(run_id));
            turn.is_some_and(|rest| rest.starts_with('.'))
        };
        let session = self.sessions.get_mut(session_id);
        if let Some(turn) = session.and_then(|it| it.turn.take_if(is_of_run)) {
            if turn.cancelled {
                out.response(&turn.id, &PromptResponse::new(StopReason::Cancelled));
            } else {
                out.error(&turn.id, &errors::from_agent(error));
            }
            self.withdraw_all(session_id, out);
            self.next_prompt(session_id, out);
        }
    }

    fn turn_done(&mut self, session_id: &str, turn: &Turn, result: &RunResult, out: &mut Output) {
        match stop_reason(result, turn.cancelled) {
            Ok(reason) => {
                let response = PromptResponse::new(reason)
                    .usage(result.usage.map(usage))
                    .meta(updates::result_meta(result));
                out.response(&turn.id, &response);
            }
            Err(error) => {
                let mut error = errors::from_agent(&error);
                if let Some(data) = error.data.as_mut().and_then(|it| it.as_object_mut()) {
                    let known = updates::result_meta(result).remove("teamster");
                    data.extend(known.map(|known| ("teamsterResult".to_owned(), known)));
                }
                out.error(&turn.id, &error);
            }
        }
        self.withdraw_all(session_id, out);
        self.next_prompt(session_id, out);
    }

    /// Withdraws the requests of a turn, which need no answer any more.
    fn withdraw_all(&mut self, session_id: &str, out: &mut Output) {
        let pending = self
            .sent_requests
            .values()
            .filter(|sent| sent.session_id == session_id);
        let pending: Vec<_> = pending.map(|sent| sent.request_id.clone()).collect();
        for request_id in pending {
            self.settled(&request_id, out);
        }
    }

    fn next_prompt(&mut self, session_id: &str, out: &mut Output) {
        let session = self.sessions.get_mut(session_id);
        if let Some((id, prompt)) = session.and_then(|it| it.queue.pop_front()) {
            self.start_turn(session_id, id, prompt, out);
        }
    }
}

/// Returns the protocol's stop reason of a turn, or the turn's error.
fn stop_reason(result: &RunResult, cancelled: bool) -> Result<StopReason, AgentError> {
    if cancelled || result.aborted || result.status == RunStatus::Aborted {
        return Ok(StopReason::Cancelled);
    }
    let reason = result.stop_reason.as_deref().unwrap_or_default();
    let limit = match reason {
        "max_tokens" | "length" | "max_output_tokens" => Some(StopReason::MaxTokens),
        "refusal" | "content_filter" => Some(StopReason::Refusal),
        _ => None,
    };
    // A turn whose calls were denied has an answer all the same: the agent's words about it.
    let answered = result.status == RunStatus::Incomplete
        && result.errors.is_empty()
        && !result.text.trim().is_empty();
    match (result.failure().filter(|_| !answered), limit) {
        (None, limit) => Ok(limit.unwrap_or(StopReason::EndTurn)),
        (Some(error), _) if error.kind == ErrorKind::MaxTurns => Ok(StopReason::MaxTurnRequests),
        (Some(error), _) => Err(error),
    }
}

fn usage(usage: Usage) -> SchemaUsage {
    SchemaUsage::new(
        usage.total_tokens().unwrap_or_default(),
        usage.input_tokens.unwrap_or_default(),
        usage.output_tokens.unwrap_or_default(),
    )
    .thought_tokens(usage.reasoning_tokens)
    .cached_read_tokens(usage.cache_read_tokens)
    .cached_write_tokens(usage.cache_write_tokens)
}
