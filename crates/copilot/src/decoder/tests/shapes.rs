//! Fields with other types than the measured ones: their data is not lost.

use serde_json::{Value, json};
use teamster_core::AgentEvent;

use super::{assert_types, call, delta, line, result, run};

fn text_and_unknown(content: &Value) -> (String, u64) {
    let message = line(
        "assistant.message",
        &json!({"messageId": "a", "content": content}),
    );
    let (_, done) = run(&[message, result(0)]);
    (done.text, done.diagnostics.unknown)
}

#[test]
fn a_message_may_be_blocks_of_text() {
    let blocks = json!([{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]);
    assert_eq!(text_and_unknown(&blocks), ("one two".into(), 0));
    assert_eq!(text_and_unknown(&json!([])), (String::new(), 0));
    assert_eq!(text_and_unknown(&Value::Null), (String::new(), 0));
}

#[test]
fn a_message_that_cannot_be_read_is_shown_as_it_is() {
    for odd in [json!({"text": "x"}), json!(5), json!([{"type": "image"}])] {
        assert_eq!(text_and_unknown(&odd), (String::new(), 1), "{odd}");
    }
    // Earlier text stays.
    let message = line(
        "assistant.message",
        &json!({"messageId": "a", "content": {"x": 1}}),
    );
    let (events, done) = run(&[delta("a", "text"), message, result(0)]);
    assert_types(&events, "text unknown session turn_end done");
    assert_eq!(done.text, "text");
}

/// Returns the output of a call, and whether it is an error.
fn outcome(data: &Value) -> (String, Option<bool>) {
    let mut data = data.clone();
    data["toolCallId"] = json!("t");
    let (events, _) = run(&[
        call("t", "bash", &json!({})),
        line("tool.execution_complete", &data),
        result(0),
    ]);
    match &events[1] {
        AgentEvent::ToolResult(e) => (e.output.clone(), e.is_error),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_result_may_be_a_text_or_blocks() {
    let of = |result: Value| outcome(&json!({"success": true, "result": result})).0;
    let block = json!([{"type": "text", "text": "block"}]);
    assert_eq!(of(json!("text")), "text");
    assert_eq!(of(block.clone()), "block");
    assert_eq!(of(json!({"content": block})), "block");
    assert_eq!(of(json!({"contents": block})), "block");
    assert_eq!(of(json!({"content": 5})), "5");
    assert_eq!(of(json!({"new": "x"})), r#"{"new":"x"}"#);
    assert_eq!(of(json!(7)), "7");
    for nothing in [json!({}), json!(""), json!({"content": ""}), Value::Null] {
        assert_eq!(of(nothing), "");
    }
}

#[test]
fn error_may_be_a_text_without_the_success_field() {
    let broke = || ("it broke".to_owned(), Some(true));
    assert_eq!(
        outcome(&json!({"success": false, "error": "it broke"})),
        broke()
    );
    assert_eq!(outcome(&json!({"error": "it broke"})), broke());
    assert_eq!(
        outcome(&json!({"error": {"message": "it broke"}, "success": null})),
        broke()
    );
    assert_eq!(outcome(&json!({"error": {}})), (String::new(), Some(true)));
    for none in [Value::Null, json!(""), json!(false)] {
        let data = json!({"error": none, "result": {"content": "x"}});
        assert_eq!(outcome(&data), ("x".to_owned(), Some(false)));
    }
}

#[test]
fn an_input_that_is_nested_too_deeply_is_kept_as_text() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let started = format!(
        r#"{{"type":"tool.execution_start","data":{{"toolCallId":"t","toolName":"bash","arguments":{{"a":{deep}}}}}}}"#
    );
    let (events, _) = run(&[started, result(0)]);
    let AgentEvent::ToolUse(used) = &events[0] else {
        panic!("{events:?}")
    };
    assert_eq!(used.input, json!(format!(r#"{{"a":{deep}}}"#)));
}
