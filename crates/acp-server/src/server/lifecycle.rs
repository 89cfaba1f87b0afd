//! The life cycle of sessions: new, load, resume, list, close, delete.

use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{
    CloseSessionRequest, CloseSessionResponse, DeleteSessionRequest, DeleteSessionResponse, Error,
    ErrorCode, ListSessionsRequest, ListSessionsResponse, LoadSessionRequest, LoadSessionResponse,
    LogoutResponse, NewSessionRequest, NewSessionResponse, RequestId, ResumeSessionRequest,
    ResumeSessionResponse, SessionInfo,
};
use serde_json::{Value, json};
use teamster_api::title_of;
use teamster_core::{AgentError, McpServer, Offers};

use super::{AcpServer, ClientRequest, Operation};
use crate::session::Session;
use crate::updates::{UpdateContext, meta};
use crate::{Action, Found, Output, SessionPage, Setup, Ticket, errors, requests};

impl AcpServer {
    pub(super) fn new_session(
        &mut self,
        id: &RequestId,
        mut raw: Value,
        out: &mut Output,
    ) -> Result<(), Error> {
        let mut left_out = Vec::new();
        let servers = requests::take_servers(&mut raw, &mut left_out);
        let request: NewSessionRequest = requests::params("session/new", raw)?;
        let mut setup = setup(request.cwd, request.additional_directories, servers)?;
        if let Some(agent) = self.catalog.agents.first() {
            setup.agent = Some(agent.id.clone());
            setup.settings = agent.settings.clone();
        }
        let operation = Operation::New {
            setup: setup.clone(),
            left_out,
        };
        let ticket = self.ticket(id, operation);
        out.actions.push(Action::Prepare { ticket, setup });
        Ok(())
    }

    /// Opens an earlier session: with its messages (`session/load`), or without them (`session/resume`).
    pub(super) fn open(
        &mut self,
        id: &RequestId,
        method: &str,
        mut raw: Value,
        out: &mut Output,
    ) -> Result<(), Error> {
        let mut left_out = Vec::new();
        let servers = requests::take_servers(&mut raw, &mut left_out);
        let replays = method == "session/load";
        let (session_id, cwd, directories) = if replays {
            let it: LoadSessionRequest = requests::params(method, raw)?;
            (it.session_id, it.cwd, it.additional_directories)
        } else {
            let it: ResumeSessionRequest = requests::params(method, raw)?;
            (it.session_id, it.cwd, it.additional_directories)
        };
        let setup = setup(cwd, directories, servers)?;
        let session_id = session_id.0.to_string();
        let session = self.sessions.get(&session_id);
        if session.is_some_and(|it| it.turn.is_some()) {
            return Err(errors::invalid(
                "a turn of this session is in progress: wait for its end, or cancel it",
            ));
        }
        let operation = Operation::Open {
            session_id: session_id.clone(),
            setup,
            left_out,
            replays,
        };
        let ticket = self.ticket(id, operation);
        out.actions.push(Action::Find { ticket, session_id });
        Ok(())
    }

    pub(super) fn list(&mut self, id: &RequestId, request: ListSessionsRequest, out: &mut Output) {
        let ticket = self.ticket(id, Operation::List);
        out.actions.push(Action::List {
            ticket,
            cwd: request.cwd,
            cursor: request.cursor,
        });
    }

    /// Returns the agent whose login can be removed: the only one, if the host can do that.
    pub(super) fn agent_to_log_out(&self) -> Option<&str> {
        match &*self.catalog.agents {
            [agent] if agent.logs_out => Some(&agent.id),
            _ => None,
        }
    }

    pub(super) fn log_out(&mut self, id: &RequestId, out: &mut Output) -> Result<(), Error> {
        let Some(agent) = self.agent_to_log_out().map(str::to_owned) else {
            let problem = "the agent has no command that logs out: use its CLI";
            return Err(requests::failed(ErrorCode::MethodNotFound, problem));
        };
        let ticket = self.ticket(id, Operation::LogOut);
        out.actions.push(Action::LogOut { ticket, agent });
        Ok(())
    }

    /// Takes the host's answer to [`Action::LogOut`].
    pub fn logged_out(&mut self, ticket: Ticket, result: Result<(), AgentError>, out: &mut Output) {
        let Some(request) = self.take_request(ticket) else {
            return;
        };
        match result {
            Ok(()) => out.response(&request.id, &LogoutResponse::new()),
            Err(error) => out.error(&request.id, &errors::from_agent(&error)),
        }
    }

    pub(super) fn close(
        &mut self,
        id: &RequestId,
        request: &CloseSessionRequest,
        out: &mut Output,
    ) -> Result<(), Error> {
        let session_id = request.session_id.0.to_string();
        self.session(&session_id)?;
        self.cancel(&session_id, out);
        let ticket = self.ticket(id, Operation::Close);
        out.actions.push(Action::Close { ticket, session_id });
        Ok(())
    }

    pub(super) fn delete(
        &mut self,
        id: &RequestId,
        request: &DeleteSessionRequest,
        out: &mut Output,
    ) {
        let session_id = request.session_id.0.to_string();
        self.cancel(&session_id, out);
        let ticket = self.ticket(id, Operation::Delete);
        out.actions.push(Action::Delete { ticket, session_id });
    }

