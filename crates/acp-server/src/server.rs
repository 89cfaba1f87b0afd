//! The state machine: messages and log entries in, lines and actions out.

mod opening;
mod settings;
mod turns;

use std::collections::HashMap;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, AuthMethod, AuthMethodAgent, CancelNotification, CancelRequestNotification,
    ClientCapabilities, Error, ErrorCode, Implementation, InitializeRequest, InitializeResponse,
    McpCapabilities, PromptCapabilities, RequestId, SessionAdditionalDirectoriesCapabilities,
    SessionCapabilities, SessionCloseCapabilities, SessionDeleteCapabilities,
    SessionListCapabilities, SessionResumeCapabilities,
};
use serde_json::Value;
use teamster_core::PermissionRequest;

use crate::ask::{self, Way};
use crate::requests::{Message, failed, params};
use crate::session::Session;
use crate::{Action, Catalog, Output, Setup, Ticket, errors};

/// The agent's side of one connection.
#[derive(Debug)]
pub struct AcpServer {
    catalog: Catalog,
    new_id: fn() -> String,
    client: ClientCapabilities,
    /// The editor's name, as the source of its prompts in the log.
    source: String,
    sessions: HashMap<String, Session>,
    /// Requests from the editor that the host has not answered yet.
    open: HashMap<Ticket, Open>,
    tickets: u64,
    /// Requests to the editor.
    asked: HashMap<u64, Asked>,
    requests: u64,
}

/// A request from the editor that the host has not answered yet.
#[derive(Debug)]
struct Open {
    id: RequestId,
    what: What,
    cancelled: bool,
}

#[derive(Debug)]
enum What {
    New { setup: Setup },
    Load { session_id: String, setup: Setup },
    Resume { session_id: String, setup: Setup },
    List,
    Close,
    Delete,
}

/// A request to the editor.
#[derive(Debug)]
struct Asked {
    session_id: String,
    request_id: String,
    way: Way,
}

impl AcpServer {
    /// Creates a server for the agents of `catalog`. `new_id` generates the ids of new sessions.
    pub fn new(catalog: Catalog, new_id: fn() -> String) -> Self {
        Self {
            catalog,
            new_id,
            client: ClientCapabilities::default(),
            source: "editor".to_owned(),
            sessions: HashMap::new(),
            open: HashMap::new(),
            tickets: 0,
            asked: HashMap::new(),
            requests: 0,
        }
    }

