//! Text that the CLI repeats is emitted once.

use serde_json::json;
use teamster_core::{AgentEvent, Text};
use teamster_testkit::events::payloads;

use super::*;

#[test]
fn an_empty_message_is_no_text() {
    let (events, result) = turn_of(&[message(0, "")]);
    assert_types(&events, "session turn_end done");
    assert_eq!(result.text, "");
}

#[test]
fn a_message_before_the_rest_of_an_answer_is_kept() {
    // The CLI keeps it in the conversation, so the model need not repeat it.
    let (_, result) = turn_of(&[
        message(0, "Part one. "),
        reconnect(1),
        message(1, "Part two."),
    ]);
    assert_eq!(result.text, "Part one. Part two.");
}

#[test]
fn repeated_longer_message_replaces_the_shorter() {
    let (events, result) = turn_of(&[
        message(0, "partial "),
        reconnect(1),
        message(1, "partial no more"),
    ]);
    assert_types(&events, "session text retry retract text turn_end done");
    assert_eq!(result.text, "partial no more");
}

#[test]
fn without_a_reconnect_the_model_may_say_the_same_twice() {
    let (_, result) = turn_of(&[message(0, "Step done."), message(1, "Step done.")]);
    assert_eq!(result.text, "Step done.Step done.");
}

#[test]
fn text_before_a_tool_call_is_not_repeated_after_it() {
    let (_, result) = turn_of(&[
        message(0, "Next step."),
        command(1, "started", "in_progress", None),
        command(1, "completed", "completed", Some(0)),
        reconnect(1),
        message(2, "Next step."),
    ]);
    assert_eq!(result.text, "Next step.Next step.");
}

#[test]
fn a_repeated_message_is_matched_once_for_each_original() {
    let (_, result) = turn_of(&[
        message(0, "Ha!"),
        reconnect(1),
        message(1, "Ha!"),
        message(2, "Ha!"),
    ]);
    assert_eq!(result.text, "Ha!Ha!");
}

#[test]
fn the_fallback_to_another_transport_repeats_messages_too() {
    let (events, result) = turn_of(&[
        message(0, "Message A."),
        item(
            "completed",
            &json!({"id": "item_1", "type": "error",
                    "message": "Falling back from WebSockets to HTTPS transport. x"}),
        ),
        message(2, "Message A."),
    ]);
    assert_types(&events, "session text notice turn_end done");
    assert_eq!(result.text, "Message A.");
}

#[test]
fn reasoning_is_thinking_and_is_emitted_once_too() {
    let reasoning = |id: u32| {
        item(
            "completed",
            &json!({"id": format!("item_{id}"), "type": "reasoning", "text": "**Hm**\nso"}),
        )
    };
    let (events, result) = turn_of(&[reasoning(0), reconnect(1), reasoning(1), message(2, "42")]);
    assert_types(&events, "session thinking retry text turn_end done");
    let AgentEvent::Thinking(thinking) = &events[1] else {
        panic!("{events:?}")
    };
    assert_eq!(thinking.text, "**Hm**\nso");
    assert_eq!(result.text, "42");
}

#[test]
fn text_in_pieces_is_emitted_once() {
    let part = |stage: &str, text: &str| {
        item(
            stage,
            &json!({"id": "item_0", "type": "agent_message", "text": text}),
        )
    };
    let (events, result) = turn_of(&[
        part("started", ""),
        part("updated", "Hel"),
        part("updated", "Hello"),
        part("completed", "Hello!"),
    ]);
    let texts: Vec<_> = payloads::<Text>(&events)
        .map(|text| text.text.as_str())
        .collect();
    assert_eq!(texts, ["Hel", "lo", "!"]);
    assert_eq!(result.text, "Hello!");

    // A half-written message is dropped when the model is asked again.
    let (_, result) = turn_of(&[part("updated", "Hel"), reconnect(1), message(1, "Bye!")]);
    assert_eq!(result.text, "Bye!");
}

#[test]
fn an_id_that_comes_again_is_another_message() {
    let (events, result) = turn_of(&[message(0, "a"), message(0, "b")]);
    let ids: Vec<_> = payloads::<Text>(&events)
        .filter_map(|text| text.message_id.as_deref())
        .collect();
    assert_eq!(ids, ["item_0", "item_0#2"]);
    assert_eq!(result.text, "ab");
}

