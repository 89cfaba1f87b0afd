//! Shapes that were not seen, possibly of other versions: their data must not be lost.

use serde_json::{Value, json};
use teamster_core::{ErrorKind, RunStatus, ToolResult};

use super::tools::results;
use super::{assert_types, call, delta, error, init, line, returned, run, success};

/// Decodes one tool's result.
fn tool_result(fields: &Value) -> ToolResult {
    let (events, result) = run(&[
        init(),
        call("a", "glob", &json!({})),
        returned("a", fields),
        success(),
    ]);
    assert_eq!(result.diagnostics.unknown, 0);
    results(&events)[0].clone()
}

#[test]
fn an_error_may_be_a_text() {
    let failed = line(
        "result",
        &json!({"status": "error", "error": "[API Error: fetch failed]"}),
    );
    let (_, result) = run(&[init(), failed]);
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(error(&result).message, "fetch failed");
    assert_eq!(error(&result).kind, ErrorKind::Network);

    let failed = tool_result(&json!({"status": "error", "error": "it is not there"}));
    assert_eq!(
        (failed.is_error, &*failed.output),
        (Some(true), "it is not there")
    );
    let odd = tool_result(&json!({"status": "success", "error": "but"}));
    assert_eq!((odd.is_error, &*odd.output), (Some(true), "but"));
    for none in [json!(null), json!(""), json!(false), json!(7)] {
        let fine = tool_result(&json!({"status": "success", "output": "x", "error": none}));
        assert_eq!((fine.is_error, &*fine.output), (Some(false), "x"), "{none}");
    }
}

#[test]
fn output_that_is_no_text_is_its_json() {
    for (output, expected) in [
        (json!({"files": ["a"]}), r#"{"files":["a"]}"#),
        (json!([1, "b"]), r#"[1,"b"]"#),
        (json!(7), "7"),
        (json!(null), ""),
        (json!("te\nxt"), "te\nxt"),
    ] {
        let got = tool_result(&json!({"status": "success", "output": output}));
        assert_eq!((got.is_error, &*got.output), (Some(false), expected));
    }
}

#[test]
fn a_result_without_an_id_is_of_the_only_call_that_is_open() {
    let call = |name: &str| line("tool_use", &json!({"tool_name": name, "parameters": {}}));
    let bare = line(
        "tool_result",
        &json!({"status": "success", "output": "out"}),
    );
    let (events, result) = run(&[init(), call("glob"), bare.clone(), success()]);
    assert_types(&events, "session tool_use tool_result turn_end done");
    assert_eq!(
        (&*results(&events)[0].tool_id, &*results(&events)[0].output),
        ("glob", "out")
    );
    assert!(result.open_tool_ids.is_empty());
    // With two open calls the tool is ambiguous; with none it is missing.
    for before in [vec![], vec![call("glob"), call("read_file")]] {
        let open = before.len();
        let mut lines = vec![init()];
        lines.extend(before);
        lines.extend([bare.clone(), success()]);
        let (_, result) = run(&lines);
        assert_eq!(result.diagnostics.unknown, 1);
        assert_eq!(result.open_tool_ids.len(), open);
    }
}

fn complete(text: &str) -> String {
    line(
        "message",
        &json!({"role": "assistant", "content": text, "delta": false}),
    )
}

#[test]
fn a_complete_message_after_its_deltas_is_not_repeated() {
    let (_, result) = run(&[
        init(),
        delta("Hello "),
        delta("world"),
        complete("Hello world"),
        success(),
    ]);
    assert_eq!(result.text, "Hello world");
    assert_eq!(result.diagnostics.unknown, 0);
}

#[test]
fn a_complete_message_that_differs_is_text() {
    // Equal deltas are not repetitions.
    let (_, result) = run(&[init(), delta("ha"), delta("ha"), success()]);
    assert_eq!(result.text, "haha");
    // Neither are equal complete messages.
    let (_, result) = run(&[init(), complete("ha"), complete("ha"), success()]);
    assert_eq!(result.text, "haha");
    let (_, result) = run(&[init(), delta("a"), complete("b"), complete("a"), success()]);
    assert_eq!(result.text, "aba");
    // In another turn it is another message.
    let (_, result) = run(&[
        init(),
        delta("ok"),
        call("a", "glob", &json!({})),
        returned("a", &json!({"status": "success"})),
        complete("ok"),
        success(),
    ]);
    assert_eq!(result.text, "okok");
}
