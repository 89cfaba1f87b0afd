//! Text that the CLI repeats is emitted once. The lines are hand-made, in recorded shapes.

use super::edges::{END, turn_of};
use super::*;

fn reconnecting() -> Value {
    notification(
        "error",
        json!({"turnId": "t1", "willRetry": true, "error": {"message": "Reconnecting... 1/5",
               "codexErrorInfo": {"responseStreamDisconnected": {"httpStatusCode": null}},
               "additionalDetails": "stream disconnected before completion"}}),
    )
}

#[test]
fn a_message_that_turns_out_to_be_new_is_emitted_from_there_on() {
    let first = [
        delta("t1", "m1", "Whole one."),
        message("completed", "t1", "m1", "Whole one."),
        reconnecting(),
        delta("t1", "m2", "Whole "),
    ];
    let mut other = first.to_vec();
    other.push(delta("t1", "m2", "other"));
    other.push(delta("t1", "m2", "s."));
    assert_eq!(
        turn_of(
            &[
                &other[..],
                &[message("completed", "t1", "m2", "Whole others.")]
            ]
            .concat()
        ),
        [
            "text m1: Whole one.",
            "retry 1/5 Network",
            "text m2: Whole others.",
            END[0],
            END[1]
        ]
    );
}

/// The same happens to a message in the middle of an answer: its text so far is in no history.
#[test]
fn a_message_that_was_dropped_for_another_is_taken_back() {
    let lines = [
        message("started", "t1", "m1", ""),
        delta("t1", "m1", "one "),
        message("started", "t1", "m2", ""),
        delta("t1", "m2", "two"),
        message("completed", "t1", "m2", "two"),
    ];
    assert_eq!(
        turn_of(&lines),
        [
            "text m1: one ",
            "retract m1",
            "text m2: two",
            END[0],
            END[1]
        ]
    );
    // This holds even if only a tool follows.
    assert_eq!(
        turn_of(&lines[..2]),
        ["text m1: one ", "retract m1", END[0], END[1]]
    );
    // Text written before an interruption is kept.
    let mut peer = open_session(&bypassing());
    peer.json(&lines[0]);
    peer.json(&lines[1]);
    peer.json(&turn_ended("t1", "interrupted"));
    assert_eq!(peer.over().1.text, "one ");
}

#[test]
fn a_message_without_deltas_and_one_whose_last_ones_are_missing() {
    assert_eq!(
        turn_of(&[
            message("completed", "t1", "m1", "all at once"),
            delta("t1", "m2", "in "),
            message("completed", "t1", "m2", "in two"),
            delta("t1", "m2", "late"),
            message("completed", "t1", "m2", "in two"),
        ]),
        ["text m1: all at once", "text m2: in two", END[0], END[1]]
    );
}

#[test]
fn parts_of_a_summary_are_lines() {
    let part = |index: u64, text: &str| {
        notification(
            "item/reasoning/summaryTextDelta",
            json!({"turnId": "t1", "itemId": "r1", "summaryIndex": index, "delta": text}),
        )
    };
    let complete =
        json!({"type": "reasoning", "id": "r1", "summary": ["a", "", "b"], "content": []});
    assert_eq!(
        turn_of(&[
            part(0, "a"),
            part(2, "b"),
            item("completed", "t1", &complete)
        ]),
        ["thinking r1: a\\n\\nb", END[0], END[1]]
    );
    assert_eq!(
        turn_of(&[item("completed", "t1", &complete)]),
        ["thinking r1: a\\n\\nb", END[0], END[1]]
    );
}

/// Made by hand, in the shapes of the schemas of 0.171.0 and 0.169.0: the CLI's service decides, and no scripted
/// model makes the CLI print it.
#[test]
fn an_answer_that_the_service_hides_is_not_shown() {
    let answer = |moderation: Value| {
        let message = json!({"type": "agentMessage", "id": "m1", "text": "How to.",
                             "moderation": moderation});
        item("completed", "t1", &message)
    };
    let decided = |display: Value| json!({"moderated": true, "display": display});
    let hidden = decided(json!({"version": 1, "mode": "hide",
                                "replacement": {"kind": "wellbeingPromptHelpline"}}));
    let blocked = decided(json!({"version": 1, "mode": "block",
                                 "reason": {"kind": "protection", "protectionType": "weapons"}}));
    let old = decided(json!({"action": "replace", "blockType": "cyber"}));
    let shown = decided(
        json!({"version": 1, "mode": "show", "trustedContacts": "skip",
                               "annotation": {"kind": "wellbeingHelpline", "subject": "answer"}}),
    );
    let turn = |moderation: &Value| {
        turn_of(&[
            message("started", "t1", "m1", ""),
            delta("t1", "m1", "How "),
            answer(moderation.clone()),
            // Neither a late piece nor the same item shows it.
            delta("t1", "m1", "to."),
            answer(moderation.clone()),
        ])
    };
    for (moderation, why) in [
        (hidden, "wellbeingPromptHelpline"),
        (blocked, "protection, weapons"),
        (old, "cyber"),
    ] {
        let notice = format!("notice Warning the service withheld an answer ({why})");
        let lines = turn(&moderation);
        assert_eq!(lines[..2], ["text m1: How ", "retract m1"], "{moderation}");
        assert_eq!(lines[2..], [&notice, END[0], END[1]], "{moderation}");
    }
    for moderation in [
        shown,
        json!({"moderated": true, "display": null}),
        Value::Null,
    ] {
        assert_eq!(turn(&moderation)[0], "text m1: How to.", "{moderation}");
    }
}
