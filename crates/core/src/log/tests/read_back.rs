//! What is written of an entry, and what is read of it.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::{AgentEvent, Id, LogEntry, RawJson, RunLogEntry, RunResult};

/// Returns an event of each type with this text in all its fields. Without `other`, what may be absent is null.
fn events(text: &str, other: Option<&str>) -> Vec<AgentEvent> {
    let list = other.map(|it| vec![it, text]);
    let number = other.map(str::len);
    let figure = other.map(|_| 0.25);
    let flag = other.map(|it| it.len() % 2 == 0);
    let usage = json!({"inputTokens": 7, "outputTokens": number});
    let error = json!({"message": text, "code": "INVALID_PARAMS", "kind": "invalid", "retryable": false,
        "retryAfterMs": number, "cause": other.map(|it|
            json!({"message": it, "code": "INVALID_PARAMS", "kind": "invalid", "retryable": true}))});
    let mut failed = error.clone();
    failed["type"] = "error".into();
    let values = [
        json!({"type": "session", "sessionId": text, "model": other, "tools": list,
            "mcpServers": other.map(|it| json!([{"name": it, "status": text}]))}),
        json!({"type": "offers", "efforts": list, "effortDescriptions": {text: text},
            "commands": other.map(|it| json!([{"name": it, "description": text, "inputHint": null}])),
            "models": other.map(|it| json!([
                {"id": it, "name": text, "efforts": list, "effortDescriptions": {text: it}}]))}),
        json!({"type": "text", "text": text, "messageId": other, "parentToolId": other}),
        json!({"type": "retract", "messageId": text}),
        json!({"type": "thinking", "text": text, "messageId": other, "parentToolId": other}),
        json!({"type": "tool_use", "toolName": text, "toolId": text, "kind": "mcp",
            "input": {text: [text, 0.5, -1, u64::MAX, null, {"type": other}]},
            "mcp": other.map(|it| json!({"server": it, "tool": text})), "parentToolId": other}),
        json!({"type": "tool_output", "toolId": text, "text": text}),
        json!({"type": "tool_result", "toolId": text, "output": text, "isError": flag, "parentToolId": other}),
        json!({"type": "file_change", "path": text, "change": "move", "toolId": other}),
        json!({"type": "plan", "entries": [{"content": text, "status": "in_progress"}]}),
        json!({"type": "permission", "toolName": text, "toolId": other, "decision": "denied", "reason": other,
            "requestId": other, "timedOut": other.is_some()}),
        json!({"type": "permission_mode", "mode": "default"}),
        json!({"type": "usage", "usage": usage, "costUsd": figure, "costSource": other.map(|_| "reported")}),
        json!({"type": "context", "tokens": 1, "window": u64::MAX}),
        json!({"type": "retry", "number": 2, "maxAttempts": number, "delayMs": number, "error": error}),
        json!({"type": "rate_limit", "status": text, "resetsAt": number, "kind": other, "utilization": figure}),
        json!({"type": "notice", "level": "info", "message": text, "source": "stderr",
            "code": other.map(|_| "compacted")}),
        json!({"type": "unknown", "native": {"a": text}}),
        json!({"type": "turn_end", "stopReason": other, "isError": false, "costUsd": figure,
            "usage": other.map(|_| usage.clone())}),
        failed,
        json!({"type": "done", "result": RunResult::default()}),
        json!({"type": "hologram", "shape": {text: other}}),
    ];
    values
        .into_iter()
        .map(|value| serde_json::from_value(value).unwrap())
        .collect()
}

/// Returns texts of any characters, with those that JSON escapes and long ones among them.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ -~]{0,40}",
        r#"[a"\\/\x00-\x1f\x7f\u{2028}\u{d7ff}\u{ffff}\u{10ffff}]{0,20}"#,
    ]
}

#[test]
fn events_of_every_type_are_there() {
    let events = events("a", None);
    let names: BTreeSet<_> = events.iter().map(AgentEvent::type_name).collect();
    // Those of the schema, and one that only a newer version knows.
    assert_eq!((names.len(), events.len()), (22, 22));
    assert!(names.contains("newer"));
}

proptest! {
    #[test]
    fn every_entry_is_written_as_derived_and_read_back(
        text in texts(),
        other in proptest::option::of(texts()),
        run_id in proptest::option::of(texts()),
        has_native in any::<bool>(),
    ) {
        for event in events(&text, other.as_deref()) {
            let mut entry = LogEntry::new(u64::MAX, 1, event);
            entry.run_id = run_id.as_deref().map(Id::from);
            // An unknown event has its line itself.
            if has_native && !matches!(entry.event, AgentEvent::Unknown(_)) {
                let native = json!({"type": "x", "text": text}).to_string();
                entry.native = Some(RawJson::new(native).unwrap());
            }
            let derived = serde_json::to_string(&entry).unwrap();
            let entry = RunLogEntry::Agent(entry);
            let written = String::from_utf8(entry.to_json().unwrap()).unwrap();
            prop_assert_eq!(&written, &derived);
            let read: RunLogEntry = serde_json::from_str(&written).unwrap();
            prop_assert_eq!(&read, &entry);
            // In another order, and with a field of a newer version.
            let fields: Map<String, Value> = serde_json::from_str(&written).unwrap();
            let mut fields: Vec<_> = fields.into_iter().collect();
            let is_newer = matches!(&entry, RunLogEntry::Agent(it) if matches!(it.event, AgentEvent::Newer(_)));
            if !is_newer {
                fields.push(("fieldOfANewerVersion".to_owned(), json!([text])));
            }
            fields.reverse();
            let turned: Map<String, Value> = fields.into_iter().collect();
            let read: RunLogEntry = serde_json::from_value(turned.into()).unwrap();
            prop_assert_eq!(&read, &entry);
        }
    }
}
