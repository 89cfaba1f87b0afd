//! The commands of a session's agent.

use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, SessionUpdate,
    UnstructuredCommandInput,
};
use serde_json::json;
use teamster_core::{Offers, SlashCommand};

use super::{AcpServer, builtin};
use crate::{Action, Output};

impl AcpServer {
    /// Asks the session's agent what it offers before its first prompt.
    pub(super) fn ask_offers(&mut self, session_id: &str, out: &mut Output) {
        let Some(session) = self.sessions.get_mut(session_id) else {
            return;
        };
        session.asks_offers = true;
        out.actions.push(Action::AskOffers {
            session_id: session_id.to_owned(),
            setup: session.setup.clone(),
        });
    }

    /// Takes the host's answer to [`Action::AskOffers`]: what a session of this agent would offer.
    pub fn offered(&mut self, session_id: &str, agent: &str, offers: &Offers, out: &mut Output) {
        let Some(session) = self.sessions.get_mut(session_id) else {
            return;
        };
        // After a prompt, the log has what the session does offer.
        if !session.asks_offers || session.setup.agent.as_deref() != Some(agent) {
            return;
        }
        session.asks_offers = false;
        session.view.offers.update(offers);
        self.show_changed_options(session_id, out);
        self.show_changed_commands(session_id, out);
    }

    /// Sends the commands of the session's agent and those of this server to the editor if they changed.
    pub(super) fn show_changed_commands(&mut self, session_id: &str, out: &mut Output) {
        let Some(session) = self.sessions.get(session_id) else {
            return;
        };
        let of_agent = self.agent_commands(session);
        let commands = of_agent.iter().cloned().chain(builtin::commands(of_agent));
        let commands: Vec<_> = commands.map(|it| command(&it)).collect();
        let shown = json!(commands);
        if session.known_commands.as_ref() != Some(&shown)
            && let Some(session) = self.sessions.get_mut(session_id)
        {
            session.known_commands = Some(shown);
            let update = AvailableCommandsUpdate::new(commands);
            out.update(session_id, SessionUpdate::AvailableCommandsUpdate(update));
        }
    }
}

fn command(command: &SlashCommand) -> AvailableCommand {
    let about = command.description.clone().unwrap_or_default();
    let hint = command
        .input_hint
        .clone()
        .map(|hint| AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint)));
    AvailableCommand::new(command.name.clone(), about).input(hint)
}