    /// Returns the editor's name, which the log records as the source of its prompts.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Processes a line from the editor. Ignores blank lines.
    pub fn line(&mut self, line: &[u8], out: &mut Output) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let message = match Message::read(line) {
            Ok(message) => message,
            Err(error) => return out.error(&RequestId::Null, &error),
        };
        match (message.method, message.id) {
            (Some(method), Some(id)) => {
                if let Err(error) = self.request(&method, &id, message.params, out) {
                    out.error(&id, &error);
                }
            }
            (Some(method), None) => self.notification(&method, message.params, out),
            (None, Some(id)) => self.response(&id, message.result, out),
            // `Message::read` rejects this.
            (None, None) => {}
        }
    }

    fn request(
        &mut self,
        method: &str,
        id: &RequestId,
        given: Value,
        out: &mut Output,
    ) -> Result<(), Error> {
        match method {
            "initialize" => self.initialize(id, params(method, given)?, out),
            "authenticate" => authenticate(id, out),
            "session/new" => self.new_session(id, params(method, given)?, out)?,
            "session/load" => self.load(id, params(method, given)?, out)?,
            "session/resume" => self.resume(id, params(method, given)?, out)?,
            "session/list" => self.list(id, params(method, given)?, out),
            "session/close" => self.close(id, &params(method, given)?, out)?,
            "session/delete" => self.delete(id, &params(method, given)?, out),
            "session/prompt" => self.prompt(id, &params(method, given)?, out)?,
            "session/set_mode" => self.set_mode(id, &params(method, given)?, out)?,
            "session/set_config_option" => self.set_option(id, &params(method, given)?, out)?,
            _ => {
                let method = teamster_core::text::excerpt(method, 100);
                let problem = format!("unknown method {method}");
                return Err(failed(ErrorCode::MethodNotFound, problem));
            }
        }
        Ok(())
    }

    fn notification(&mut self, method: &str, given: Value, out: &mut Output) {
        // An unreadable notification has no response.
        match method {
            "session/cancel" => {
                if let Ok(cancel) = params::<CancelNotification>(method, given) {
                    self.cancel(&cancel.session_id.0, out);
                }
            }
            "$/cancel_request" => {
                if let Ok(cancel) = params::<CancelRequestNotification>(method, given) {
                    self.cancel_request(&cancel.request_id, out);
                }
            }
            _ => {}
        }
    }

    fn initialize(&mut self, id: &RequestId, request: InitializeRequest, out: &mut Output) {
        self.client = request.client_capabilities;
        if let Some(client) = request.client_info {
            self.source = teamster_core::text::excerpt(client.name.trim(), 40);
        }
        let session = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .delete(SessionDeleteCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new())
            .additional_directories(SessionAdditionalDirectoriesCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
            .mcp_capabilities(McpCapabilities::new().http(true).sse(true))
            .session_capabilities(session);
        let logins = self
            .catalog
            .agents
            .iter()
            .filter(|agent| !agent.login.is_empty());
        let logins = logins.map(|agent| {
            let method = AuthMethodAgent::new(agent.id.clone(), agent.name.clone());
            AuthMethod::Agent(method.description(agent.login.clone()))
        });
        let title = match &*self.catalog.agents {
            [agent] => format!("{} (teamster)", agent.name),
            _ => "teamster".to_owned(),
        };
        let about = Implementation::new("teamster", env!("CARGO_PKG_VERSION")).title(title);
        // This server supports version 1 only. A client that requires another version closes the connection.
        let response = InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .auth_methods(logins.collect::<Vec<_>>())
            .agent_info(about);
        out.response(id, &response);
    }

    /// Forwards an agent's request to the editor. Denies it if the session is unknown or the editor does not support
    /// such requests.
    pub fn ask(
        &mut self,
        session_id: &str,
        request_id: &str,
        request: &PermissionRequest,
        out: &mut Output,
    ) {
        self.requests += 1;
        let number = self.requests;
        let session = self.sessions.get(session_id);
        let known = request
            .tool_id
            .as_ref()
            .and_then(|id| session?.story.call(id));
        let elicitation = self.client.elicitation.as_ref();
        let way = session.and_then(|_| {
            ask::ask(
                number,
                session_id,
                request_id,
                request,
                known,
                elicitation,
                out,
            )
        });
        match way {
            Some(way) => {
                let (session_id, request_id) = (session_id.to_owned(), request_id.to_owned());
                self.asked.insert(
                    number,
                    Asked {
                        session_id,
                        request_id,
                        way,
                    },
                );
            }
            None => out.actions.push(Action::Answer {
                session_id: session_id.to_owned(),
                request_id: request_id.to_owned(),
                answer: teamster_core::PermissionAnswer::Deny(None),
            }),
        }
    }

    /// Withdraws a request from the editor, because another client answered it or the agent withdrew it.
    pub fn settled(&mut self, request_id: &str, out: &mut Output) {
        let of_it = |asked: &Asked| asked.request_id == request_id;
        let number = self
            .asked
            .iter()
            .find(|(_, asked)| of_it(asked))
            .map(|(number, _)| *number);
        if let Some(number) = number {
            self.asked.remove(&number);
            let params = CancelRequestNotification::new(RequestId::Number(
                i64::try_from(number).unwrap_or(i64::MAX),
            ));
            out.notify("$/cancel_request", &params);
        }
    }

    /// Processes the editor's response to a request.
    fn response(&mut self, id: &RequestId, result: Option<Value>, out: &mut Output) {
        let number = match id {
            RequestId::Number(number) => u64::try_from(*number).ok(),
            RequestId::Str(number) => number.parse().ok(),
            RequestId::Null => None,
        };
        // An unknown number is a late response to a withdrawn request.
        let asked = number.and_then(|number| self.asked.remove(&number));
        if let Some(asked) = asked {
            out.actions.push(Action::Answer {
                answer: ask::answer(asked.way, result),
                session_id: asked.session_id,
                request_id: asked.request_id,
            });
        }
    }

    fn ticket(&mut self, id: &RequestId, what: What) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let open = Open {
            id: id.clone(),
            what,
            cancelled: false,
        };
        self.open.insert(ticket, open);
        ticket
    }

    /// Removes and returns the request of a ticket, unless it was cancelled.
    fn settle(&mut self, ticket: Ticket) -> Option<Open> {
        self.open.remove(&ticket).filter(|open| !open.cancelled)
    }

    fn cancel_request(&mut self, id: &RequestId, out: &mut Output) {
        let of_it = |session: &Session| {
            session.turn.as_ref().is_some_and(|turn| turn.id == *id)
                || session.queue.iter().any(|(queued, _)| queued == id)
        };
        let session = self.sessions.iter().find(|(_, session)| of_it(session));
        if let Some(session_id) = session.map(|(session_id, _)| session_id.clone()) {
            return self.cancel_prompt(&session_id, id, out);
        }
        if let Some(open) = self
            .open
            .values_mut()
            .find(|open| open.id == *id && !open.cancelled)
        {
            open.cancelled = true;
            out.error(id, &errors::cancelled());
        }
    }

    fn session(&mut self, session_id: &str) -> Result<&mut Session, Error> {
        match self.sessions.get_mut(session_id) {
            Some(session) => Ok(session),
            None => Err(errors::unknown_session(session_id)),
        }
    }
}

/// Confirms authentication without doing anything: logins belong to the agents' CLIs, and each new session checks
/// them.
fn authenticate(id: &RequestId, out: &mut Output) {
    out.response(
        id,
        &agent_client_protocol_schema::v1::AuthenticateResponse::new(),
    );
}

#[cfg(test)]
mod tests;
