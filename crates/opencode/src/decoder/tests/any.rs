//! Random lines: the decoder never panics, the stream keeps its grammar, and nothing is lost silently.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::super::OpenCodeDecoder;
use super::{bash, error, exit, finish, names, run, run_with, say, start, tool};

#[test]
fn types_that_are_not_known_are_kept() {
    let (events, result) = run(&[
        r#"{"type":"session_idle","sessionID":"ses_1"}"#.to_owned(),
        r#"{"type":"text","sessionID":"ses_1","part":{"id":"p","text":5}}"#.to_owned(),
        r#"{"type":"tool_use","sessionID":"ses_1","part":{"id":"p","tool":"bash"}}"#.to_owned(),
        r#"{"type":"step_start","sessionID":"ses_1"}"#.to_owned(),
        r#"{"type":"error","sessionID":"ses_1"}"#.to_owned(),
        r#"{"sessionID":"ses_1"}"#.to_owned(),
    ]);
    assert_eq!(result.diagnostics.unknown, 6);
    assert_eq!(names(&events[..6]), ["unknown"; 6]);
}

#[test]
fn a_field_of_another_type_does_not_lose_the_line() {
    let (_, result) = run(&[
        r#"{"type":"step_start","sessionID":7,"part":{"id":1,"messageID":["m"]}}"#.to_owned(),
        r#"{"type":"text","sessionID":"s","part":{"text":"kept","synthetic":"no","metadata":[],"time":1}}"#
            .to_owned(),
        r#"{"type":"tool_use","sessionID":"s","part":{"tool":"bash","callID":{},"state":{"status":1,"output":[],"metadata":"x","attachments":{},"time":0}}}"#
            .to_owned(),
        r#"{"type":"step_finish","sessionID":"s","part":{"reason":"stop","tokens":{"input":-1,"output":"x","cache":7},"cost":"much"}}"#
            .to_owned(),
    ]);
    assert_eq!(result.text, "kept");
    assert_eq!(result.stop_reason.as_deref(), Some("stop"));
    assert_eq!((result.usage, result.total_cost_usd), (None, None));
    assert_eq!(
        (result.diagnostics.unknown, result.diagnostics.malformed),
        (0, 0)
    );
}

#[test]
fn half_a_surrogate_pair_does_not_lose_the_line() {
    let text = say("m", "X").replace('X', r"\ud83d!");
    let (_, result) = run(&[start("m"), text, finish("m", "stop")]);
    assert_eq!(result.text, "\u{FFFD}!");
}

#[test]
fn separators_of_lines_within_a_text_are_text() {
    let (_, result) = run(&[
        start("m"),
        say("m", "a\u{2028}b\u{2029}c"),
        finish("m", "stop"),
    ]);
    assert_eq!(result.text, "a\u{2028}b\u{2029}c");
}

fn any_line() -> impl Strategy<Value = String> {
    let message = || select(vec!["a", "b"]);
    let complete = prop_oneof![
        message().prop_map(start),
        (message(), ".{0,8}").prop_map(|(m, text)| say(m, &text)),
        (message(), select(vec!["stop", "tool-calls", "length", "x"]))
            .prop_map(|(m, reason)| finish(m, reason)),
        (message(), select(vec!["t1", "t2", ""])).prop_map(|(m, id)| bash(m, id)),
        (message(), ".{0,20}").prop_map(|(m, text)| {
            let state = json!({"status": "error", "error": text, "input": {"tool": text}});
            tool(m, "invalid", &text, &state)
        }),
        ".{0,20}".prop_map(|text| error("ContextOverflowError", &json!({"message": text}))),
        ".{0,30}",
    ];
    (complete, any::<prop::sample::Index>(), any::<u8>(), 0..3_u8).prop_map(
        |(line, at, byte, how)| {
            let mut bytes = line.into_bytes();
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                match how {
                    0 => bytes.truncate(at),
                    1 => bytes[at] = byte,
                    _ => {}
                }
            }
            String::from_utf8_lossy(&bytes).into_owned()
        },
    )
}

proptest! {
    #[test]
    fn any_lines_are_a_stream(lines in vec(any_line(), 0..30), code in 0..2) {
        // `run_with` checks the grammar.
        let (_, result) = run_with(OpenCodeDecoder::new(), &lines, exit(code));
        let not_blank = lines.iter().filter(|line| {
            line.bytes().any(|b| !b.is_ascii_whitespace())
        });
        prop_assert_eq!(result.diagnostics.lines, not_blank.count() as u64);
    }
}
