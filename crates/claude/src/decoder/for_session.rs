//! State of the decoder for sessions of many turns, beside its events.

use teamster_core::provider::Events;
use teamster_core::provider::json_line::{self, parse};
use teamster_core::{Id, Session, ToolKind};

use super::ClaudeDecoder;
use super::wire::ResultLine;

impl ClaudeDecoder {
    /// The session, as far as it is known.
    pub(crate) fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Whether the CLI plays a turn.
    pub(crate) fn in_turn(&self) -> bool {
        self.background.in_turn()
    }

    /// Whether agents are at work in the background, or one has ended and a turn about it is to come.
    pub(crate) fn agents_at_work(&self) -> bool {
        self.background.agents_at_work()
    }

    /// Whether this tool was called in the turn.
    pub(crate) fn has_called(&self, tool_id: &str) -> bool {
        self.tools.has_seen(tool_id)
    }

    /// The kind of a tool, as in `tool_use`.
    pub(crate) fn tool_kind(&self, tool_name: &str) -> ToolKind {
        let servers = self.session.as_ref().and_then(|s| s.mcp_servers.as_deref());
        match self.servers.tool(tool_name, servers.unwrap_or_default()) {
            Some(_) => ToolKind::Mcp,
            None => super::tools::kind(tool_name),
        }
    }

    /// The process begins a session of its own, and not one that was there before.
    pub(crate) fn session_begins(&mut self) {
        self.turns.session_begins();
    }

    /// Further lines are of another turn. The CLI may be about to stream already.
    pub(crate) fn next_turn(&mut self) {
        self.turns.next_turn();
    }

    /// A turn is over: its text is no longer needed.
    pub(crate) fn forget_turn(&mut self) {
        self.lanes.truncate(1);
        self.lanes[0].forget();
        self.tools.forget_turn();
    }

    /// The `result` of the command by which the conversation was cleared: its figures are the state
    /// from which the new session is counted.
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

    /// The id of the session that the lines name.
    pub(crate) fn session_id(&self) -> Option<&Id> {
        self.session.as_ref().map(|session| &session.session_id)
    }
}
