//! Lines that are printed twice.

use serde_json::json;
use teamster_core::ToolUse;
use teamster_testkit::events::payloads;

use super::{call, called, delta, line, message, names, result, run, texts};

#[test]
fn a_line_that_is_printed_again_is_taken_once() {
    let started = call("t", "bash", &json!({"command": "x"}));
    let ended = called("t", "out");
    let piece = delta("a", "text");
    let complete = message("a", "text");
    let unknown = line("something.new", &json!({}));
    let lines = [
        piece.clone(),
        piece,
        complete.clone(),
        complete.clone(),
        started.clone(),
        started,
        ended.clone(),
        ended,
        message("b", "1"),
        message("c", "2"),
        message("d", "3"),
        message("e", "4"),
        message("f", "5"),
        complete,
        unknown,
        result(0),
    ];
    let (events, done) = run(&lines);
    assert_eq!(done.text, "text12345");
    let calls = names(&events).into_iter().filter(|n| n.starts_with("tool"));
    assert_eq!(calls.collect::<Vec<_>>(), ["tool_use", "tool_result"]);
    assert_eq!(done.diagnostics.unknown, 1);
}

#[test]
fn equal_lines_with_ids_of_their_own_are_no_repeats() {
    let (events, done) = run(&[
        delta("a", "ha"),
        delta("a", "ha"),
        message("a", "haha"),
        call("t", "bash", &json!({})),
        called("t", "1"),
        call("t", "bash", &json!({})),
        called("t", "2"),
        result(0),
    ]);
    assert_eq!(done.text, "haha");
    let ids = payloads::<ToolUse>(&events).map(|e| e.tool_id.to_string());
    assert_eq!(ids.collect::<Vec<_>>(), ["t", "t#2"]);
    // Without an id lines cannot be distinguished.
    let bare = r#"{"type":"assistant.message_delta","data":{"messageId":"a","deltaContent":"x"}}"#;
    let (_, done) = run(&[bare.to_owned(), bare.to_owned(), result(0)]);
    assert_eq!(done.text, "xx");
}

#[test]
fn a_sub_agent_known_by_its_call_alone_has_its_text_once() {
    let inner = |kind: &str, mut data: serde_json::Value| {
        data["messageId"] = json!("s");
        data["parentToolCallId"] = json!("k");
        line(kind, &data)
    };
    let (events, done) = run(&[
        call("k", "task", &json!({})),
        inner("assistant.message", json!({"content": "first"})),
        called("k", "d"),
        // The same id for another call.
        call("k", "task", &json!({})),
        inner("assistant.message_delta", json!({"deltaContent": "inner"})),
        inner("assistant.message", json!({"content": "inner"})),
        called("k", "d"),
        result(0),
    ]);
    let of = |text: &str, call: &str| (text.to_owned(), Some(call.to_owned()));
    assert_eq!(texts(&events), [of("first", "k"), of("inner", "k#2")]);
    assert_eq!(done.text, "");
}
