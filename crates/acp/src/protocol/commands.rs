//! Commands to the agent.

use teamster_core::provider::{CommandId, Events, SessionCommand};
use teamster_core::{AgentError, PermissionMode};

use super::start::{Opening, Stage};
use super::{AcpProtocol, Ask, CANCELLED, End};
use crate::settings::ModeSwitch;
use crate::write;

impl AcpProtocol {
    pub(super) fn run_command(&mut self, command: SessionCommand, out: &mut Events) {
        match command {
            SessionCommand::Turn(turn) => {
                self.interrupted = false;
                if self.end.take().is_some() {
                    // Left by a turn of the agent's own that had no events.
                    self.forget_turn();
                }
                self.waiting = Some(turn);
                self.advance(out);
            }
            SessionCommand::Interrupt => self.interrupt(out),
            SessionCommand::Answer(number, answer) => self.answer_permission(number, &answer, out),
            SessionCommand::Steer(id, _) => {
                let error = AgentError::invalid_params(format!(
                    "{} does not take messages during a turn",
                    self.dialect.name()
                ));
                self.outbox.answer(id, Err(error));
            }
            SessionCommand::Clear(_)
            | SessionCommand::SetModel(..)
            | SessionCommand::SetPermission(..)
                if self.stage != Stage::Ready =>
            {
                self.late.push(command);
                self.advance(out);
            }
            SessionCommand::Clear(id) => {
                let number = self.ask(Ask::Clear(id));
                self.open_session(Opening::New, number);
            }
            SessionCommand::SetModel(id, model) => {
                if let Some(session) = self.session.clone() {
                    self.choose_model(&session, Ask::Model(id, model.clone()), &model);
                }
            }
            SessionCommand::SetPermission(id, mode) => {
                if let Err(error) = self.set_permission(id, mode) {
                    self.outbox.answer(id, Err(error));
                }
            }
            // Closing needs no message: the agent sees the end of its input. Unknown commands are ignored.
            _ => {}
        }
    }

    fn set_permission(&mut self, id: CommandId, mode: PermissionMode) -> Result<(), AgentError> {
        let mut switch = self.dialect.mode(mode)?;
        let Some(session) = self.session.clone() else {
            return Ok(());
        };
        let approve = match &switch {
            ModeSwitch::Answers(approve) | ModeSwitch::ModeAndAnswers(_, approve) => Some(*approve),
            _ => None,
        };
        if let ModeSwitch::Answers(approve) = switch
            && let Some(asking) = self.asking_mode(&self.offers.modes, approve)?
        {
            switch = asking;
        }
        let ask = Ask::Mode(id, switch.clone(), approve);
        if !self.switch_mode(&session, ask, &switch) {
            self.outbox.answer(id, Ok(()));
        }
        Ok(())
    }

    pub(super) fn interrupt(&mut self, out: &mut Events) {
        if self.is_active() && self.is_late() {
            self.interrupt_late(out);
        } else if self.prompt_id.is_some() {
            if self.cancelling {
                return;
            }
            self.cancelling = true;
            // The agent waits for these responses before it ends the turn.
            for pending in std::mem::take(&mut self.permissions) {
                pending.cancel(&mut self.outbox);
            }
            if let Some(session) = &self.session {
                write::cancel(&mut self.outbox, session);
            }
        } else if self.waiting.is_some() {
            self.interrupted = true;
            let end = End {
                stop_reason: Some(CANCELLED.to_owned()),
                ..End::default()
            };
            self.end_turn(end, out);
        }
    }
}
