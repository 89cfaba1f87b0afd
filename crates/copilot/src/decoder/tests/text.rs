//! Text and reasoning are emitted once.

use serde_json::{Value, json};
use teamster_core::{AgentEvent, RunStatus, ToolResult};
use teamster_testkit::events::payloads;

use super::{assert_types, call, delta, line, message, names, of_agent, result, run, texts, turn};

#[test]
fn a_full_text_adds_text_missing_in_its_deltas() {
    let (events, done) = run(&[delta("a", "Hel"), message("a", "Hello"), result(0)]);
    assert_eq!(texts(&events)[1].0, "lo");
    assert_eq!(done.text, "Hello");
}

#[test]
fn a_full_text_without_an_id_is_that_of_its_deltas() {
    for (of_delta, of_message) in [("a", ""), ("", "a")] {
        let lines = [
            delta(of_delta, "Hel"),
            message(of_message, "Hello"),
            result(0),
        ];
        let (_, done) = run(&lines);
        assert_eq!(done.text, "Hello", "{of_delta:?} {of_message:?}");
        assert_eq!(done.status, RunStatus::Completed);
    }
}

#[test]
fn a_full_text_replaces_different_deltas() {
    let (events, done) = run(&[delta("a", "Hi"), message("a", "Hello"), result(0)]);
    assert_types(&events[..3], "text retract text");
    assert_eq!(done.text, "Hello");
}

#[test]
fn white_space_around_a_text_is_no_difference() {
    let (events, done) = run(&[delta("a", "Hi "), message("a", "Hi"), result(0)]);
    assert_types(&events[..2], "text session");
    assert_eq!(done.text, "Hi ");
}

#[test]
fn delta_after_its_full_text_and_a_second_full_text_are_copies() {
    let (_, done) = run(&[
        delta("a", "Hi"),
        message("a", "Hi"),
        delta("a", "Hi"),
        message("a", "Hi"),
        result(0),
    ]);
    assert_eq!(done.text, "Hi");
}

#[test]
fn request_after_a_failed_one_is_a_retry_without_its_line() {
    let start = || line("model.call_start", &json!({}));
    let (events, done) = run(&[
        start(),
        delta("a", "Half an answer that"),
        line("model.call_finished", &json!({"outcome": "error"})),
        start(),
        delta("b", "A whole answer."),
        line("model.call_finished", &json!({"outcome": "success"})),
        message("b", "A whole answer."),
        line("model.call_finished", &json!({"outcome": "success"})),
        start(),
        result(0),
    ]);
    assert_types(&events[..5], "text retract retry text session");
    assert_eq!(done.status, RunStatus::Completed);
    assert_eq!(done.text, "A whole answer.");
}

#[test]
fn next_message_may_have_the_id_of_a_retracted_one() {
    let (events, done) = run(&[
        delta("a", "Half an answer that"),
        line("model.turn_retry", &json!({"reason": "streaming_error"})),
        delta("a", "A whole "),
        delta("a", "answer."),
        message("a", "A whole answer."),
        result(0),
    ]);
    assert_types(&events[..5], "text retract retry text text");
    assert_eq!(done.text, "A whole answer.");
}

#[test]
fn cut_off_message_before_a_tool_call_is_not_in_the_answer() {
    let asks = line(
        "assistant.message",
        &json!({"messageId": "b", "content": "go on", "toolRequests": [{"toolCallId": "1"}]}),
    );
    let (_, done) = run(&[
        delta("a", "Cut "),
        line("model.call_finished", &json!({"outcome": "success"})),
        turn("assistant.turn_end"),
        asks,
        call("1", "bash", &json!({})),
        message("c", "Done."),
        result(0),
    ]);
    assert_eq!(done.final_message.as_deref(), Some("Done."));
    assert_eq!(done.text, "Cut go onDone.");
}

#[test]
fn reasoning_comes_three_times_and_is_emitted_once() {
    let complete = |text: &str| {
        line(
            "assistant.message",
            &json!({"messageId": "a", "content": "It looked.", "reasoningText": text}),
        )
    };
    let reasoning = |text: &str| json!({"reasoningId": "r", "content": text});
    let (events, _) = run(&[
        line(
            "assistant.reasoning_delta",
            &json!({"reasoningId": "r", "deltaContent": "Now I "}),
        ),
        line(
            "assistant.reasoning_delta",
            &json!({"reasoningId": "r", "deltaContent": "know. "}),
        ),
        // Trimmed like the CLI's.
        complete("Now I know."),
        line("assistant.reasoning", &reasoning("Now I know.")),
        result(0),
    ]);
    assert_types(&events[..3], "thinking thinking text");
    assert_eq!(texts(&events).len(), 3);
    // The same without deltas.
    let (events, _) = run(&[
        complete("Now I know."),
        line("assistant.reasoning", &reasoning("Now I know.")),
        result(0),
    ]);
    assert_types(&events[..2], "thinking text");
    assert_eq!(texts(&events).len(), 2);
    // The same if only the last of the three comes.
    let (events, _) = run(&[
        message("a", "x"),
        line("assistant.reasoning", &reasoning("Now I know.")),
    ]);
    assert_types(&events[..2], "text thinking");
}

