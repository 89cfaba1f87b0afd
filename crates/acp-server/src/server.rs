//! The state machine: messages and log entries in, lines and actions out.

mod builtin;
mod lifecycle;
mod offers;
mod settings;
mod turns;

use std::collections::HashMap;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentAuthCapabilities, AgentCapabilities, AuthMethod, AuthMethodAgent, CancelNotification,
    CancelRequestNotification, ClientCapabilities, Error, ErrorCode, Implementation,
    InitializeRequest, InitializeResponse, LogoutCapabilities, McpCapabilities, PromptCapabilities,
    RequestId, SessionAdditionalDirectoriesCapabilities, SessionCapabilities,
    SessionCloseCapabilities, SessionDeleteCapabilities, SessionListCapabilities,
    SessionResumeCapabilities, SessionTitleCapabilities,
};
use serde_json::Value;
use teamster_core::PermissionRequest;

use crate::ask::{self, RequestKind};
use crate::requests::{Message, failed, params};
use crate::session::Session;
use crate::updates::UpdateContext;
use crate::{Action, AgentEntry, Catalog, Output, Setup, Ticket, errors};

/// Title of a notice about input of the editor that the agent does not take.
pub(crate) const NOT_TAKEN: &str = "Not taken by the agent";

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
    client_requests: HashMap<Ticket, ClientRequest>,
    last_ticket: u64,
    /// Requests to the editor.
    sent_requests: HashMap<u64, SentRequest>,
    last_request: u64,
}

/// A request from the editor that the host has not answered yet.
#[derive(Debug)]
struct ClientRequest {
    id: RequestId,
    operation: Operation,
    cancelled: bool,
}

#[derive(Debug)]
enum Operation {
    New {
        setup: Setup,
        left_out: Vec<String>,
    },
    Open {
        session_id: String,
        setup: Setup,
        left_out: Vec<String>,
        /// The editor gets the earlier messages.
        replays: bool,
    },
    List,
    LogOut,
    Close,
    Delete,
    SetTitle {
        session_id: String,
        title: String,
        /// The request is the prompt `/rename`.
        is_prompt: bool,
    },
}

