//! Interrupted turns.

use teamster_core::provider::{CommandId, SessionCommand};
use teamster_core::{ErrorKind, PermissionAnswer, RunStatus};

use crate::sessions::play::Play;
use crate::sessions::{COST, HELLO, ONE, asked, both, is_plain};

#[test]
fn an_interrupted_turn_is_aborted_and_the_next_one_is_as_ever() {
    for (scenario, text) in [
        ("interrupt", "word0 word1 word2 word3 word4 word5 "),
        ("interrupt_tool", "Sleeping."),
    ] {
        let mut play = Play::new(&format!("2.1.197/persist_{scenario}"));
        play.turn("[[mock:slow]] go");
        play.until(if scenario == "interrupt" {
            "word5 "
        } else {
            "message_stop"
        });
        play.interrupt();
        let turn = play.end();
        assert_eq!(turn.result.status, RunStatus::Aborted);
        assert!(turn.result.aborted);
        assert_eq!(turn.result.text, text);
        let errors: Vec<_> = turn.result.errors.iter().map(|e| e.kind).collect();
        assert_eq!(errors, [ErrorKind::Aborted]);
        if scenario == "interrupt" {
            // A request was sent, and the CLI does not know its cost.
            assert_eq!((turn.tokens(), turn.cost()), (None, None));
        } else {
            assert_eq!(turn.end(), (ONE, COST));
            let [(output, Some(true))] = turn.outputs()[..] else {
                panic!("{turn:#?}");
            };
            assert!(output.starts_with("The user doesn't want to proceed"));
        }
        is_plain(&play.play("[[mock:text]] next"), HELLO, COST);
        play.rest();
    }
}

#[test]
fn a_turn_can_be_interrupted_before_it_has_begun() {
    for (scenario, cost) in both("int_start") {
        let mut play = Play::new(&scenario);
        play.turn("[[mock:slow]] first");
        play.interrupt();
        let turn = play.end();
        assert_eq!(turn.result.status, RunStatus::Aborted);
        assert_eq!(turn.result.text, "");
        is_plain(&play.play("[[mock:two]] second"), "Answer two.", cost);
        play.rest();
    }
}

#[test]
fn a_turn_whose_message_was_given_back_ends_without_a_word() {
    for (scenario, cost) in both("int_startcancel") {
        let mut play = Play::new(&scenario);
        play.turn("[[mock:slow]] first");
        play.interrupt();
        let turn = play.end();
        assert_eq!(turn.result.status, RunStatus::Aborted, "{scenario}");
        assert_eq!(turn.result.errors.len(), 1);
        is_plain(&play.play("[[mock:two]] second"), "Answer two.", cost);
        play.rest();
    }
}

#[test]
fn an_interrupt_withdraws_messages_not_yet_taken() {
    for (scenario, cost) in both("int_cancel") {
        let mut play = Play::new(&scenario);
        play.turn("[[mock:slow]] first");
        play.until("word5 ");
        play.command(SessionCommand::Steer(
            CommandId::new(1),
            "[[mock:two]] second".into(),
        ));
        play.written.clear();
        play.interrupt();
        let kinds: Vec<_> = (play.written.iter())
            .map(|line| line["request"]["subtype"].as_str().unwrap())
            .collect();
        // With 2.1.197, the first message has not been acknowledged either.
        let expected = if scenario.starts_with("2.1.197") {
            vec!["cancel_async_message", "cancel_async_message", "interrupt"]
        } else {
            vec!["cancel_async_message", "interrupt"]
        };
        assert_eq!(kinds, expected);
        let turn = play.end();
        assert_eq!(turn.result.status, RunStatus::Aborted);
        assert!(turn.result.text.starts_with("word0 "));
        is_plain(&play.play("[[mock:three]] third"), "Answer three.", cost);
        play.rest();
        assert!(play.unasked.is_empty());
    }
}

#[test]
fn a_message_that_could_not_be_withdrawn_is_interrupted_too() {
    // In the recording, the waiting message was not withdrawn, so it had a turn.
    let mut play = Play::new("2.1.197/persist_cancel_async");
    play.turn("[[mock:slow]] first");
    play.until("word5 ");
    play.command(SessionCommand::Steer(
        CommandId::new(1),
        "[[mock:text]] queued".into(),
    ));
    play.interrupt();
    play.written.clear();
    let turn = play.end();
    assert!(turn.result.text.starts_with("word0 "));
    assert!(turn.result.text.ends_with(HELLO));
    let again = &play.written[0]["request"];
    assert_eq!(again["subtype"], "interrupt", "it is sent once more");
    play.rest();
}

#[test]
fn a_question_is_withdrawn_with_its_turn() {
    for (scenario, cost) in both("perm_int") {
        let mut play = Play::with(&scenario, asked);
        play.turn("[[mock:write]] first");
        play.until("can_use_tool");
        let request = play.asked.pop().unwrap();
        play.interrupt();
        let turn = play.end();
        assert_eq!(turn.result.status, RunStatus::Aborted);
        assert_eq!(play.withdrawn, [request.id]);
        play.written.clear();
        play.command(SessionCommand::Answer(request.id, PermissionAnswer::Allow));
        assert!(play.written.is_empty());
        is_plain(&play.play("[[mock:two]] second"), "Answer two.", cost);
        play.rest();
    }
}