#[test]
fn reasoning_of_a_failed_attempt_is_retracted_and_may_return() {
    let piece = |id: &str| {
        line(
            "assistant.reasoning_delta",
            &json!({"reasoningId": id, "deltaContent": "Hm."}),
        )
    };
    let (events, _) = run(&[
        turn("model.call_start"),
        piece("r1"),
        line("assistant.turn_retry", &json!({})),
        turn("model.call_start"),
        piece("r2"),
        result(0),
    ]);
    assert_types(&events[..4], "thinking retract retry thinking");
}

#[test]
fn surrogate_pair_between_two_deltas_is_joined() {
    let half = |escape: &str| delta("a", "X").replace("\"X\"", &format!("\"{escape}\""));
    let (events, done) = run(&[
        half(r"a\ud83d"),
        half(r"\ude00b"),
        message("a", "a\u{1F600}b"),
        result(0),
    ]);
    assert_eq!(done.text, "a\u{1F600}b");
    assert!(!names(&events).contains(&"retract"), "{events:?}");
}

#[test]
fn half_a_pair_loses_no_line() {
    let lone = message("a", "X").replace("\"X\"", r#""see \ud83d!""#);
    let tool = called_with_half();
    let (events, done) = run(&[lone, call("1", "bash", &json!({})), tool, result(0)]);
    assert_eq!(done.text, "see \u{FFFD}!");
    let outputs = payloads::<ToolResult>(&events).map(|r| r.output.as_str());
    assert_eq!(outputs.collect::<Vec<_>>(), ["out \u{FFFD}"]);
    assert_eq!(done.diagnostics.unknown, 0);
}

fn called_with_half() -> String {
    super::called("1", "X").replace("\"X\"", r#""out \udc00""#)
}

#[test]
fn a_line_separator_in_a_text_is_text() {
    let (_, done) = run(&[message("a", "one\u{2028}two"), result(0)]);
    assert_eq!(done.text, "one\u{2028}two");
}

#[test]
fn agent_without_its_beginning_is_not_the_main_agent() {
    let piece = json!({"messageId": "i", "deltaContent": "inner"});
    let named = json!({"messageId": "j", "deltaContent": "deeper", "parentToolCallId": "t"});
    let (events, done) = run(&[
        of_agent("A", "assistant.message_delta", &piece),
        of_agent("B", "assistant.message_delta", &named),
        line("assistant.message_delta", &named),
        result(0),
    ]);
    let parents: Vec<_> = texts(&events)
        .into_iter()
        .map(|(_, parent)| parent)
        .collect();
    assert_eq!(
        parents,
        [Some("A".into()), Some("t".into()), Some("t".into())]
    );
    assert_eq!(done.text, "");
}

#[test]
fn messages_without_an_id_are_messages_of_their_own() {
    let complete = |text: &str| line("assistant.message", &json!({"content": text}));
    let piece = line("assistant.message_delta", &json!({"deltaContent": "Thr"}));
    let (events, done) = run(&[
        complete("One."),
        complete("Two."),
        piece,
        complete("Three."),
        result(0),
    ]);
    assert_eq!(done.text, "One.Two.Three.");
    let AgentEvent::Text(text) = &events[0] else {
        panic!("{events:?}")
    };
    assert_eq!(text.message_id, None);
}

#[test]
fn an_odd_field_does_not_lose_a_message() {
    let odd = line(
        "assistant.message",
        &json!({"messageId": 7, "model": null, "content": "Hi", "toolRequests": "none",
                "reasoningText": {"x": [1]}}),
    );
    let (_, done) = run(&[odd, result(0)]);
    assert_eq!(done.text, "Hi");
    assert_eq!(done.diagnostics.unknown, 0);
    let (_, done) = run(&[line("assistant.message", &Value::Null), result(0)]);
    assert_eq!((done.text.as_str(), done.diagnostics.unknown), ("", 0));
}
