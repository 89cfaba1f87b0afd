//! The state machine: an editor's messages in, the log's entries in, lines and actions out.

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
///
/// Ids of new sessions are the host's: `new_id` makes one.
#[derive(Debug)]
pub struct AcpServer {
    catalog: Catalog,
    new_id: fn() -> String,
    client: ClientCapabilities,
    /// Who speaks, for the log.
    source: String,
    sessions: HashMap<String, Session>,
    /// Requests of the editor that the host works on.
    open: HashMap<Ticket, Open>,
    tickets: u64,
    /// Requests to the editor.
    asked: HashMap<u64, Asked>,
    requests: u64,
}

/// A request of the editor that the host works on.
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
    /// A server of these agents.
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

    /// The name under which the editor's prompts are in the log.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Takes a line of the editor. A blank one is nothing.
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
            // `Message::read` has refused it.
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
                let problem = format!("there is no method {method}");
                return Err(failed(ErrorCode::MethodNotFound, problem));
            }
        }
        Ok(())
    }

    fn notification(&mut self, method: &str, given: Value, out: &mut Output) {
        // A notification that cannot be read has no answer.
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
        // Version 1 is the only one that is spoken here: a client that needs another one ends the connection.
        let response = InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .auth_methods(logins.collect::<Vec<_>>())
            .agent_info(about);
        out.response(id, &response);
    }

    /// Takes a request of the agent of a session, which the editor is asked. Where it cannot be, it is denied.
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

    /// A request needs no answer any more: it was answered elsewhere, or the agent has withdrawn it.
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

    /// The editor answers a request.
    fn response(&mut self, id: &RequestId, result: Option<Value>, out: &mut Output) {
        let number = match id {
            RequestId::Number(number) => u64::try_from(*number).ok(),
            RequestId::Str(number) => number.parse().ok(),
            RequestId::Null => None,
        };
        // An answer to nothing has come too late.
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

    /// The request of this ticket, unless it was cancelled.
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

/// There is nothing to do: the agents have their logins from their own CLIs, and each session looks at them again.
fn authenticate(id: &RequestId, out: &mut Output) {
    out.response(
        id,
        &agent_client_protocol_schema::v1::AuthenticateResponse::new(),
    );
}

#[cfg(test)]
mod tests;
