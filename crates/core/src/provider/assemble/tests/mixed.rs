//! Lines into which another program wrote.

use super::*;

fn shown(events: &[AgentEvent]) -> Vec<String> {
    let shown = events.iter().map(|event| match event {
        AgentEvent::Notice(e) => format!("{:?}: {}", e.level, e.message),
        AgentEvent::Text(e) => format!("text {}", e.text),
        AgentEvent::Unknown(_) => "unknown".to_owned(),
        AgentEvent::TurnEnd(_) => "turn_end".to_owned(),
        AgentEvent::Error(_) => "error".to_owned(),
        AgentEvent::Done(_) => "done".to_owned(),
        event => format!("{event:?}"),
    });
    shown.collect()
}

#[test]
fn a_line_with_other_text_keeps_its_events() {
    let (events, result) = run(
        &[
            "\u{1b}[2K{\"t\":\"a\"}",
            "checked {x} {\"t\":\"b\"}{\"t\":\"c\"}\u{1b}]0;d\u{7}",
            "{\"ok\":true} {\"t\":\"d\"} \u{1b}[32m\u{2714} hook\u{1b}[0m",
            "{\"t\":\"e\"}{\"type\":\"new\"}",
            "10%\r100%\r{\"t\":\"f\"}\0",
            "{\"end\":false}bye",
        ],
        exit(0, ""),
    );
    assert_eq!(
        shown(&events),
        [
            "text a",
            "Info: checked {x}",
            "text b",
            "text c",
            "Info: {\"ok\":true}",
            "text d",
            "Info: \u{2714} hook",
            "text e",
            "unknown",
            "Info: 10% 100%",
            "text f",
            "turn_end",
            "Info: bye",
            "done"
        ]
    );
    assert_eq!(result.status, RunStatus::Completed);
    assert_eq!(result.text, "abcdef");
    assert_eq!(
        result.diagnostics,
        Diagnostics::default().lines(6).malformed(4).unknown(1)
    );
}

#[test]
fn a_line_with_other_text_within_a_string_is_lost() {
    let (events, result) = run(
        &[
            "{\"t\":\"a\u{1b}[2Kb\"}",
            "{\"t\":\"c \"hook\" d\"}",
            "{\"end\":false,\"list\":[{\"end\":false},{\"t\":\"e\"",
        ],
        exit(0, ""),
    );
    assert_eq!(
        shown(&events),
        [
            "Warning: not a JSON event: {\"t\":\"ab\"}",
            "Warning: not a JSON event: {\"t\":\"c \"hook\" d\"}",
            "Warning: not a JSON event: {\"end\":false,\"list\":[{\"end\":false},{\"t\":\"e\"",
            "error",
            "done"
        ]
    );
    assert_eq!(codes(&result), [ErrorCode::StreamEndedEarly]);
    assert_eq!(
        result.diagnostics,
        Diagnostics::default().lines(3).malformed(3)
    );
}

#[test]
fn a_cut_event_after_a_whole_one_is_malformed() {
    let (events, result) = run(
        &["hook {\"t\":\"a\"} then {\"t\":\"b", "{\"end\":false}"],
        exit(0, ""),
    );
    assert_eq!(
        shown(&events),
        [
            "Info: hook",
            "text a",
            "Info: then",
            "Warning: not a JSON event: {\"t\":\"b",
            "turn_end",
            "done"
        ]
    );
    assert_eq!(result.text, "a");
}

#[test]
fn native_lines_are_those_of_each_object() {
    let mut assembler = RunAssembler::new(Box::new(Scripted::default())).include_native(true);
    let mut out = Events::new();
    assembler.line(br#"hook {"t":"a"}{"t":"b"}"#, &mut out);
    let natives: Vec<_> = out
        .drain_entries(0)
        .map(|entry| entry.native.map(|native| native.get().to_owned()))
        .collect();
    assert_eq!(
        natives,
        [
            None,
            Some(r#"{"t":"a"}"#.into()),
            Some(r#"{"t":"b"}"#.into())
        ]
    );
}
