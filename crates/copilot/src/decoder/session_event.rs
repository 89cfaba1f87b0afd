//! The session, its model and its MCP servers.

use teamster_core::provider::Events;
use teamster_core::{Id, McpServerStatus, NoticeLevel, NoticeSource, SessionStarted};

use super::end::Ending;
use super::wire::{Line, McpServer, Start};

/// State of the session. The CLI reports the id only in its last line; before, it is known if it was chosen.
#[derive(Debug, Default)]
pub(super) struct SessionState {
    /// The requested id.
    chosen: Option<Id>,
    /// True if a new session was requested under that id.
    pub(super) is_new: bool,
    /// The reported id.
    reported: Option<Id>,
    /// True if the model and the servers are known and were reported.
    complete: bool,
    model: Option<String>,
    servers: Vec<McpServerStatus>,
    /// Names of the requested servers.
    requested: Vec<String>,
    /// Servers that were reported as failed.
    failed: Vec<String>,
}

impl SessionState {
    pub(super) fn new(chosen: Option<&str>, is_new: bool, requested: Vec<String>) -> Self {
        Self {
            chosen: chosen.map(Id::from),
            is_new,
            requested,
            ..Self::default()
        }
    }

    /// Returns the id of the session. A requested id does not count before the first line: a session to resume may
    /// not exist.
    pub(super) fn id(&self) -> Option<Id> {
        self.reported.clone()
    }

    pub(super) fn model(&self) -> Option<&String> {
        self.model.as_ref()
    }

    /// Handles the first line, which shows that the session exists.
    pub(super) fn begins(&mut self, out: &mut Events) {
        if self.reported.is_none()
            && let Some(id) = self.chosen.clone()
        {
            self.report(id, out);
        }
    }

    /// Handles the start of the session, in versions that print it.
    pub(super) fn starts(
        &mut self,
        line: &Line<'_, Start<'_>>,
        ending: &mut Ending,
        out: &mut Events,
    ) {
        if let Some(id) = line.data.session_id.get() {
            self.is_really(id, out);
        }
        if let Some(model) = line.data.selected_model.get() {
            self.model_is(model, out);
        }
        if self.chosen.is_none() || self.is_new {
            ending.begins_at_zero();
        }
    }

    /// Sets the model that answers.
    pub(super) fn model_is(&mut self, model: &str, out: &mut Events) {
        let new = self.model.as_deref() != Some(model);
        self.model = Some(model.to_owned());
        if (new || !self.complete)
            && let Some(id) = self.reported.clone()
        {
            self.complete = true;
            self.report(id, out);
        }
    }

    /// Sets the state of an MCP server. A failed server becomes a notice, once.
    pub(super) fn server_is(&mut self, server: &McpServer<'_>, out: &mut Events) {
        let (Some(name), Some(status)) = (server.name.get(), server.status.get()) else {
            return;
        };
        let known = self.servers.iter_mut().find(|s| s.name == name);
        let changed = known.as_ref().is_none_or(|s| s.status != status);
        match known {
            Some(known) => status.clone_into(&mut known.status),
            None => self.servers.push(McpServerStatus::new(name, status)),
        }
        let requested = self.requested.iter().any(|a| a == name);
        self.report_trouble(server, requested, out);
        // Servers are still starting until the model is known.
        if changed
            && self.complete
            && let Some(id) = self.reported.clone()
        {
            self.report(id, out);
        }
    }

    /// Handles the state of a sub-agent's MCP server, which is not part of the session.
    pub(super) fn server_of_agent_is(&mut self, server: &McpServer<'_>, out: &mut Events) {
        self.report_trouble(server, false, out);
    }

    fn report_trouble(&mut self, server: &McpServer<'_>, requested: bool, out: &mut Events) {
        let trouble = match server.status.text() {
            "failed" => "failed",
            "needs-auth" => "needs a login",
            // The user may have disabled servers of their own.
            "disabled" if requested => "is switched off",
            "stopped" | "not_configured" if requested => "does not run",
            _ => return,
        };
        if let Some(name) = server.name.get() {
            let error = server.error.as_ref().and_then(|error| error.message.get());
            self.trouble(name, trouble, error, out);
        }
    }

    /// Handles the complete list of servers. A requested server that is missing was left out.
    pub(super) fn servers_are_known(&mut self, out: &mut Events) {
        let known = |name: &&String| self.servers.iter().any(|s| s.name == **name);
        let left_out = self.requested.iter().filter(|name| !known(name)).cloned();
        for name in left_out.collect::<Vec<_>>() {
            self.trouble(&name, "was not loaded by the CLI", None, out);
        }
    }

    /// Emits a notice that a server is missing, once.
    fn trouble(&mut self, name: &str, trouble: &str, error: Option<&str>, out: &mut Events) {
        if self.failed.iter().any(|f| f == name) {
            return;
        }
        self.failed.push(name.to_owned());
        let mut message = format!("the MCP server {name} {trouble}");
        if let Some(error) = error {
            message = format!("{message}: {error}");
        }
        out.notice(NoticeLevel::Warning, NoticeSource::Stdout, message);
    }

    /// Sets the actual id of the session, from the last line.
    pub(super) fn is_really(&mut self, id: &str, out: &mut Events) {
        match &self.reported {
            Some(reported) if reported.eq_ignore_ascii_case(id) => return,
            Some(reported) => out.notice(
                NoticeLevel::Warning,
                NoticeSource::Runtime,
                format!("the CLI ran in the session {id}, not in {reported}"),
            ),
            None => {}
        }
        self.report(Id::from(id), out);
    }

    fn report(&mut self, id: Id, out: &mut Events) {
        self.reported = Some(id.clone());
        let servers = Some(self.servers.clone()).filter(|s| !s.is_empty());
        out.push(
            SessionStarted::new(id)
                .model(self.model.clone())
                .mcp_servers(servers),
        );
    }
}
