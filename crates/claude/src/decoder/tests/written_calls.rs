//! Calls in content blocks, with and without the `assistant` line that normally follows.

use serde_json::{Value, json};
use teamster_core::{AgentEvent, RunStatus, ToolKind, ToolUse};
use teamster_testkit::events::payloads;

use super::{block, complete, delta, end, init, run, start, stream};

/// The lines of a block with a call of `Bash`, whose input comes in these pieces.
fn written(index: u64, id: &str, pieces: &[&str]) -> Vec<String> {
    let mut lines = vec![stream(
        &json!({"type": "content_block_start", "index": index, "content_block":
        {"type": "tool_use", "id": id, "name": "Bash", "input": {}}}),
    )];
    lines.extend(pieces.iter().map(|piece| {
        stream(&json!({"type": "content_block_delta", "index": index,
            "delta": {"type": "input_json_delta", "partial_json": piece}}))
    }));
    lines
}

fn stop(index: u64) -> String {
    stream(&json!({"type": "content_block_stop", "index": index}))
}

fn whole(id: &str, input: &Value) -> String {
    complete(
        "m",
        &json!({"type": "tool_use", "id": id, "name": "Bash", "input": input}),
    )
}

/// Returns ids and inputs of the calls.
fn calls(events: &[AgentEvent]) -> Vec<(String, Value)> {
    let calls = payloads::<ToolUse>(events).map(|call| {
        assert_eq!((&*call.tool_name, call.kind), ("Bash", ToolKind::Execute));
        (call.tool_id.to_string(), call.input.clone())
    });
    calls.collect()
}

fn of(parts: &[&[String]]) -> Vec<String> {
    let mut lines = vec![init(), start("m")];
    lines.extend(parts.iter().flat_map(|part| part.iter().cloned()));
    lines
}

const PIECES: &[&str] = &["", r#"{"comm"#, r#"and":"echo ä"}"#];

#[test]
fn a_call_is_emitted_once_by_its_id_whichever_line_comes_first() {
    let input = json!({"command": "echo ä"});
    let block = written(0, "t1", PIECES);
    let (stop, whole) = ([stop(0)], [whole("t1", &input)]);
    for lines in [
        of(&[&block, &stop]),
        of(&[&block, &stop, &whole]),
        of(&[&block, &whole, &stop]),
        of(&[&whole, &block, &stop]),
        of(&[&whole]),
    ] {
        let (events, result) = run(&lines);
        assert_eq!(calls(&events), [("t1".to_owned(), input.clone())]);
        assert_eq!(result.open_tool_ids.len(), 1);
        assert_eq!(result.diagnostics.unknown, 0);
        assert_eq!(result.diagnostics.unfinished_calls, 0);
    }
}

#[test]
fn the_input_of_a_block_is_joined_and_else_is_its_text() {
    let odd = ["{\"command\":\"\u{1}"];
    for (pieces, expected) in [
        (&[][..], json!({})),
        (&[r#"{"a":"\"}"#, r#"x"}"#], json!({"a": "\"}x"})),
        (&[r#"{"a":1"#], json!(r#"{"a":1"#)),
        (&odd, json!("{\"command\":\"\u{1}")),
    ] {
        let (events, _) = run(&of(&[&written(0, "t1", pieces), &[stop(0)]]));
        assert_eq!(calls(&events), [("t1".to_owned(), expected)], "{pieces:?}");
    }
}

#[test]
fn surrogate_pair_between_two_input_pieces_is_joined() {
    let mut lines = of(&[&written(0, "t1", &[])]);
    for piece in [r#"{\"a\":\"\ud83d"#, r#"\ude00\"}"#] {
        lines.push(
            stream(&json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": "PIECE"}}))
            .replace("PIECE", piece),
        );
    }
    lines.push(stop(0));
    let (events, _) = run(&lines);
    assert_eq!(
        calls(&events),
        [("t1".to_owned(), json!({"a": "\u{1F600}"}))]
    );
}

#[test]
fn pieces_belong_to_the_block_of_their_index() {
    let lines = of(&[
        &[block(0, "text"), delta(0, "I look.")],
        &written(1, "t1", &[r#"{"a":"#]),
        &written(2, "t2", &[r#"{"b":2}"#]),
        &[stream(&json!({"type": "content_block_delta", "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": "1}"}}))],
        &[stop(0), stop(1), stop(2)],
    ]);
    let (events, _) = run(&lines);
    let expected = [("t1", json!({"a": 1})), ("t2", json!({"b": 2}))];
    assert_eq!(calls(&events), expected.map(|(id, it)| (id.to_owned(), it)));
}

#[test]
fn a_call_that_broke_off_is_emitted_if_its_turn_has_no_end() {
    let (events, result) = run(&of(&[&written(0, "t1", &[r#"{"command":"rm"#])]));
    assert_eq!(
        calls(&events),
        [("t1".to_owned(), json!(r#"{"command":"rm"#))]
    );
    assert_eq!(result.status, RunStatus::Incomplete);
    assert_eq!(result.open_tool_ids.len(), 1);
}

#[test]
fn a_call_that_the_cli_gave_up_is_counted() {
    let failed = json!({"is_error": true, "api_error_status": 529, "result": "Overloaded"});
    let failed = [end(&failed)];
    let broken = written(0, "t1", &[r#"{"command":"rm"#]);
    let (events, result) = run(&of(&[&broken, &failed]));
    assert_eq!(calls(&events), []);
    assert_eq!(result.diagnostics.unfinished_calls, 1);
    // Another message takes the place of the one that broke off.
    let again = [
        start("n"),
        complete("n", &super::text("Done.")),
        end(&json!({})),
    ];
    let (events, result) = run(&of(&[&broken, &again]));
    assert_eq!(calls(&events), []);
    assert_eq!(result.diagnostics.unfinished_calls, 1);
    assert_eq!(result.status, RunStatus::Completed);
    // A call that was whole is an event.
    let (events, result) = run(&of(&[&written(0, "t1", PIECES), &[stop(0)], &failed]));
    assert_eq!(calls(&events).len(), 1);
    assert_eq!(result.diagnostics.unfinished_calls, 0);
}
