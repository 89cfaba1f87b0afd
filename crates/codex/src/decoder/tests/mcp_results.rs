//! Results of MCP tools.

use serde_json::{Value, json};
use teamster_core::ToolResult;
use teamster_testkit::events::payloads;

use super::{item, turn_of};

/// Returns the output of a call that ends with these fields, and whether it is an error.
fn ends_with(fields: &Value) -> (String, Option<bool>) {
    let mut call = json!({"id": "item_0", "type": "mcp_tool_call", "server": "tiny",
        "tool": "echo", "arguments": {}, "result": null, "error": null, "status": "completed"});
    for (name, value) in fields.as_object().unwrap() {
        call[name] = value.clone();
    }
    let (events, _) = turn_of(&[item("completed", &call)]);
    let found = payloads::<ToolResult>(&events)
        .map(|result| (result.output.clone(), result.is_error))
        .next();
    found.unwrap()
}

/// Returns the output of a call with these texts and this structured part.
fn of(texts: &[&str], structured: &Value) -> String {
    let block = |text: &&str| json!({"type": "text", "text": text});
    let content: Vec<Value> = texts.iter().map(block).collect();
    ends_with(&json!({"result": {"content": content, "structured_content": structured}})).0
}

#[test]
fn the_structured_part_is_shown_beside_the_texts() {
    let x = json!({"x": 1});
    assert_eq!(of(&["short"], &x), "short\n{\"x\":1}");
    assert_eq!(of(&["a", "b"], &x), "a\nb\n{\"x\":1}");
    assert_eq!(of(&[""], &x), "{\"x\":1}");
    assert_eq!(of(&[], &x), "{\"x\":1}");
    assert_eq!(of(&["a"], &Value::Null), "a");
    let plain = json!({"result": {"content": "plain", "structured_content": x}});
    assert_eq!(ends_with(&plain).0, "plain\n{\"x\":1}");
    let image = json!({"type": "image", "data": "AAEC", "mimeType": "image/png"});
    let media = json!({"result": {"content": [image], "structured_content": x}});
    assert_eq!(
        ends_with(&media).0,
        "[image: image/png, 3 bytes]\n{\"x\":1}"
    );
}

#[test]
fn a_structured_part_equal_to_a_text_is_shown_once() {
    let x = json!({"x": 1, "y": [2]});
    let spelled = "{ \"y\": [2],\n\"x\": 1 }";
    assert_eq!(of(&[spelled], &x), spelled);
    assert_eq!(of(&["see", spelled], &x), format!("see\n{spelled}"));
    assert_eq!(of(&["{\"x\":1}"], &x), "{\"x\":1}\n{\"x\":1,\"y\":[2]}");
    assert_eq!(of(&["plain"], &json!("plain")), "plain");
    let plain = json!({"result": {"content": spelled, "structured_content": x}});
    assert_eq!(ends_with(&plain).0, spelled);
}

#[test]
fn a_failed_call_has_its_structured_part_too() {
    let result = json!({"content": [{"type": "text", "text": "boom"}],
        "structured_content": {"why": 1}});
    let shown = ("boom\n{\"why\":1}".to_owned(), Some(true));
    assert_eq!(
        ends_with(&json!({"result": result, "status": "failed"})),
        shown
    );
    let mut flagged = result;
    flagged["is_error"] = json!(true);
    assert_eq!(ends_with(&json!({"result": flagged})), shown);
}

#[test]
fn an_error_beside_a_result_is_shown_with_it_and_nothing_twice() {
    let shown = |message: &str| {
        let content = json!([{"type": "text", "text": "boom"}]);
        let call = json!({"result": {"content": content}, "error": {"message": message},
            "status": "failed"});
        let (output, is_error) = ends_with(&call);
        assert_eq!(is_error, Some(true), "{message}");
        output
    };
    assert_eq!(shown("wrapped"), "boom\nwrapped");
    assert_eq!(shown("boom"), "boom");
    assert_eq!(shown("tool call error: boom"), "tool call error: boom");
    assert_eq!(shown(""), "boom");
}
