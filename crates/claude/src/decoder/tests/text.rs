//! Text without duplicates, for each combination of its copies.

use proptest::prelude::*;
use serde_json::json;
use teamster_core::AgentEvent;

use super::super::fast::{self, FastDelta};
use super::super::wire::StreamLine;
use super::{
    SESSION, assert_types, block, complete, delta, end, init, names, run, start, stream, text,
};

#[test]
fn a_complete_block_adds_text_missing_in_its_deltas() {
    let (events, result) = run(&[
        init(),
        start("a"),
        block(0, "text"),
        delta(0, "one "),
        complete("a", &text("one two")),
        delta(0, "two"),
        end(&json!({"result": "one two"})),
    ]);
    assert_types(&events, "session text text turn_end done");
    assert_eq!(result.text, "one two");
}

#[test]
fn deltas_without_the_start_of_their_message_are_not_repeated() {
    let (events, result) = run(&[
        init(),
        block(0, "text"),
        delta(0, "one "),
        complete("a", &text("one two")),
        end(&json!({"result": "one two"})),
    ]);
    assert_types(&events, "session text text turn_end done");
    assert_eq!(result.text, "one two");
}

#[test]
fn messages_that_all_lack_their_start_are_told_apart() {
    let mut lines = vec![init()];
    for (id, answer) in [("a", "one "), ("b", "two "), ("c", "three ")] {
        lines.push(delta(0, answer));
        lines.push(complete(id, &text(&format!("{answer}more "))));
    }
    lines.push(end(&json!({})));
    let (events, _) = run(&lines);
    let printed: Vec<&str> = (events.iter())
        .filter_map(|event| match event {
            AgentEvent::Text(text) => Some(&*text.text),
            _ => None,
        })
        .collect();
    // Until its complete copy shows that the second message is another one, its delta may be a copy of the first.
    assert_eq!(printed, ["one ", "more ", "two more ", "three ", "more "]);
}

#[test]
fn a_complete_block_that_differs_from_its_deltas_wins() {
    let (events, result) = run(&[
        init(),
        start("a"),
        block(0, "text"),
        delta(0, "first "),
        complete("a", &text("first ")),
        block(1, "text"),
        delta(1, "wrong"),
        complete("a", &text("right")),
        end(&json!({})),
    ]);
    assert_types(&events, "session text text retract text text turn_end done");
    assert_eq!(result.text, "first right");
}

/// Returns a handwritten `tombstone`, based on the schema in the CLI's program.
fn tombstone(id: &str, block: &serde_json::Value) -> String {
    json!({"type": "tombstone", "session_id": SESSION, "uuid": "t", "message": {
        "type": "assistant", "uuid": "m",
        "message": {"id": id, "role": "assistant", "content": [block]},
    }})
    .to_string()
}

#[test]
fn a_message_that_is_removed_is_retracted() {
    let (events, result) = run(&[
        init(),
        start("a"),
        block(0, "text"),
        delta(0, "kept. "),
        complete("a", &text("kept. ")),
        block(1, "text"),
        delta(1, "removed"),
        complete("a", &text("removed")),
        tombstone("a", &text("removed")),
        // One for an unknown message, and one that is repeated.
        tombstone("x", &text("removed")),
        tombstone("a", &text("removed")),
        start("b"),
        block(0, "text"),
        delta(0, "new"),
        complete("b", &text("new")),
        end(&json!({})),
    ]);
    assert_types(&events, "session text text retract text text turn_end done");
    assert_eq!(result.text, "kept. new");
    assert_eq!(result.diagnostics.unknown, 0);
}

#[test]
fn a_message_removed_before_it_is_complete_is_retracted_once() {
    for superseded_first in [false, true] {
        let new = || [start("b"), block(0, "text"), delta(0, "new")];
        let removed = || [tombstone("a", &text("remov"))];
        let mut lines = vec![init(), start("a"), block(0, "text"), delta(0, "remov")];
        if superseded_first {
            lines.extend(new());
            lines.extend(removed());
        } else {
            lines.extend(removed());
            lines.extend(new());
        }
        lines.push(end(&json!({})));
        let (events, result) = run(&lines);
        let retracts = names(&events)
            .into_iter()
            .filter(|it| *it == "retract")
            .count();
        assert_eq!((&*result.text, retracts), ("new", 1), "{superseded_first}");
    }
}

#[test]
fn tombstone_of_results_or_of_unknown_shape_is_ignored() {
    let line = |message: serde_json::Value| {
        json!({"type": "tombstone", "session_id": SESSION, "uuid": "t", "message": message})
            .to_string()
    };
    let (events, result) = run(&[
        init(),
        complete("a", &text("x")),
        line(json!({"type": "user", "uuid": "u", "message": {"role": "user", "content": []}})),
        line(json!("gone")),
        line(json!(null)),
        end(&json!({})),
    ]);
    assert_types(&events, "session text turn_end done");
    assert_eq!((&*result.text, result.diagnostics.unknown), ("x", 0));
}

