//! What is known of a session, as text for its user.

use std::fmt::Write as _;

use agent_client_protocol_schema::v1::{SessionInfoUpdate, SessionUpdate};
use teamster_core::text::one_line;

use super::{View, chunk};
use crate::Setup;
use crate::catalog::mode_text;

impl View {
    /// Returns a message of this server.
    pub(crate) fn message(&mut self, text: &str) -> SessionUpdate {
        // It is neither a part of the message before nor of the next one.
        self.message = None;
        let id = self.message_id(None, "m");
        self.message = None;
        SessionUpdate::AgentMessageChunk(chunk(text, id))
    }

    /// Takes the title that a person has given.
    pub(crate) fn retitled(&mut self, title: &str) -> SessionUpdate {
        self.title = Some(title.to_owned());
        let info = SessionInfoUpdate::new().title(title.to_owned());
        SessionUpdate::SessionInfoUpdate(info)
    }

    /// Returns what is known of the session, as Markdown.
    pub(crate) fn status(&self, session_id: &str, setup: &Setup, agent: &str) -> String {
        let mut text = format!("{agent}\n\n");
        let mut line = |name: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "- {name}: {value}");
        };
        let settings = &setup.settings;
        let model = self.model.as_ref().or(settings.model.as_ref());
        let own = "the agent's own choice".to_owned();
        line("Model", &model.map_or(own, |it| code(it)));
        if let Some(effort) = &settings.effort {
            line("Thought level", &code(effort));
        }
        line("Mode", mode_text(settings.mode).0);
        let folders = std::iter::once(&setup.cwd).chain(&setup.add_dirs);
        let folders: Vec<_> = folders.map(|it| code(&it.to_string_lossy())).collect();
        line("Folder", &folders.join(", "));
        if let Some(window) = self.window {
            let tokens = self.context_tokens;
            line("Context", &format!("{tokens} of {window} tokens"));
        }
        let cost = self.cost_usd.map(|usd| {
            let estimate = if self.is_estimate { "~" } else { "" };
            format!("{estimate}${usd:.2}")
        });
        let tokens = (self.tokens > 0).then(|| format!("{} tokens", self.tokens));
        let used: Vec<_> = tokens.into_iter().chain(cost).collect();
        if !used.is_empty() {
            line("Used", &used.join(", "));
        }
        let reported = self.mcp_servers.iter();
        let reported = reported.map(|it| format!("{} {}", code(&it.name), one_line(&it.status)));
        let mut servers: Vec<_> = reported.collect();
        if servers.is_empty() {
            // Not every agent reports their states.
            servers.extend(setup.mcp_servers.iter().map(|it| code(&it.name)));
        }
        if !servers.is_empty() {
            line("MCP servers", &servers.join(", "));
        }
        line("Thread", &code(session_id));
        if let Some(id) = &self.session {
            line("Session of the agent", &code(id));
        }
        text
    }
}

/// Returns text as code in Markdown.
pub(crate) fn code(text: &str) -> String {
    format!("`{}`", one_line(text).replace('`', "'"))
}