    /// Takes the host's answer to [`Action::Prepare`], and creates the session if it succeeded. The result is what an
    /// earlier session of the agent offered, empty if that is not known.
    pub fn prepared(
        &mut self,
        ticket: Ticket,
        result: Result<Offers, AgentError>,
        out: &mut Output,
    ) {
        let Some(ClientRequest {
            id,
            operation: Operation::New { setup, left_out },
            ..
        }) = self.take_request(ticket)
        else {
            return;
        };
        let offers = match result {
            Ok(offers) => offers,
            Err(error) => return out.error(&id, &errors::from_agent(&error)),
        };
        let session_id = (self.new_id)();
        let mut session = Session::new(setup);
        session.view.offers = offers;
        let (options, modes) = self.remember_options(&mut session);
        let response = NewSessionResponse::new(session_id.clone())
            .modes(modes)
            .config_options(options);
        self.sessions.insert(session_id.clone(), session);
        out.response(&id, &response);
        self.show_left_out(&session_id, &left_out, out);
        self.show_changed_commands(&session_id, out);
        self.ask_offers(&session_id, out);
    }

    /// Takes the host's answer to [`Action::Find`].
    pub fn found(&mut self, ticket: Ticket, result: Result<Found, AgentError>, out: &mut Output) {
        let Some(request) = self.take_request(ticket) else {
            return;
        };
        let Operation::Open {
            session_id,
            mut setup,
            left_out,
            replays,
        } = request.operation
        else {
            return;
        };
        let found = match result {
            Ok(found) => found,
            Err(error) => return out.error(&request.id, &errors::from_agent(&error)),
        };
        setup.resumed = true;
        if let Some(agent) = self.catalog.agent(&found.agent) {
            setup.settings = agent.settings.clone();
        }
        setup.agent = Some(found.agent);
        setup.settings.model = found.model.or(setup.settings.model);
        let mut session = Session::new(setup);
        session.view.given_title = found.title;
        session.view.hide_retracted(&found.entries);
        let context = UpdateContext {
            is_replay: true,
            ..self.context()
        };
        // A session that is resumed without its log has the usage and the title of it too.
        let mut updates = Vec::new();
        for entry in &found.entries {
            session.view.apply(entry, context, &mut updates);
        }
        if replays {
            for update in updates {
                out.update(&session_id, update);
            }
        }
        let (options, modes) = self.remember_options(&mut session);
        if replays {
            let response = LoadSessionResponse::new()
                .modes(modes)
                .config_options(options);
            out.response(&request.id, &response);
        } else {
            let response = ResumeSessionResponse::new()
                .modes(modes)
                .config_options(options);
            out.response(&request.id, &response);
        }
        // A session of the CLI's own has none in its file.
        let is_unknown = session.view.offers.is_empty();
        self.sessions.insert(session_id.clone(), session);
        self.show_left_out(&session_id, &left_out, out);
        self.show_changed_commands(&session_id, out);
        if is_unknown {
            self.ask_offers(&session_id, out);
        }
    }

    /// Takes the host's answer to [`Action::List`].
    pub fn listed(
        &mut self,
        ticket: Ticket,
        result: Result<SessionPage, AgentError>,
        out: &mut Output,
    ) {
        let Some(request) = self.take_request(ticket) else {
            return;
        };
        let page = match result {
            Ok(page) => page,
            Err(error) => return out.error(&request.id, &errors::from_agent(&error)),
        };
        let sessions = page.sessions.into_iter().map(|it| {
            SessionInfo::new(it.session_id, it.cwd)
                .title(it.title.or_else(|| title_of(it.first_prompt.as_deref()?)))
                .updated_at(it.updated_at)
                .meta(meta(json!({"agent": it.agent})))
        });
        let response = ListSessionsResponse::new(sessions.collect()).next_cursor(page.next);
        out.response(&request.id, &response);
    }

    /// Takes the host's answer to [`Action::Close`] or [`Action::Delete`].
    pub fn done(
        &mut self,
        ticket: Ticket,
        session_id: &str,
        result: Result<(), AgentError>,
        out: &mut Output,
    ) {
        let Some(request) = self.take_request(ticket) else {
            return;
        };
        if let Err(error) = result {
            return out.error(&request.id, &errors::from_agent(&error));
        }
        self.sessions.remove(session_id);
        match request.operation {
            Operation::Delete => out.response(&request.id, &DeleteSessionResponse::new()),
            _ => out.response(&request.id, &CloseSessionResponse::new()),
        }
    }
}

fn setup(
    cwd: PathBuf,
    add_dirs: Vec<PathBuf>,
    mcp_servers: Vec<McpServer>,
) -> Result<Setup, Error> {
    let relative = |path: &&PathBuf| !path.is_absolute();
    if let Some(path) = std::iter::once(&cwd).chain(&add_dirs).find(relative) {
        return Err(errors::invalid(format!(
            "the folder {} must be an absolute path",
            shown(path)
        )));
    }
    Ok(Setup {
        cwd,
        add_dirs,
        mcp_servers,
        ..Setup::default()
    })
}

fn shown(path: &Path) -> String {
    teamster_core::text::excerpt(&path.display().to_string(), 200)
}
