//! Recordings of made updates, for tests of dialects. The session's id is `s1`.

use serde_json::{Value, json};

/// The answer to the prompt.
pub(crate) const ANSWERED: &str = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#;

/// Returns the lines of a session with one turn of these updates. One with a method is a message by itself.
pub(crate) fn turn(updates: &[Value]) -> String {
    opened(updates) + ANSWERED
}

/// Returns the lines of a session whose turn begins with these updates.
pub(crate) fn opened(updates: &[Value]) -> String {
    let begin = [
        json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1, "agentCapabilities": {}}}),
        json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s1"}}),
    ];
    begin.map(|line| format!("{line}\n")).concat() + &lines(updates)
}

pub(crate) fn lines(updates: &[Value]) -> String {
    let line = |update: &Value| {
        let line = match update.get("method") {
            Some(_) => update.clone(),
            None => json!({"jsonrpc": "2.0", "method": "session/update",
                           "params": {"sessionId": "s1", "update": update}}),
        };
        format!("{line}\n")
    };
    updates.iter().map(line).collect()
}
