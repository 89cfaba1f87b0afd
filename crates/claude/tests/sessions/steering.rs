//! Messages during a turn.

use teamster_core::provider::{CommandId, SessionCommand};
use teamster_core::{ErrorKind, RunStatus};

use crate::sessions::play::Play;
use crate::sessions::{COST, COST_330, HELLO, both, times};

#[test]
fn a_message_while_a_tool_runs_joins_the_turn() {
    for (scenario, cost) in both("steer_tool") {
        let mut play = Play::new(&scenario);
        play.turn("[[mock:sleep2]] first");
        play.until(r#""type":"tool_use""#);
        play.command(SessionCommand::Steer(CommandId::new(7), "/second".into()));
        assert_eq!(play.written[1]["message"]["content"], " /second");
        assert_eq!(play.settled, [(CommandId::new(7), Ok(()))]);
        let turn = play.end();
        assert_eq!(turn.result.text, "Sleeping.Slept.");
        assert_eq!(turn.tools(), [("Bash", "toolu_mock_001_1")]);
        assert_eq!(turn.end(), (Some((24, 50)), times(cost, 2.0)));
        play.rest();
        assert!(play.unasked.is_empty());
    }
}

#[test]
fn several_messages_while_tools_run_end_with_the_same_turn() {
    for (scenario, cost) in both("two_steer") {
        let mut play = Play::new(&scenario);
        play.turn("[[mock:two_tools]] first");
        play.until(r#""name":"Bash""#);
        for n in 2..5 {
            play.command(SessionCommand::Steer(
                CommandId::new(n),
                format!("steer {n}"),
            ));
        }
        let turn = play.end();
        assert_eq!(turn.result.text, "A.B.C.");
        assert_eq!(turn.cost(), times(cost, 3.0));
        assert_eq!(play.settled.len(), 3);
        play.rest();
        assert!(play.unasked.is_empty());
    }
}

#[test]
fn a_message_while_the_model_writes_joins_the_turn() {
    // Three answers with ids, and two without: the CLI joins waiting messages in one of its turns.
    for (scenario, steers, text, cost) in [
        ("2.1.197/steer_text", 1, "Answer two.", COST),
        ("2.1.330/steer_text", 1, "Answer two.", COST_330),
        ("2.1.197/merge", 2, "Answer three.", COST),
        ("2.1.330/merge", 2, "Answer three.", COST_330),
        ("2.1.197/persist_queue_text", 2, HELLO, COST),
    ] {
        let mut play = Play::new(scenario);
        play.turn("[[mock:slow]] first");
        play.until("word3 ");
        for n in 0..steers {
            play.command(SessionCommand::Steer(
                CommandId::new(n),
                format!("steer {n}"),
            ));
        }
        let turn = play.end();
        assert_eq!(turn.result.status, RunStatus::Completed);
        assert!(turn.result.text.starts_with("word0 word1 "), "{scenario}");
        assert!(turn.result.text.ends_with(text), "{scenario}");
        assert_eq!(turn.result.final_message.as_deref(), Some(text));
        assert_eq!(turn.end(), (Some((24, 50)), times(cost, 2.0)), "{scenario}");
        assert_eq!((turn.tokens(), turn.cost()), turn.end());
        assert_eq!(turn.result.num_turns, Some(2));
        assert_eq!(turn.count("session"), 1);
        play.rest();
        assert!(play.unasked.is_empty(), "{scenario}");
    }
}

#[test]
fn a_message_at_the_end_of_the_turn_still_joins_it() {
    for (scenario, cost) in both("steer_late") {
        let mut play = Play::new(&scenario);
        play.turn("[[mock:text]] first");
        play.until(r#""message_stop""#);
        play.command(SessionCommand::Steer(CommandId::new(1), "second".into()));
        let turn = play.end();
        assert_eq!(turn.result.text, format!("{HELLO}Answer two."));
        assert_eq!(turn.end(), (Some((24, 50)), times(cost, 2.0)));
        play.command(SessionCommand::Steer(CommandId::new(2), "too late".into()));
        let (_, too_late) = &play.settled[1];
        assert!(
            too_late
                .as_ref()
                .is_err_and(|e| e.kind == ErrorKind::Invalid)
        );
        play.rest();
        assert!(play.unasked.is_empty());
    }
}

#[test]
fn a_message_that_cuts_the_answer_short_is_of_the_same_turn() {
    let mut play = Play::new("2.1.197/persist_queue_now");
    play.turn("[[mock:slow5]] first");
    play.until("word3 ");
    play.command(SessionCommand::Steer(
        CommandId::new(1),
        "[[mock:text]] second".into(),
    ));
    let turn = play.end();
    assert_eq!(turn.result.text, format!("word0 word1 word2 word3 {HELLO}"));
    assert_eq!(turn.result.status, RunStatus::Completed);
    play.rest();
}

#[test]
fn a_prompt_that_a_hook_holds_back_ends_its_turn() {
    for (scenario, cost) in both("hook_prompt") {
        let mut play = Play::new(&scenario);
        let blocked = play.play("BLOCK [[mock:two]] first");
        assert_eq!(blocked.result.status, RunStatus::Failed);
        assert_eq!(blocked.result.text, "");
        let error = &blocked.result.errors[0];
        assert_eq!(error.kind, ErrorKind::Permission);
        assert!(error.message.contains("blocked by hook"), "{error}");
        assert!(!error.message.contains("[[mock:two]]"), "{error}");
        assert_eq!(blocked.cost(), Some(0.0));

        play.turn("[[mock:sleep2]] second");
        play.until(r#""name":"Bash""#);
        play.command(SessionCommand::Steer(
            CommandId::new(1),
            "BLOCK this".into(),
        ));
        let turn = play.end();
        assert_eq!(turn.result.text, "Sleeping.Slept.");
        assert_eq!(turn.cost(), times(cost, 2.0));

        play.turn("[[mock:slow]] third");
        play.until("word5 ");
        play.command(SessionCommand::Steer(
            CommandId::new(2),
            "BLOCK that".into(),
        ));
        let turn = play.end();
        assert_eq!(turn.result.status, RunStatus::Completed);
        assert!(turn.result.text.ends_with("word39 "), "{turn:#?}");
        let held_back = |it: &&str| it.contains("blocked by hook");
        assert_eq!(
            turn.notices()
                .into_iter()
                .filter(|it| held_back(it))
                .count(),
            1
        );
        play.rest();
        assert!(play.unasked.is_empty());
    }
}
