//! Odd lines: nothing of them is lost silently.

use super::{finish, names, run, say, start};

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
