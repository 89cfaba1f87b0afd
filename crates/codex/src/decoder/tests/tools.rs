//! Tool calls and their results.

use serde_json::{Value, json};
use teamster_core::provider::{Events, Phase, RunAssembler};
use teamster_core::{
    AgentEvent, ChangeKind, FileChange, PermissionEvent, ToolKind, ToolResult, ToolUse,
};
use teamster_testkit::events::payloads;

use super::*;

fn uses(events: &[AgentEvent]) -> Vec<&ToolUse> {
    payloads(events).collect()
}

fn results(events: &[AgentEvent]) -> Vec<&ToolResult> {
    payloads(events).collect()
}

fn permissions(events: &[AgentEvent]) -> Vec<&PermissionEvent> {
    payloads(events).collect()
}

/// Returns a call that starts and ends, with these fields at its end.
fn both(kind: &str, fields: &Value) -> Vec<String> {
    let mut done = json!({"id": "item_0", "type": kind, "status": "completed"});
    for (name, value) in fields.as_object().unwrap() {
        done[name] = value.clone();
    }
    let mut started = done.clone();
    started["status"] = json!("in_progress");
    vec![item("started", &started), item("completed", &done)]
}

#[test]
fn a_command_failed_by_its_exit_code() {
    for (status, code, is_error) in [
        ("completed", Some(0), Some(false)),
        ("failed", Some(3), Some(true)),
        ("completed", Some(3), Some(true)),
        ("failed", None, Some(true)),
        ("declined", None, Some(true)),
        ("something new", None, None),
    ] {
        let (events, _) = turn_of(&[
            command(0, "started", "in_progress", None),
            command(0, "completed", status, code),
        ]);
        let tool = uses(&events)[0];
        assert_eq!(tool.tool_name, "command_execution");
        assert_eq!(tool.kind, ToolKind::Execute);
        assert_eq!(tool.input, json!({"command": "/bin/bash -lc x"}));
        let result = results(&events)[0];
        assert_eq!(result.output, "out");
        assert_eq!(result.is_error, is_error, "{status} {code:?}");
        let denied = permissions(&events).len();
        assert_eq!(denied, usize::from(status == "declined"));
    }
}

#[test]
fn a_result_whose_call_was_lost_brings_it_along() {
    let (events, result) = turn_of(&[command(7, "completed", "completed", Some(0))]);
    assert_types(&events, "session tool_use tool_result turn_end done");
    assert_eq!(uses(&events)[0].tool_id, results(&events)[0].tool_id);
    assert_eq!(result.diagnostics.unknown, 0);
}

#[test]
fn ids_of_calls_are_unique_in_a_run() {
    let (events, result) = turn_of(&[
        command(0, "completed", "completed", Some(0)),
        command(0, "started", "in_progress", None),
        command(0, "started", "in_progress", None),
        command(0, "completed", "failed", Some(1)),
    ]);
    let ids: Vec<_> = uses(&events).iter().map(|t| t.tool_id.clone()).collect();
    assert_eq!(ids, ["item_0".into(), "item_0#2".into()]);
    assert_eq!(results(&events)[1].is_error, Some(true));
    assert!(result.open_tool_ids.is_empty());
}

#[test]
fn a_running_command_is_the_tool_that_the_watchdog_names() {
    let mut assembler = RunAssembler::new(Box::new(CodexDecoder::new()));
    let mut out = Events::new();
    for line in [
        thread(),
        turn(),
        command(0, "started", "in_progress", None),
        command(0, "updated", "in_progress", None),
    ] {
        assembler.line(line.as_bytes(), &mut out);
    }
    let running = Phase::Tools(vec!["command_execution".into()]);
    assert_eq!(assembler.phase(), running);
    let done = command(0, "completed", "completed", Some(0));
    assembler.line(done.as_bytes(), &mut out);
    assert_eq!(assembler.phase(), Phase::Model);
}

#[test]
fn changed_files_are_events_of_their_own_if_they_were_changed() {
    let changes = json!({"changes": [
        {"path": "/ws/a", "kind": "add"}, {"path": "/ws/u", "kind": "update"},
        {"path": "/ws/d", "kind": "delete"}, {"kind": "add"}, 7]});
    let (events, _) = turn_of(&both("file_change", &changes));
    let changed: Vec<_> = payloads::<FileChange>(&events)
        .map(|change| (change.path.as_str(), change.change))
        .collect();
    assert_eq!(
        changed,
        [
            ("/ws/a", ChangeKind::Add),
            ("/ws/u", ChangeKind::Update),
            ("/ws/d", ChangeKind::Delete)
        ]
    );
    assert_eq!(uses(&events)[0].kind, ToolKind::Edit);

    let mut failed = changes;
    failed["status"] = json!("failed");
    let (events, _) = turn_of(&both("file_change", &failed));
    assert!(!names(&events).contains(&"file_change"));
    assert_eq!(results(&events)[0].is_error, Some(true));

    let deleted = json!({"changes": [{"path": "/ws/d", "kind": "delete"}]});
    let (events, _) = turn_of(&both("file_change", &deleted));
    assert_eq!(uses(&events)[0].kind, ToolKind::Delete);
}

