//! What an editor sends to the agent's side of the Agent Client Protocol, with entries of the session's log in between.

use serde_json::Value;
use teamster_acp_server::{AcpServer, Action, AgentEntry, Catalog, Output, SessionPage};
use teamster_api::RunLogEntry;
use teamster_core::Offers;

use super::Target;
use crate::harness::maybe_long;

pub fn target() -> Target {
    Target::new("editor", &["fuzz/seeds/editor"], |data| {
        let agents = ["one", "other"].map(|id| AgentEntry::new(id, id));
        let mut server = AcpServer::new(Catalog::choice(agents.into()), || "s".to_owned());
        for line in maybe_long(data).split(|byte| *byte == b'\n') {
            let mut out = Output::default();
            match serde_json::from_slice::<RunLogEntry>(line) {
                Ok(entry) => server.entry("s", &entry, None, &mut out),
                Err(_) => server.line(line, &mut out),
            }
            while !out.actions.is_empty() {
                for action in std::mem::take(&mut out.actions) {
                    answer(&mut server, action, &mut out);
                }
            }
            for line in &out.lines {
                let message: Value = serde_json::from_slice(line)
                    .unwrap_or_else(|error| panic!("{}: {error}", String::from_utf8_lossy(line)));
                assert_eq!(message["jsonrpc"], "2.0");
            }
        }
    })
}

/// Does what a host does that finds everything as it should be.
fn answer(server: &mut AcpServer, action: Action, out: &mut Output) {
    match action {
        Action::Prepare { ticket, .. } => server.prepared(ticket, Ok(Offers::default()), out),
        Action::List { ticket, .. } => {
            server.listed(ticket, Ok(SessionPage::new(Vec::new(), None)), out);
        }
        Action::Close {
            ticket, session_id, ..
        }
        | Action::Delete {
            ticket, session_id, ..
        } => {
            server.done(ticket, &session_id, Ok(()), out);
        }
        _ => {}
    }
}
