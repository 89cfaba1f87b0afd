//! Commands to the CLI.

use serde_json::{Value, json};
use teamster_core::provider::{CommandId, Events, SessionCommand};
use teamster_core::{AgentError, Turn};

use super::{PiSession, Purpose};
use crate::launch::{base64, not_a_command};

impl PiSession {
    pub(super) fn run_command(&mut self, command: SessionCommand, out: &mut Events) {
        match command {
            SessionCommand::Turn(turn) => self.begin(&turn, out),
            SessionCommand::Interrupt => {
                self.close_dialogs();
                self.stop();
            }
            SessionCommand::Answer(number, answer) => self.answer_dialog(number, &answer),
            SessionCommand::Steer(id, text) => self.steer(id, &text),
            SessionCommand::Clear(id) => {
                self.ask(Purpose::Clear(id), json!({"type": "new_session"}));
            }
            SessionCommand::SetModel(id, model) => self.set_model(id, &model),
            // The CLI exits at the end of its stdin.
            _ => {}
        }
    }

    /// Writes a command.
    pub(super) fn ask(&mut self, purpose: Purpose, mut command: Value) {
        self.commands += 1;
        let id = format!("t{}", self.commands);
        command["id"] = id.as_str().into();
        self.outbox.write(&command);
        self.pending.insert(id, purpose);
    }

    pub(super) fn ask_state(&mut self) {
        self.ask(Purpose::State, json!({"type": "get_state"}));
    }

    fn begin(&mut self, turn: &Turn, out: &mut Events) {
        self.decoder.next_turn();
        self.in_turn = true;
        self.interrupt = false;
        self.abort_answered = false;
        self.interrupted = false;
        self.decoder.tell_session(out);
        match self.prompt(turn) {
            Ok(command) => self.ask(Purpose::Prompt, command),
            Err(error) => {
                out.error(error);
                self.over(true, out);
            }
        }
    }

    fn prompt(&self, turn: &Turn) -> Result<Value, AgentError> {
        if turn.prompt.trim().is_empty() && turn.images.is_empty() {
            return Err(AgentError::refused("prompt", "it is empty"));
        }
        let mut images = Vec::with_capacity(turn.images.len());
        for image in &turn.images {
            let data = base64(image)?;
            images.push(json!({"type": "image", "data": data, "mimeType": image.media_type}));
        }
        let message = not_a_command(&turn.prompt, self.slash_commands);
        let mut command = json!({"type": "prompt", "message": message});
        if !images.is_empty() {
            command["images"] = images.into();
        }
        Ok(command)
    }

    fn stop(&mut self) {
        if !self.in_turn || self.interrupt {
            return;
        }
        self.interrupt = true;
        // A message that was not taken yet would get its own turn.
        self.ask(Purpose::Unimportant, json!({"type": "clear_queue"}));
        self.abort();
    }

    pub(super) fn abort(&mut self) {
        self.abort_answered = false;
        self.ask(Purpose::Abort, json!({"type": "abort"}));
    }

    fn steer(&mut self, id: CommandId, text: &str) {
        let why_not = if !self.in_turn {
            "no turn is in progress"
        } else if self.interrupt {
            "the turn is being interrupted"
        } else if text.trim().is_empty() {
            "it is empty"
        } else {
            let message = not_a_command(text, false);
            let command = json!({"type": "steer", "message": message});
            return self.ask(Purpose::Steer(id), command);
        };
        let error = AgentError::refused("steer", why_not);
        self.outbox.answer(id, Err(error));
    }

    /// Sets the model. The CLI requires its provider: it is the part before a `/`, or stays unchanged.
    fn set_model(&mut self, id: CommandId, model: &str) {
        let (provider, name) = match (model.split_once('/'), &self.model_provider) {
            (Some((provider, name)), _) => (provider.to_owned(), name),
            (None, Some(provider)) => (provider.clone(), model),
            (None, None) => {
                let error = AgentError::refused(
                    "model",
                    "Pi names a model with its provider, as in anthropic/claude-sonnet-4-5",
                );
                return self.outbox.answer(id, Err(error));
            }
        };
        let command = json!({"type": "set_model", "provider": provider, "modelId": name});
        self.ask(Purpose::SetModel(id), command);
    }
}