#[test]
fn the_clis_own_tools_for_resources_are_no_servers() {
    for (server, tool, is_own) in [
        ("codex", "list_mcp_resources", true),
        ("codex", "list_mcp_resource_templates", true),
        ("codex", "read_mcp_resource", true),
        ("codex", "echo", false),
        ("tiny", "read_mcp_resource", false),
    ] {
        let fields = json!({"server": server, "tool": tool, "arguments": {"server": "tiny"},
            "result": null, "error": null, "status": "completed"});
        let (events, _) = turn_of(&both("mcp_tool_call", &fields));
        let used = uses(&events)[0];
        assert_eq!(used.tool_name, tool);
        assert_eq!(used.mcp.is_none(), is_own, "{server} {tool}");
        let kind = if is_own {
            ToolKind::Read
        } else {
            ToolKind::Mcp
        };
        assert_eq!(used.kind, kind, "{server} {tool}");
    }
}

#[test]
fn a_web_search_that_broke_off_is_emitted() {
    let started = r#"{"type":"item.started","item":{"id":"item_0","type":"web_search","id":"ws_0002","query":"","action":{"type":"other"}}}"#;
    let (events, result) = decode(
        CodexDecoder::new(),
        &[thread(), turn(), started.into()],
        Exit::new(1),
    );
    assert_eq!(uses(&events).len(), 1);
    assert_eq!(result.open_tool_ids, ["item_0".into()]);
}

#[test]
fn an_agent_that_did_not_start_is_an_error() {
    let fields = json!({"tool": "spawn_agent", "receiver_thread_ids": [], "prompt": "Do it",
        "agents_states": {}, "status": "failed"});
    let (events, _) = turn_of(&both("collab_tool_call", &fields));
    assert_eq!(uses(&events)[0].input, json!({"prompt": "Do it"}));
    assert_eq!(results(&events)[0].is_error, Some(true));
}

#[test]
fn items_of_a_type_that_is_not_known_are_unknown() {
    let strange = item("completed", &json!({"id": "item_0", "type": "telepathy"}));
    let (events, result) = turn_of(&[strange, item("completed", &json!({"id": "item_1"}))]);
    assert_types(&events, "session unknown unknown turn_end done");
    assert_eq!(result.diagnostics.unknown, 2);
}

#[test]
fn fields_that_are_missing_or_odd_lose_no_item() {
    for odd in [
        json!({"type": "command_execution"}),
        json!({"id": 5, "type": "command_execution", "command": ["ls"], "aggregated_output": 1,
               "exit_code": "x", "status": {}}),
        json!({"type": "file_change", "changes": {"path": 1}}),
        json!({"type": "mcp_tool_call", "server": 1, "tool": null, "arguments": null,
               "result": [], "error": "x"}),
        json!({"type": "collab_tool_call", "tool": 1, "agents_states": []}),
        json!({"type": "web_search", "query": 1}),
    ] {
        let (events, result) = turn_of(&[item("started", &odd), item("completed", &odd)]);
        assert_eq!(
            names(&events),
            ["session", "tool_use", "tool_result", "turn_end", "done"],
            "{odd}"
        );
        assert_eq!(result.diagnostics.unknown, 0, "{odd}");
    }
}

#[test]
fn an_mcp_result_in_another_shape_is_not_lost() {
    let call = |fields: &Value| {
        let (events, _) = turn_of(&both("mcp_tool_call", fields));
        let result = results(&events)[0];
        (result.output.clone(), result.is_error)
    };
    let blocks = json!([{"type": "text", "text": "boom"}]);
    for (fields, output, is_error) in [
        (json!({"error": "it broke"}), "it broke", true),
        (json!({"result": {"content": "plain"}}), "plain", false),
        (json!({"result": {"content": ["a", "b"]}}), "a\nb", false),
        (
            json!({"result": {"content": blocks, "is_error": true}}),
            "boom",
            true,
        ),
    ] {
        assert_eq!(call(&fields), (output.into(), Some(is_error)), "{fields}");
    }
}

#[test]
fn too_deep_json_is_kept_as_text() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let done = |result: &str| {
        let line = format!(
            r#"{{"type":"item.completed","item":{{"id":"item_0","type":"mcp_tool_call","server":"s","tool":"t","arguments":{deep},"result":{result},"status":"completed"}}}}"#
        );
        turn_of(&[line]).0
    };
    let content = format!(r#"{{"content":[{{"type":"text","text":"R"}},{deep}]}}"#);
    let events = done(&content);
    assert_eq!(uses(&events)[0].input, json!(deep));
    assert_eq!(results(&events)[0].output, format!("R\n{deep}"));
    let structured = format!(r#"{{"content":[],"structured_content":{deep}}}"#);
    assert_eq!(results(&done(&structured))[0].output, deep);
}

#[test]
fn changed_files_in_other_shapes() {
    for changes in [
        json!([{"path": "/a", "kind": {"type": "add"}}, {"path": "/d", "kind": {"type": "delete"}},
               {"path": "/u", "kind": {"type": "update", "move_path": "/v"}}]),
        json!({"/a": {"type": "add"}, "/d": "delete", "/u": {"type": "update"}}),
    ] {
        let (events, _) = turn_of(&both("file_change", &json!({"changes": changes})));
        let changed: Vec<_> = payloads::<FileChange>(&events)
            .map(|change| (change.path.as_str(), change.change))
            .collect();
        let expected = [
            ("/a", ChangeKind::Add),
            ("/d", ChangeKind::Delete),
            ("/u", ChangeKind::Update),
        ];
        assert_eq!(changed, expected, "{changes}");
    }
    let deleted = json!({"changes": {"/d": {"type": "delete"}}});
    let (events, _) = turn_of(&both("file_change", &deleted));
    assert_eq!(uses(&events)[0].kind, ToolKind::Delete);
}
