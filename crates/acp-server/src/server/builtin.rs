//! What this server does itself, with every agent: titles of sessions, and the commands `/status` and `/rename`.

use agent_client_protocol_schema::v1::{
    Error, PromptResponse, RequestId, SetSessionTitleRequest, SetSessionTitleResponse, StopReason,
};
use teamster_api::check_title;
use teamster_core::{AgentError, SlashCommand};

use super::{AcpServer, ClientRequest, Operation};
use crate::session::Session;
use crate::updates::status::code;
use crate::{Action, Output, Prompt, Ticket, errors};

const STATUS: &str = "status";
const RENAME: &str = "rename";

/// A prompt that this server answers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BuiltinCommand {
    Status,
    /// Gives the session this title.
    Rename(String),
}

/// Returns the commands of this server. The agent's own command of the same name replaces one.
pub(super) fn commands(of_agent: &[SlashCommand]) -> impl Iterator<Item = SlashCommand> {
    let status = SlashCommand::new(STATUS)
        .description("Show this thread's model, mode, folder, usage and MCP servers");
    let rename = SlashCommand::new(RENAME)
        .description("Give this thread another title")
        .input_hint("title");
    let is_ours = move |ours: &SlashCommand| of_agent.iter().all(|it| it.name != ours.name);
    [status, rename].into_iter().filter(is_ours)
}

/// Returns the command of a prompt that this server answers.
pub(super) fn command_of(prompt: &Prompt, of_agent: &[SlashCommand]) -> Option<BuiltinCommand> {
    let text = prompt.text.trim().strip_prefix('/')?;
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    if !prompt.images.is_empty() || of_agent.iter().any(|it| it.name == name) {
        return None;
    }
    match (name, rest.trim()) {
        (STATUS, "") => Some(BuiltinCommand::Status),
        (RENAME, title) => Some(BuiltinCommand::Rename(title.to_owned())),
        _ => None,
    }
}

impl AcpServer {
    /// Returns the agent's own commands, as far as they are known. An agent to which a prompt `/name` is text has none.
    pub(super) fn agent_commands<'a>(&self, session: &'a Session) -> &'a [SlashCommand] {
        let agent = session.setup.agent.as_deref();
        let agent = agent.and_then(|id| self.catalog.agent(id));
        match &session.view.offers.commands {
            Some(commands) if agent.is_some_and(|it| it.commands) => commands,
            _ => &[],
        }
    }

    /// Answers a command of this server. It is no turn: the agent gets no prompt.
    pub(super) fn answer_builtin(
        &mut self,
        session_id: &str,
        id: &RequestId,
        command: BuiltinCommand,
        out: &mut Output,
    ) {
        let Some(session) = self.sessions.get_mut(session_id) else {
            return;
        };
        match command {
            BuiltinCommand::Status => {
                let agent = session.setup.agent.as_deref();
                let agent = agent.and_then(|id| self.catalog.agent(id));
                let name = agent.map_or("No agent", |agent| &*agent.name);
                let text = session.view.status(session_id, &session.setup, name);
                out.update(session_id, session.view.message(&text));
                out.response(id, &PromptResponse::new(StopReason::EndTurn));
            }
            BuiltinCommand::Rename(title) => {
                if let Err(error) = self.retitle(id, session_id.to_owned(), &title, true, out) {
                    out.error(id, &error);
                }
            }
        }
    }

    pub(super) fn set_title(
        &mut self,
        id: &RequestId,
        request: &SetSessionTitleRequest,
        out: &mut Output,
    ) -> Result<(), Error> {
        let session_id = request.session_id.0.to_string();
        self.retitle(id, session_id, &request.title, false, out)
    }

    fn retitle(
        &mut self,
        id: &RequestId,
        session_id: String,
        title: &str,
        is_prompt: bool,
        out: &mut Output,
    ) -> Result<(), Error> {
        let title = check_title(title).map_err(|error| errors::from_agent(&error))?;
        let session = self.sessions.get(&session_id);
        if session.is_some_and(|session| !session.started) {
            let problem = "a thread has a title from its first prompt on";
            return Err(errors::invalid(problem));
        }
        let operation = Operation::SetTitle {
            session_id: session_id.clone(),
            title: title.clone(),
            is_prompt,
        };
        let ticket = self.ticket(id, operation);
        out.actions.push(Action::SetTitle {
            ticket,
            session_id,
            title,
        });
        Ok(())
    }

    /// Takes the host's answer to [`Action::SetTitle`].
    pub fn titled(&mut self, ticket: Ticket, result: Result<(), AgentError>, out: &mut Output) {
        let Some(ClientRequest {
            id,
            operation:
                Operation::SetTitle {
                    session_id,
                    title,
                    is_prompt,
                },
            ..
        }) = self.take_request(ticket)
        else {
            return;
        };
        if let Err(error) = result {
            return out.error(&id, &errors::from_agent(&error));
        }
        if let Some(session) = self.sessions.get_mut(&session_id) {
            out.update(&session_id, session.view.retitled(&title));
            if is_prompt {
                let text = format!("The title is now: {}", code(&title));
                out.update(&session_id, session.view.message(&text));
            }
        }
        if is_prompt {
            out.response(&id, &PromptResponse::new(StopReason::EndTurn));
        } else {
            out.response(&id, &SetSessionTitleResponse::new(title));
        }
    }
}
