//! Decoder state for sessions of many turns.

use teamster_core::provider::Events;
use teamster_core::provider::json_line::{self, parse};
use teamster_core::{Id, SessionStarted, ToolKind};

use super::ClaudeDecoder;
use super::wire::ResultLine;

impl ClaudeDecoder {
    /// Returns the session, if known.
    pub(crate) fn session(&self) -> Option<&SessionStarted> {
        self.session.as_ref()
    }

    /// Returns the names of the CLI's commands, as of the last turn. Empty if they are unknown.
    pub(crate) fn commands(&self) -> &[String] {
        &self.commands
    }

    /// Returns whether the CLI is in a turn.
    pub(crate) fn in_turn(&self) -> bool {
        self.background.in_turn()
    }

    /// Returns whether background agents are active, or one has ended and a later turn will report it.
    pub(crate) fn agents_at_work(&self) -> bool {
        self.background.agents_at_work()
    }

    /// Returns whether this call was made in the turn.
    pub(crate) fn has_called(&self, tool_id: &str) -> bool {
        self.tools.has_seen(tool_id)
    }

    /// Returns the kind of a tool, as in `tool_use`.
    pub(crate) fn tool_kind(&self, tool_name: &str) -> ToolKind {
        let servers = self.session.as_ref().and_then(|s| s.mcp_servers.as_deref());
        match self.servers.tool(tool_name, servers.unwrap_or_default()) {
            Some(_) => ToolKind::Mcp,
            None => super::tools::kind(tool_name),
        }
    }

    /// Marks the start of a new session in this process.
    pub(crate) fn session_begins(&mut self) {
        self.turns.session_begins();
    }

    /// Starts the next turn. The CLI may stream before it.
    pub(crate) fn next_turn(&mut self) {
        self.turns.next_turn();
    }

    /// Discards the text and calls of the last turn.
    pub(crate) fn forget_turn(&mut self) {
        self.lanes.truncate(1);
        self.lanes[0].forget();
        self.tools.forget_turn();
    }

    /// Handles the `result` of the command that clears the conversation. The counts of the new session start from its
    /// totals.
    pub(crate) fn cleared(&mut self, line: &[u8]) {
        json_line::read(line, |text| {
            let line: ResultLine<'_> = parse(text)?;
            self.turns.result(line, None, None, &mut Events::new());
            Some(())
        });
        self.background.turn_ends(None);
        self.pending = None;
        self.tools.forget_session();
        self.turns.session_begins();
        self.turns.next_turn();
    }

    /// Returns the id of the current session.
    pub(crate) fn session_id(&self) -> Option<&Id> {
        self.session.as_ref().map(|session| &session.session_id)
    }
}
