//! The output of the state machine: lines for the editor and actions for the host.

use agent_client_protocol_schema::v1::{Error, RequestId, SessionNotification, SessionUpdate};
use serde::Serialize;
use serde_json::{Value, json};

use crate::Action;

/// Lines for the editor and actions for the host, each in order.
#[derive(Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Output {
    /// JSON-RPC messages for the editor, one per line, each with its newline.
    pub lines: Vec<Vec<u8>>,
    /// Actions for the host.
    pub actions: Vec<Action>,
}

impl Output {
    fn write(&mut self, message: &Value) {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        self.lines.push(line);
    }

    pub(crate) fn response<T: Serialize>(&mut self, id: &RequestId, result: &T) {
        // The schema's types have string keys, so this does not fail.
        match serde_json::to_value(result) {
            Ok(result) => self.write(&json!({"jsonrpc": "2.0", "id": id, "result": result})),
            Err(error) => self.error(id, &Error::internal_error().data(error.to_string())),
        }
    }

    pub(crate) fn error(&mut self, id: &RequestId, error: &Error) {
        self.write(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    pub(crate) fn request(&mut self, id: u64, method: &str, params: &impl Serialize) {
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    pub(crate) fn notify(&mut self, method: &str, params: &impl Serialize) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub(crate) fn update(&mut self, session_id: &str, update: SessionUpdate) {
        let params = SessionNotification::new(session_id.to_owned(), update);
        self.notify("session/update", &params);
    }
}