#[test]
fn half_of_a_surrogate_pair_loses_no_text() {
    let line = r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"a\ud83d!"}}"#;
    let (_, result) = turn_of(&[line.to_owned()]);
    assert_eq!(result.text, "a\u{FFFD}!");
}

#[test]
fn a_command_in_the_background_that_ends_does_not_end_an_answer() {
    let runs = |lines: &[String]| {
        let mut all = vec![
            command(0, "started", "in_progress", None),
            message(1, "It runs."),
        ];
        all.extend_from_slice(lines);
        all.extend([message(2, "It runs."), message(3, "End.")]);
        turn_of(&all).1.text
    };
    let ends = command(0, "completed", "completed", Some(0));
    let goes_on = command(0, "updated", "in_progress", None);
    assert_eq!(runs(&[ends.clone(), reconnect(1)]), "It runs.End.");
    assert_eq!(runs(&[reconnect(1), ends.clone()]), "It runs.End.");
    assert_eq!(runs(&[goes_on, reconnect(1)]), "It runs.End.");

    // An item without a known start is a new call.
    let other = command(7, "completed", "completed", Some(0));
    assert_eq!(runs(&[other, reconnect(1)]), "It runs.It runs.End.");
}

#[test]
fn a_plan_is_a_tool_call_and_ends_an_answer() {
    let plan = |stage: &str| {
        item(
            stage,
            &json!({"id": "item_1", "type": "todo_list",
                    "items": [{"text": "A", "completed": false}]}),
        )
    };
    for stage in ["started", "updated"] {
        let (_, result) = turn_of(&[
            message(0, "Step."),
            plan(stage),
            reconnect(1),
            message(2, "Step."),
            message(3, "End."),
            plan("completed"),
        ]);
        assert_eq!(result.text, "Step.Step.End.", "{stage}");
    }
}

#[test]
fn the_same_line_again_is_no_other_message() {
    let updated = |text: &str| {
        item(
            "updated",
            &json!({"id": "item_0", "type": "agent_message", "text": text}),
        )
    };
    let ran = command(1, "completed", "completed", Some(0));
    for again in [message(0, "Hello"), updated("Hello"), updated("Hel")] {
        let (_, result) = turn_of(&[message(0, "Hello"), again.clone()]);
        assert_eq!(result.text, "Hello", "{again}");
        // A tool call between them makes no difference.
        let (_, result) = turn_of(&[message(0, "Hello"), ran.clone(), again.clone()]);
        assert_eq!(result.text, "Hello", "{again}");
    }
    // In another turn it is another message: without an id they cannot be matched.
    let (_, result) = turn_of(&[
        message(0, "Hello"),
        end(10, 0, 1),
        turn(),
        message(0, "Hello"),
    ]);
    assert_eq!(result.text, "HelloHello");
    let nameless = item(
        "completed",
        &json!({"type": "agent_message", "text": "Ha!"}),
    );
    let (_, result) = turn_of(&[nameless.clone(), nameless]);
    assert_eq!(result.text, "Ha!Ha!");
}

#[test]
fn a_message_that_comes_again_in_pieces_is_emitted_once() {
    let grown = |text: &str| {
        item(
            "updated",
            &json!({"id": "item_1", "type": "agent_message", "text": text}),
        )
    };
    let text = |pieces: &[&str], complete: &str| {
        let mut lines = vec![message(0, "Hello."), reconnect(1)];
        lines.extend(pieces.iter().map(|text| grown(text)));
        lines.push(message(1, complete));
        turn_of(&lines).1.text
    };
    assert_eq!(text(&["Hel", "Hello."], "Hello."), "Hello.");
    assert_eq!(text(&["Hel", "Hello. W"], "Hello. World"), "Hello. World");
    assert_eq!(text(&["Hel", "Help"], "Help!"), "Hello.Help!");
}

#[test]
fn a_message_without_text_is_not_lost_in_silence() {
    for odd in [
        json!({"id": "i", "type": "agent_message"}),
        json!({"id": "i", "type": "agent_message", "text": null}),
        json!({"id": "i", "type": "agent_message", "text": ["a"]}),
        json!({"id": "i", "type": "reasoning", "text": {}}),
    ] {
        let (events, _) = turn_of(&[item("completed", &odd)]);
        assert_eq!(
            names(&events),
            ["session", "unknown", "turn_end", "done"],
            "{odd}"
        );
    }
}
