//! Output of the CLI in a session.

use serde_json::json;
use teamster_core::provider::json_line::{self, parse, type_of};
use teamster_core::provider::{Decoder, Events};
use teamster_core::text::excerpt;
use teamster_core::{AgentError, ContextUse, ErrorCode, ErrorKind, Id, NoticeLevel, NoticeSource};

use super::offers::offered;
use super::wire::{Data, Queue, Response};
use super::{PiSession, Purpose};
use crate::decoder::errors;

/// Longest part of an extension's question in a notice, in bytes.
const NOTICE_BYTES: usize = 300;

impl PiSession {
    pub(super) fn read(&mut self, line: &[u8], out: &mut Events) {
        let own = json_line::read(line, |text| {
            Some(match type_of(text)?.as_ref() {
                "response" => {
                    self.response(parse(text)?, out);
                    true
                }
                "extension_ui_request" => self.dialog(&parse(text)?, out),
                "queue_update" => {
                    let queue: Queue = parse(text)?;
                    self.steering = !queue.steering.is_empty();
                    true
                }
                _ => false,
            })
        });
        if own != Some(true) {
            self.decode(line, out);
        }
    }

    fn decode(&mut self, line: &[u8], out: &mut Events) {
        self.decoder.line(line, out);
        if let (Some(tokens), Some(window)) = (self.decoder.context.take(), self.context_window)
            && self.has_offers
        {
            out.push(ContextUse::new(tokens, window));
        }
        if self.decoder.ending.ended.is_some() && self.in_turn {
            self.settled(out);
        } else if self.interrupt && self.abort_answered && self.decoder.ending.begun && self.in_turn
        {
            // The CLI got the abort before the turn had begun.
            self.abort();
        } else if self.decoder.ending.has_answer() {
            // The CLI saves a session with its first answer.
            self.is_written_down();
        }
    }

    fn is_written_down(&mut self) {
        if self.resumable != self.decoder.session {
            self.resumable.clone_from(&self.decoder.session);
        }
    }

    /// Handles the end of the turn that the decoder reported.
    fn settled(&mut self, out: &mut Events) {
        self.in_turn = false;
        self.close_dialogs();
        self.interrupted = self.interrupt && self.decoder.ending.is_aborted();
        self.is_written_down();
        if self.steering {
            self.steering = false;
            self.ask(Purpose::Unimportant, json!({"type": "clear_queue"}));
            out.notice(
                NoticeLevel::Warning,
                NoticeSource::Runtime,
                "the turn ended before the agent took the message",
            );
        }
    }

    /// Ends a turn about which the CLI will print nothing more.
    pub(super) fn over(&mut self, failed: bool, out: &mut Events) {
        self.in_turn = false;
        self.decoder.turn_end(failed, out);
    }

    fn response(&mut self, response: Response, out: &mut Events) {
        let Some(purpose) = self.pending.remove(&response.id) else {
            if !response.success {
                let error = excerpt(&response.error, NOTICE_BYTES);
                let message = format!("Pi refused {}: {error}", response.command);
                out.notice(NoticeLevel::Warning, NoticeSource::Stdout, message);
            }
            return;
        };
        if matches!(purpose, Purpose::Offers) {
            let offers = offered(response);
            if !offers.is_empty() {
                out.push(offers);
            }
            return;
        }
        if !response.success {
            return self.refused(&purpose, &response, out);
        }
        let data = response.data;
        match purpose {
            Purpose::State => {
                self.state(data);
                if self.in_turn {
                    self.decoder.tell_session(out);
                }
            }
            Purpose::Prompt if self.slash_commands || data.disposition == "handled" => {
                self.ask(Purpose::IsAtWork, json!({"type": "get_state"}));
            }
            Purpose::IsAtWork => {
                let begun = self.decoder.ending.begun || data.is_streaming;
                if self.in_turn && !begun {
                    self.over(false, out);
                }
            }
            Purpose::Abort => self.abort_answered = true,
            Purpose::Steer(order) => self.outbox.answer(order, Ok(())),
            Purpose::Clear(order) if data.cancelled => {
                let error = refused("new_session", "an extension rejected it");
                self.outbox.answer(order, Err(error));
            }
            Purpose::Clear(order) => {
                self.ask(Purpose::Cleared(order), json!({"type": "get_state"}));
            }
            Purpose::Cleared(order) => {
                self.state(data);
                self.resumable = None;
                self.outbox.answer(order, Ok(()));
            }
            Purpose::SetModel(order) => {
                self.decoder.model = data.id;
                self.model_provider = data.provider;
                self.context_window = data.context_window;
                self.outbox.answer(order, Ok(()));
                self.ask_levels();
            }
            Purpose::Offers | Purpose::Prompt | Purpose::Unimportant => {}
        }
    }

    fn refused(&mut self, purpose: &Purpose, response: &Response, out: &mut Events) {
        let error = refused(&response.command, &response.error);
        if let Some(order) = purpose.command() {
            self.outbox.answer(order, Err(error));
        } else if matches!(purpose, Purpose::Prompt) && self.in_turn {
            out.error(error);
            self.over(true, out);
        } else {
            out.notice(NoticeLevel::Warning, NoticeSource::Stdout, error.message);
        }
    }

    fn state(&mut self, data: Data) {
        self.decoder.session = data.session_id.as_deref().map(Id::from);
        if let Some(model) = data.model {
            self.decoder.model = Some(model.id);
            self.model_provider = Some(model.provider);
            self.context_window = model.context_window;
        }
    }
}

/// Returns the error for a request that the CLI refused.
fn refused(what: &str, error: &str) -> AgentError {
    let kind = errors::kind_of(error).unwrap_or(ErrorKind::Invalid);
    AgentError::new(
        ErrorCode::CliError,
        kind,
        format!("Pi refused {what}: {error}"),
    )
}