/// A request to the editor.
#[derive(Debug)]
struct SentRequest {
    session_id: String,
    request_id: String,
    kind: RequestKind,
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
            client_requests: HashMap::new(),
            last_ticket: 0,
            sent_requests: HashMap::new(),
            last_request: 0,
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
        raw: Value,
        out: &mut Output,
    ) -> Result<(), Error> {
        match method {
            "initialize" => self.initialize(id, params(method, raw)?, out),
            "authenticate" => authenticate(id, out),
            "logout" => self.log_out(id, out)?,
            "session/new" => self.new_session(id, raw, out)?,
            "session/load" | "session/resume" => self.open(id, method, raw, out)?,
            "session/list" => self.list(id, params(method, raw)?, out),
            "session/close" => self.close(id, &params(method, raw)?, out)?,
            "session/delete" => self.delete(id, &params(method, raw)?, out),
            "session/set_title" => self.set_title(id, &params(method, raw)?, out)?,
            "session/prompt" => self.prompt(id, &params(method, raw)?, out)?,
            "session/set_mode" => self.set_mode(id, &params(method, raw)?, out)?,
            "session/set_config_option" => self.set_option(id, &params(method, raw)?, out)?,
            _ => {
                let method = teamster_core::text::excerpt(method, 100);
                let problem = format!("unknown method {method}");
                return Err(failed(ErrorCode::MethodNotFound, problem));
            }
        }
        Ok(())
    }

    fn notification(&mut self, method: &str, raw: Value, out: &mut Output) {
        // An unreadable notification has no response.
        match method {
            "session/cancel" => {
                if let Ok(cancel) = params::<CancelNotification>(method, raw) {
                    self.cancel(&cancel.session_id.0, out);
                }
            }
            "$/cancel_request" => {
                if let Ok(cancel) = params::<CancelRequestNotification>(method, raw) {
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
        // Where an editor can choose the agent, what one of them takes is announced.
        let takes = |it: fn(&AgentEntry) -> bool| self.catalog.agents.iter().any(it);
        let has = |transport: &str| {
            let mut agents = self.catalog.agents.iter();
            agents.any(|agent| agent.transports.iter().any(|it| it == transport))
        };
        let mut session = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .delete(SessionDeleteCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new())
            .title(SessionTitleCapabilities::new());
        if takes(|agent| agent.add_dirs) {
            let folders = SessionAdditionalDirectoriesCapabilities::new();
            session = session.additional_directories(folders);
        }
        let prompt = PromptCapabilities::new()
            .image(takes(|agent| agent.images))
            .embedded_context(true);
        let mut auth = AgentAuthCapabilities::new();
        if self.agent_to_log_out().is_some() {
            auth = auth.logout(LogoutCapabilities::new());
        }
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .auth(auth)
            .prompt_capabilities(prompt)
            .mcp_capabilities(McpCapabilities::new().http(has("http")).sse(has("sse")))
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
        self.last_request += 1;
        let number = self.last_request;
        let elicitation = self.client.elicitation.as_ref();
        let kind = self.sessions.get_mut(session_id).and_then(|session| {
            let id = request.tool_id.as_ref();
            let known = id.and_then(|id| session.view.call(id));
            let known = known.map(|call| {
                call.requested(request);
                &*call
            });
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
        match kind {
            Some(kind) => {
                let (session_id, request_id) = (session_id.to_owned(), request_id.to_owned());
                self.sent_requests.insert(
                    number,
                    SentRequest {
                        session_id,
                        request_id,
                        kind,
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

    /// Shows a notice of the host in a session: as a notice, or as a thought if the editor does not support notices.
    pub fn notice(&mut self, session_id: &str, title: &str, text: &str, out: &mut Output) {
        let context = self.context();
        let Some(session) = self.sessions.get_mut(session_id) else {
            return;
        };
        let mut updates = Vec::new();
        session.view.notice(context, title, text, &mut updates);
        for update in updates {
            out.update(session_id, update);
        }
    }

    /// Returns the context of updates for this editor.
    fn context(&self) -> UpdateContext<'static> {
        let client = self.client.session.as_ref();
        UpdateContext {
            notices: client.is_some_and(|it| it.notices.is_some()),
            compactions: client.is_some_and(|it| it.compaction.is_some()),
            ..UpdateContext::default()
        }
    }

    /// Shows what was left out of the editor's input.
    fn show_left_out(&mut self, session_id: &str, left_out: &[String], out: &mut Output) {
        for text in left_out {
            self.notice(session_id, NOT_TAKEN, text, out);
        }
    }

    /// Withdraws a request from the editor, because another client answered it or the agent withdrew it.
    pub fn settled(&mut self, request_id: &str, out: &mut Output) {
        let matches = |sent: &SentRequest| sent.request_id == request_id;
        let number = self
            .sent_requests
            .iter()
            .find(|(_, sent)| matches(sent))
            .map(|(number, _)| *number);
        if let Some(number) = number {
            self.sent_requests.remove(&number);
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
        let request = number.and_then(|number| self.sent_requests.remove(&number));
        if let Some(request) = request {
            out.actions.push(Action::Answer {
                answer: ask::answer(request.kind, result),
                session_id: request.session_id,
                request_id: request.request_id,
            });
        }
    }

    fn ticket(&mut self, id: &RequestId, operation: Operation) -> Ticket {
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        let request = ClientRequest {
            id: id.clone(),
            operation,
            cancelled: false,
        };
        self.client_requests.insert(ticket, request);
        ticket
    }

    /// Removes and returns the request of a ticket, unless it was cancelled.
    fn take_request(&mut self, ticket: Ticket) -> Option<ClientRequest> {
        self.client_requests
            .remove(&ticket)
            .filter(|request| !request.cancelled)
    }

    fn cancel_request(&mut self, id: &RequestId, out: &mut Output) {
        let matches = |session: &Session| {
            session.turn.as_ref().is_some_and(|turn| turn.id == *id)
                || session.queue.iter().any(|(queued, _)| queued == id)
        };
        let session = self.sessions.iter().find(|(_, session)| matches(session));
        if let Some(session_id) = session.map(|(session_id, _)| session_id.clone()) {
            return self.cancel_prompt(&session_id, id, out);
        }
        if let Some(request) = self
            .client_requests
            .values_mut()
            .find(|request| request.id == *id && !request.cancelled)
        {
            request.cancelled = true;
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
