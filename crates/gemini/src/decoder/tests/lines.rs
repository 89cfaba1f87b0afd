//! Lines in general: none is lost.

use serde_json::{Value, json};
use teamster_core::AgentEvent;

use super::{
    SESSION, assert_types, call, delta, error_line, init, line, names, returned, run, success,
};

#[test]
fn text_consists_of_the_deltas() {
    let (events, result) = run(&[
        init(),
        delta("a\u{2028}b"),
        delta(""),
        delta("\r\n\u{7}"),
        delta("c"),
        success(),
    ]);
    assert_types(&events, "session text text text turn_end done");
    assert_eq!(result.text, "a\u{2028}b\r\n\u{7}c");
}

#[test]
fn final_message_is_the_answer_after_a_hook_rejection() {
    let blocked = || error_line("warning", "Agent execution blocked: say it better");
    let call = || call("a", "glob", &json!({}));
    let returned = || returned("a", &json!({"status": "success"}));
    for (lines, last) in [
        (vec![delta("a"), blocked(), delta("b"), delta("c")], "bc"),
        (
            vec![delta("a"), blocked(), delta("b"), blocked(), delta("c")],
            "c",
        ),
        (
            vec![delta("a"), blocked(), call(), returned(), delta("b")],
            "b",
        ),
        // The run ends with the last answer, although it was sent back.
        (vec![delta("a"), blocked(), delta("b"), blocked()], "b"),
        (vec![delta("a"), blocked()], "a"),
    ] {
        let lines = [vec![init()], lines, vec![success()]].concat();
        let (_, result) = run(&lines);
        assert_eq!(result.final_message.as_deref(), Some(last), "{lines:?}");
    }
}

#[test]
fn halves_of_a_surrogate_pair_meet() {
    let half = |text: &str| {
        format!(r#"{{"type":"message","role":"assistant","content":"{text}","delta":true}}"#)
    };
    let (_, result) = run(&[init(), half(r"hi \ud83d"), half(r"\ude00 end"), success()]);
    assert_eq!(result.text, "hi \u{1F600} end");
    assert_eq!(result.diagnostics.malformed, 0);
}

#[test]
fn half_a_pair_costs_neither_a_call_nor_a_result() {
    let lines = [
        init(),
        r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"a","parameters":{"command":"echo \ud83d"}}"#.to_owned(),
        r#"{"type":"tool_result","tool_id":"a","status":"success","output":"got \ud83d"}"#.to_owned(),
        success(),
    ];
    let (events, result) = run(&lines);
    let AgentEvent::ToolUse(used) = &events[1] else {
        panic!("{events:?}");
    };
    assert_eq!(used.input, json!({"command": "echo \u{FFFD}"}));
    let AgentEvent::ToolResult(returned) = &events[2] else {
        panic!("{events:?}");
    };
    assert_eq!(returned.output, "got \u{FFFD}");
    assert_eq!(result.diagnostics.malformed, 0);
}

#[test]
fn parameters_that_are_nested_too_deeply_are_text() {
    let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    let line = format!(
        r#"{{"type":"tool_use","tool_name":"glob","tool_id":"a","parameters":{{"x":{deep}}}}}"#
    );
    let (events, result) = run(&[
        init(),
        line,
        returned("a", &json!({"status": "success"})),
        success(),
    ]);
    let AgentEvent::ToolUse(used) = &events[1] else {
        panic!("{events:?}");
    };
    assert_eq!(used.input, Value::String(format!("{{\"x\":{deep}}}")));
    assert!(result.open_tool_ids.is_empty());
    assert_eq!(result.diagnostics.unknown, 0);
}

#[test]
fn parameters_may_be_missing() {
    let bare = line("tool_use", &json!({"tool_name": "glob", "tool_id": "a"}));
    let (events, _) = run(&[init(), bare, call("b", "glob", &json!(null)), success()]);
    for event in &events[1..3] {
        let AgentEvent::ToolUse(used) = event else {
            panic!("{event:?}");
        };
        assert_eq!(used.input, Value::Null);
    }
}

#[test]
fn unknown_lines_are_passed_on() {
    for odd in [
        line("thought", &json!({"content": "hm"})),
        line("message", &json!({"role": "system", "content": "x"})),
        line(
            "message",
            &json!({"role": "assistant", "content": {"x": 1}}),
        ),
        line("message", &json!({"content": "x"})),
        line("error", &json!({"severity": "error"})),
        line("tool_use", &json!({"tool_id": "a"})),
        line("init", &json!({"model": "m"})),
        "{}".to_owned(),
        r#"{"type":7}"#.to_owned(),
    ] {
        let (events, result) = run(std::slice::from_ref(&odd));
        assert_eq!(names(&events)[0], "unknown", "{odd}");
        assert_eq!(result.diagnostics.unknown, 1);
    }
}

#[test]
fn a_field_of_another_type_costs_no_more_than_itself() {
    let (events, result) = run(&[
        line("init", &json!({"session_id": SESSION, "model": ["m"]})),
        line(
            "tool_use",
            &json!({"tool_name": "glob", "tool_id": 7, "parameters": "x"}),
        ),
        line(
            "tool_result",
            &json!({"tool_id": "glob", "status": 1, "output": {"a": 1}, "error": "e"}),
        ),
        line(
            "result",
            &json!({"status": "success", "stats": {"input_tokens": "many", "output_tokens": 3, "models": 5}}),
        ),
    ]);
    assert_types(&events, "session tool_use tool_result turn_end done");
    assert_eq!(result.usage.unwrap().output_tokens, Some(3));
    assert_eq!(result.usage.unwrap().input_tokens, None);
}

#[test]
fn a_session_is_reported_once_and_again_only_if_it_changes() {
    let other = line("init", &json!({"session_id": "other"}));
    let (events, result) = run(&[init(), init(), other, delta("x"), success()]);
    assert_types(&events, "session session text turn_end done");
    assert_eq!(result.session_id.as_deref(), Some("other"));
}
