//! Tests of the protocol from an editor's side.
#![expect(
    clippy::needless_pass_by_value,
    reason = "JSON is given as it is written"
)]

mod builtin_commands;
mod messages;
mod offers;
mod permissions;
mod sessions;
mod settings;
mod turns;

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};
use teamster_api::RunLogEntry;
use teamster_core::{
    AgentError, ErrorCode as Code, ErrorKind, Offers, PermissionAnswer, PermissionMode, ToolKind,
};

use super::*;
use crate::{AgentEntry, Choice, Found, SessionPage, SessionSummary};

/// An editor connected to a server.
struct Editor {
    server: AcpServer,
    actions: Vec<Action>,
    messages: Vec<Value>,
    seq: u64,
}

fn claude() -> AgentEntry {
    let mut agent = AgentEntry::new("claude", "Claude Code");
    agent.modes = vec![
        PermissionMode::Default,
        PermissionMode::AcceptEdits,
        PermissionMode::ReadOnly,
    ];
    agent.models = vec![Choice::new("opus")];
    agent.efforts = vec![Choice::new("low"), Choice::new("high")];
    agent.login = "log in with `claude`".to_owned();
    agent
}

impl Editor {
    fn with(catalog: Catalog) -> Self {
        Self {
            server: AcpServer::new(catalog, || "s1".to_owned()),
            actions: Vec::new(),
            messages: Vec::new(),
            seq: 0,
        }
    }

    fn new() -> Self {
        Self::with(Catalog::one(claude()))
    }

    /// An initialized editor with a session.
    fn with_session() -> Self {
        let mut editor = Self::new();
        editor.call(
            0,
            "initialize",
            json!({"protocolVersion": 1, "clientInfo": {"name": "zed", "version": "1"}}),
        );
        editor.begin();
        editor
    }

    fn begin(&mut self) -> Value {
        self.call(1, "session/new", json!({"cwd": "/w", "mcpServers": []}));
        let Some(Action::Prepare { ticket, .. }) = self.actions.pop() else {
            panic!("{:?}", self.actions);
        };
        self.host(|server, out| server.prepared(ticket, Ok(Offers::new()), out));
        let asked = self.actions.pop();
        assert!(matches!(asked, Some(Action::AskOffers { .. })), "{asked:?}");
        // Those of this server.
        (self.messages)
            .retain(|it| it["params"]["update"]["sessionUpdate"] != "available_commands_update");
        self.answer(1)
    }

    fn take(&mut self, out: Output) {
        self.actions.extend(out.actions);
        let lines = out.lines.iter();
        self.messages
            .extend(lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()));
    }

    fn line(&mut self, line: &str) {
        let mut out = Output::default();
        self.server.line(line.as_bytes(), &mut out);
        self.take(out);
    }

    fn call(&mut self, id: u64, method: &str, params: Value) {
        self.line(
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.line(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    fn prompt(&mut self, id: u64, text: &str) {
        let params = json!({"sessionId": "s1", "prompt": [{"type": "text", "text": text}]});
        self.call(id, "session/prompt", params);
    }

    fn host(&mut self, answer: impl FnOnce(&mut AcpServer, &mut Output)) {
        let mut out = Output::default();
        answer(&mut self.server, &mut out);
        self.take(out);
    }

    fn log(&mut self, event: Value) {
        self.seq += 1;
        let mut line = json!({"seq": self.seq, "atMs": 1, "attempt": 1});
        line.as_object_mut()
            .unwrap()
            .extend(event.as_object().unwrap().clone());
        let entry: RunLogEntry = serde_json::from_value(line).unwrap();
        self.host(|server, out| server.entry("s1", &entry, None, out));
    }

    /// Logs the start of a turn that the editor requested.
    fn turn(&mut self, run: &str) {
        self.log(json!({"type": "user:message", "runId": run, "text": "hi", "from": "zed"}));
    }

    fn done(&mut self, run: &str, fields: Value) {
        let mut result = json!({"status": "completed", "text": "", "durationMs": 1, "aborted": false,
            "diagnostics": {"lines": 0, "malformed": 0, "oversize": 0, "unknown": 0}});
        result
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        self.log(json!({"type": "done", "runId": run, "result": result}));
    }

    /// Removes and returns the response to a request.
    fn answer(&mut self, id: u64) -> Value {
        let matches = |message: &Value| message["id"] == id && message["method"].is_null();
        let index = self.messages.iter().position(matches);
        let index = index.unwrap_or_else(|| panic!("no answer to {id}: {:#?}", self.messages));
        self.messages.remove(index)
    }

    fn has_answer(&self, id: u64) -> bool {
        self.messages
            .iter()
            .any(|it| it["id"] == id && it["method"].is_null())
    }

    /// Removes and returns the updates so far.
    fn updates(&mut self) -> Vec<Value> {
        let messages = std::mem::take(&mut self.messages).into_iter();
        let (updates, rest) = messages.partition(|it| it["method"] == "session/update");
        self.messages = rest;
        updates
    }
}
