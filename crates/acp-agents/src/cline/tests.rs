// Made by hand: all lines are those of version 3.0.65, shortened.

use serde_json::json;
use teamster_acp::replay::{Replay, names, result};
use teamster_acp::{During, RpcError};
use teamster_core::{AgentEvent, ErrorKind, ExecuteParams};

use super::*;

fn played(updates: &[Value]) -> Vec<AgentEvent> {
    let mut lines = vec![
        json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1}}),
        json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s1"}}),
    ];
    lines.extend(updates.iter().map(|update| match update.get("method") {
        Some(_) => update.clone(),
        None => json!({"jsonrpc": "2.0", "method": "session/update",
                       "params": {"sessionId": "s1", "update": update}}),
    }));
    lines.push(json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}}));
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    Replay::of(&CLINE, &lines.join("\n"), |_| {}).turn("hi")
}

#[expect(clippy::needless_pass_by_value, reason = "shorter tests")]
fn call(id: &str, title: &str, input: Value) -> Value {
    json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": "other",
           "status": "pending", "rawInput": input})
}

#[expect(clippy::needless_pass_by_value, reason = "shorter tests")]
fn end(id: &str, status: &str, output: Value) -> Value {
    json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status,
           "rawOutput": output})
}

fn text(text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})
}

#[test]
fn a_denied_call_is_one_call() {
    let title = "run_commands: echo main";
    let pending = json!({"toolCallId": "c1", "title": title, "kind": "execute", "status": "pending",
                         "rawInput": {"commands": ["echo main"]}});
    let mut update = pending.clone();
    update["sessionUpdate"] = "tool_call_update".into();
    let events = played(&[
        update,
        json!({"jsonrpc": "2.0", "id": 0, "method": "session/request_permission", "params": {
            "sessionId": "s1", "toolCall": pending,
            "options": [{"optionId": "allow_once", "kind": "allow_once"},
                        {"optionId": "reject_once", "kind": "reject_once"}]}}),
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "failed"}),
        call("c1", title, json!({"commands": ["echo main"]})),
        end(
            "c1",
            "failed",
            json!("{\"error\":\"User rejected the tool call\"}"),
        ),
        text("done."),
    ]);
    assert_eq!(
        names(&events),
        [
            "session",
            "tool_use",
            "permission",
            "tool_result",
            "text",
            "turn_end",
            "done"
        ]
    );
    let ended = events.iter().find_map(|event| match event {
        AgentEvent::ToolResult(end) => Some(end),
        _ => None,
    });
    let ended = ended.unwrap();
    assert_eq!(ended.output, "User rejected the tool call");
    assert_eq!(ended.is_error, Some(true));
}

#[test]
fn a_sub_agent_s_words_are_its_own() {
    let events = played(&[
        call("c1", "spawn_agent: count", json!({"task": "count"})),
        text("I look. "),
        call("c2", "run_commands: ls", json!({"commands": ["ls"]})),
        end(
            "c2",
            "completed",
            json!([{"query": "ls", "result": "x", "success": true}]),
        ),
        text("I have counted."),
        end(
            "c1",
            "completed",
            json!({"text": "I have counted.", "iterations": 2}),
        ),
        text("The helper has counted."),
    ]);
    assert_eq!(result(&events).text, "The helper has counted.");
    let parents: Vec<_> = (events.iter())
        .filter_map(|event| match event {
            AgentEvent::ToolUse(call) => Some(call.parent_tool_id.as_deref()),
            AgentEvent::Text(text) => Some(text.parent_tool_id.as_deref()),
            _ => None,
        })
        .collect();
    assert_eq!(parents, [None, Some("c1"), Some("c1"), Some("c1"), None]);
    let last = events.iter().rev().find_map(|event| match event {
        AgentEvent::ToolResult(end) => Some(end.output.as_str()),
        _ => None,
    });
    assert_eq!(last, Some("I have counted."));
}

#[test]
fn edits_have_their_files_or_their_error() {
    let patch = |text: &str| json!({"input": text});
    let events = played(&[
        call(
            "c1",
            "apply_patch: {}",
            patch("*** Begin Patch\n*** Add File: /w/a\n+x\n*** Delete File: /w/b\n*** End Patch"),
        ),
        end(
            "c1",
            "completed",
            json!({"query": "apply_patch", "result": "Successfully applied", "success": true}),
        ),
        call(
            "c2",
            "apply_patch: {}",
            patch("*** Begin Patch\n*** Update File: nope\n*** End Patch"),
        ),
        end(
            "c2",
            "completed",
            json!({"query": "apply_patch", "result": "", "success": false,
            "error": "apply_patch failed: File not found: nope"}),
        ),
        call(
            "c3",
            "editor: {}",
            json!({"path": "/w/c", "old_text": "a", "new_text": "b"}),
        ),
        end(
            "c3",
            "completed",
            json!({"query": "edit", "result": "edited", "success": true}),
        ),
    ]);
    let changes: Vec<_> = (events.iter())
        .filter_map(|event| match event {
            AgentEvent::FileChange(it) => Some((it.path.as_str(), it.change)),
            _ => None,
        })
        .collect();
    assert_eq!(
        changes,
        [
            ("/w/a", ChangeKind::Add),
            ("/w/b", ChangeKind::Delete),
            ("/w/c", ChangeKind::Update)
        ]
    );
    let failed = events.iter().find_map(|event| match event {
        AgentEvent::ToolResult(end) if end.is_error == Some(true) => Some(end.output.as_str()),
        _ => None,
    });
    assert_eq!(failed, Some("apply_patch failed: File not found: nope"));
}

#[test]
fn a_closed_socket_is_worth_another_try() {
    let dialect = (CLINE.dialect)(&ExecuteParams::default());
    let closed = "Internal error: The socket connection was closed unexpectedly. For more \
                  information, pass `verbose: true` in the second argument to fetch()";
    let error = dialect.error(&RpcError::new(-32603, closed), During::Prompt);
    assert_eq!((error.kind, error.retryable), (ErrorKind::Network, true));
}
