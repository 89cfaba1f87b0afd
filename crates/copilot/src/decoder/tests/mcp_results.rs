//! Results of MCP tools: complete, without repetitions.

use serde_json::{Value, json};
use teamster_core::ToolResult;
use teamster_testkit::events::payloads;

use super::{call, line, result, run};

/// Returns the output of a call that ends with this data.
fn output(data: &Value) -> String {
    let mut data = data.clone();
    data["toolCallId"] = json!("1");
    let (events, _) = run(&[
        call("1", "tiny-env", &json!({})),
        line("tool.execution_complete", &data),
        result(0),
    ]);
    let found = payloads::<ToolResult>(&events)
        .map(|result| result.output.clone())
        .next();
    found.unwrap()
}

/// Returns the output of a successful call with this result.
fn of(result: &Value) -> String {
    output(&json!({"success": true, "result": result}))
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image() -> Value {
    json!({"type": "image", "data": "AAEC", "mimeType": "image/png"})
}

#[test]
fn an_image_hides_no_structured_part() {
    let both = json!({"content": "one\n\n{\"x\":1}", "contents": [text("one"), image()],
        "binaryResultsForLlm": [image()], "structuredContent": {"x": 1}});
    assert_eq!(of(&both), "one\n[image: image/png, 3 bytes]\n{\"x\":1}");
}

#[test]
fn texts_and_the_structured_part_are_one_below_the_other() {
    let two = json!({"content": "onetwo", "contents": [text("one"), text("two")]});
    assert_eq!(of(&two), "one\ntwo");
    let short = json!({"content": "short\n\n{\"x\":1}", "contents": [text("short")],
        "structuredContent": {"x": 1}});
    assert_eq!(of(&short), "short\n{\"x\":1}");
    let all = json!({"content": "onetwo\n\n{\"x\":1}", "contents": [text("one"), text("two")],
        "structuredContent": {"x": 1}});
    assert_eq!(of(&all), "one\ntwo\n{\"x\":1}");
    // The model gets it twice.
    let same = json!({"content": "{\"x\": 1}\n\n{\"x\":1}", "contents": [text("{\"x\": 1}")],
        "structuredContent": {"x": 1}});
    assert_eq!(of(&same), "{\"x\": 1}");
    for alone in [
        json!({"content": "{\"x\":1}", "contents": [], "structuredContent": {"x": 1}}),
        json!({"content": "", "contents": [text("")], "structuredContent": {"x": 1}}),
        json!({"structuredContent": {"x": 1}}),
    ] {
        assert_eq!(of(&alone), "{\"x\":1}", "{alone}");
    }
}

#[test]
fn text_that_only_the_model_got_is_shown_too() {
    let link = json!({"type": "resource_link", "uri": "f://r", "name": "r"});
    let more = json!({"content": "changed", "contents": [text("one"), link]});
    assert_eq!(of(&more), "changed\none\n[resource_link: f://r]");
    let around = json!({"content": "see one!", "contents": [text("one")]});
    assert_eq!(of(&around), "see one!");
}

#[test]
fn a_failed_call_repeats_nothing() {
    let failed = |message: &str, more: &Value| {
        let mut result = json!({"content": message, "contents": [text("bad"), text("worse")]});
        for (name, value) in more.as_object().unwrap() {
            result[name] = value.clone();
        }
        output(&json!({"success": false, "result": result,
            "error": {"message": message, "code": "failure"}}))
    };
    let joined = "MCP server 'tiny': badworse";
    assert_eq!(failed(joined, &json!({})), "bad\nworse");
    assert_eq!(
        failed(
            joined,
            &json!({"contents": [text("bad"), text("worse"), image()]})
        ),
        "bad\nworse\n[image: image/png, 3 bytes]"
    );
    let structured = json!({"structuredContent": {"why": 7}});
    assert_eq!(
        failed("MCP server 'tiny': badworse\n\n{\"why\":7}", &structured),
        "bad\nworse\n{\"why\":7}"
    );
    // An error with more text.
    assert_eq!(
        failed("it broke", &json!({"content": "badworse"})),
        "bad\nworse\nit broke"
    );
    let half = json!({"success": false, "result": {"content": "half"},
        "error": {"message": "half, then it broke"}});
    assert_eq!(output(&half), "half, then it broke");
}

#[test]
fn a_large_result_is_complete() {
    let preview = "Output too large to read at once (58.6 KB). Saved to: /tmp/x.txt\n\nPreview";
    let middle = "<output too long - dropped 9 characters from the middle>";
    let large = json!({"properties": {"largeOutputWrittenToFile": "true",
        "largeOutputToolSource": "mcp"}});
    let of = |more: &Value| {
        let mut result = json!({"content": preview, "detailedContent": format!("a{middle}b")});
        for (name, value) in more.as_object().unwrap() {
            result[name] = value.clone();
        }
        output(&json!({"success": true, "result": result, "toolTelemetry": large}))
    };
    assert_eq!(of(&json!({"contents": [text("the whole")]})), "the whole");
    assert_eq!(
        of(&json!({"contents": [text("one"), text("two")], "structuredContent": {"x": 1}})),
        "one\ntwo\n{\"x\":1}"
    );
    assert_eq!(
        of(&json!({"contents": [], "structuredContent": {"x": 1}})),
        "{\"x\":1}"
    );
    // Only the preview.
    assert_eq!(of(&json!({})), preview);
    let cut = format!("MCP server 'tiny': a{middle}b");
    let failed = json!({"success": false, "error": {"message": cut, "code": "failure"},
        "result": {"content": cut, "contents": [text("the whole")]}, "toolTelemetry": large});
    assert_eq!(output(&failed), "the whole");
}