#[test]
fn streamed_and_complete_messages_mix() {
    let (_, result) = run(&[
        init(),
        complete("a", &text("whole. ")),
        start("b"),
        block(0, "text"),
        delta(0, "streamed. "),
        complete("b", &text("streamed. ")),
        stream(&json!({"type": "message_stop"})),
        complete("c", &text("again whole.")),
        complete("c", &text(" And more.")),
        end(&json!({"result": "again whole. And more."})),
    ]);
    assert_eq!(result.text, "whole. streamed. again whole. And more.");
    assert_eq!(
        result.final_message.as_deref(),
        Some("again whole. And more.")
    );
}

#[test]
fn a_block_of_white_space_has_no_complete_copy() {
    let (_, result) = run(&[
        init(),
        start("a"),
        block(0, "text"),
        delta(0, " "),
        block(1, "text"),
        delta(1, " hello"),
        complete("a", &text(" hello")),
        end(&json!({"result": " hello"})),
    ]);
    assert_eq!(result.text, "  hello");
}

#[test]
fn broken_message_is_retracted_by_its_replacement() {
    for next in [complete("b", &text("new")), start("b")] {
        let (events, _) = run(&[init(), start("a"), block(0, "text"), delta(0, "old"), next]);
        assert_types(&events[..3], "session text retract");
    }
    // The message stays, because one of its blocks is complete.
    let (events, result) = run(&[
        init(),
        start("a"),
        block(0, "text"),
        delta(0, "kept"),
        complete("a", &text("kept")),
        block(1, "text"),
        delta(1, " half"),
        start("b"),
    ]);
    assert!(!names(&events).contains(&"retract"));
    assert_eq!(result.text, "kept half");
}

#[test]
fn thinking_that_broke_off_is_retracted_too() {
    let thinking = json!({"type": "thinking_delta", "thinking": "hm"});
    let (events, _) = run(&[
        init(),
        start("a"),
        block(0, "thinking"),
        stream(&json!({"type": "content_block_delta", "index": 0, "delta": thinking})),
        complete("b", &json!({"type": "thinking", "thinking": "hm, again"})),
    ]);
    assert_types(&events[..4], "session thinking retract thinking");
}

#[test]
fn a_broken_message_of_a_failed_turn_is_kept() {
    let (events, result) = run(&[
        init(),
        start("a"),
        block(0, "text"),
        delta(0, "half "),
        end(&json!({"is_error": true, "result": "lost"})),
        start("b"),
        block(0, "text"),
        delta(0, "next"),
        end(&json!({})),
    ]);
    assert!(!names(&events).contains(&"retract"));
    assert_eq!(result.text, "half next");
}

#[test]
fn halves_of_a_surrogate_pair_meet() {
    let (events, result) = run(&[
        init(),
        start("a"),
        block(0, "text"),
        delta(0, r"hi \ud83d"),
        delta(0, r"\ude00 end"),
        complete("a", &text("hi \u{1F600} end")),
        end(&json!({"result": "hi \u{1F600} end"})),
    ]);
    assert_eq!(result.text, "hi \u{1F600} end");
    assert_eq!(result.diagnostics.malformed, 0);
    assert!(!names(&events).contains(&"retract"));
}

#[test]
fn a_lone_surrogate_costs_no_line() {
    let tool = r#"{"type":"assistant","message":{"id":"a","model":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"echo \ud83d"}}]},"parent_tool_use_id":null,"session_id":"x"}"#;
    let (events, result) = run(&[init(), tool.to_owned(), end(&json!({}))]);
    let Some(AgentEvent::ToolUse(tool)) =
        events.iter().find(|e| matches!(e, AgentEvent::ToolUse(_)))
    else {
        panic!("no tool use: {events:?}");
    };
    assert_eq!(tool.input["command"], "echo \u{FFFD}");
    assert_eq!(result.diagnostics.malformed, 0);
}

proptest! {
    /// Checks that the parser reads the same from each line that the fast path accepts.
    #[test]
    fn the_fast_path_reads_the_same_as_the_parser(
        text in ".{0,40}", index in 0u64..2_000_000_000, cut in 0usize..300, byte: u8,
        appended in 0..3usize,
    ) {
        let json_text = serde_json::to_string(&text).unwrap();
        let mut line = delta(index, &json_text[1..json_text.len() - 1]);
        let end = line.len() - 1;
        line.insert_str(end, ["", r#","api_message_id":"msg_mock_0_0""#,
            r#","thinking_display":"updates","api_message_id":"msg_mock_0_0""#][appended]);
        let mut changed = line.clone().into_bytes();
        let at = cut % changed.len();
        changed[at] = byte;
        for line in [line.as_bytes(), &changed] {
            let Some(FastDelta::Text(index, text)) = fast::delta(line, SESSION) else {
                continue;
            };
            let parsed: StreamLine<'_> = serde_json::from_slice(line).unwrap();
            prop_assert_eq!(parsed.event.index, index);
            let parsed_text = parsed.event.delta.unwrap().text.unwrap();
            prop_assert_eq!(&*parsed_text.0, text.as_bytes());
        }
    }
}
