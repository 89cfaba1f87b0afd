//! Parts that are printed more than once.

use serde_json::json;
use teamster_core::{AgentEvent, RunStatus};

use super::{SESSION, assert_types, error, finish, names, run, start};

/// Returns a line of a part with the same id.
fn part(kind: &str, fields: &serde_json::Value) -> String {
    let mut part = json!({"id": "prt_same", "messageID": "m"});
    for (name, value) in fields.as_object().unwrap() {
        part[name] = value.clone();
    }
    json!({"type": kind, "sessionID": SESSION, "part": part}).to_string()
}

fn text(text: &str) -> String {
    part("text", &json!({"type": "text", "text": text}))
}

fn tool(state: &serde_json::Value) -> String {
    part(
        "tool_use",
        &json!({"tool": "bash", "callID": "t", "state": state}),
    )
}

fn completed(output: &str) -> String {
    tool(
        &json!({"status": "completed", "input": {"command": "x"}, "output": output,
        "metadata": {"exit": 1}}),
    )
}

#[test]
fn a_text_that_has_grown_is_passed_on_once() {
    let (events, result) = run(&[
        start("m"),
        text("Hel"),
        text("Hello"),
        text("Hello"),
        text("Hello \u{e9}"),
        finish("m", "stop"),
    ]);
    assert_eq!(result.text, "Hello \u{e9}");
    let texts = names(&events).iter().filter(|n| **n == "text").count();
    assert_eq!((texts, result.diagnostics.unknown), (3, 0));
}

#[test]
fn a_part_that_contradicts_itself_is_unknown() {
    for again in [text("Bye"), text("H"), completed("x"), {
        part("reasoning", &json!({"text": "Hello"}))
    }] {
        let (_, result) = run(&[
            start("m"),
            text("Hello"),
            again.clone(),
            finish("m", "stop"),
        ]);
        assert_eq!(result.diagnostics.unknown, 1, "{again}");
        assert_eq!(result.text, "Hello");
    }
    let (_, result) = run(&[completed("a"), completed("b")]);
    assert_eq!(result.diagnostics.unknown, 1);
    let (_, result) = run(&[completed("a"), completed("a")]);
    assert_eq!(result.diagnostics.unknown, 0);
}

#[test]
fn an_open_call_has_no_result_before_its_end() {
    let pending = tool(&json!({"status": "pending", "input": {}}));
    let running = tool(&json!({"status": "running", "input": {"command": "x"}}));
    let (events, result) = run(&[
        start("m"),
        pending.clone(),
        running.clone(),
        running.clone(),
        completed("OUT"),
        finish("m", "stop"),
    ]);
    assert_types(&events[..4], "session tool_use tool_result usage");
    let (AgentEvent::ToolUse(used), AgentEvent::ToolResult(ended)) = (&events[1], &events[2])
    else {
        panic!("{events:?}")
    };
    assert_eq!(used.input, json!({"command": "x"}));
    assert_eq!((&*used.tool_id, &*ended.tool_id), ("t", "t"));
    assert_eq!((ended.output.as_str(), ended.is_error), ("OUT", Some(true)));
    assert_eq!(result.diagnostics.unknown, 0);

    // A call that never ended is open, and a call that never ran is no call.
    let (events, result) = run(&[start("m"), running, error("X", &json!({"message": "no"}))]);
    assert_eq!(result.open_tool_ids.len(), 1);
    assert_eq!(result.status, RunStatus::Failed);
    assert!(!names(&events).contains(&"tool_result"));
    let (events, _) = run(&[start("m"), pending.clone()]);
    assert!(!names(&events).contains(&"tool_use"));
    let (events, _) = run(&[start("m"), pending, completed("OUT")]);
    assert_types(&events[1..3], "tool_use tool_result");
}
