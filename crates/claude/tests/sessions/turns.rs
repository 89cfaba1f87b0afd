//! Consecutive turns.

use serde_json::json;
use teamster_core::provider::{CommandId, Exit, Outbox, SessionCommand};
use teamster_core::{AgentEvent, ErrorKind, Image, ImageSource, RunStatus, ToolUse, Turn};
use teamster_testkit::events::{assert_types, payloads};

use crate::sessions::play::Play;
use crate::sessions::{COST, HELLO, both, is_plain, times};

#[test]
fn turns_follow_each_other_and_each_has_its_own_figures() {
    for scenario in ["replay", "interrupt_idle", "unknown_type", "two_sigint_bg"] {
        let mut play = Play::new(&format!("2.1.197/persist_{scenario}"));
        let first = play.play("[[mock:text]] one");
        is_plain(&first, HELLO, COST);
        assert_eq!(first.count("session"), 1);
        let [offers] = &play.offers[..] else {
            panic!("once: {:#?}", play.offers);
        };
        let commands = offers.commands.as_deref().unwrap_or_default();
        assert!(
            commands.iter().any(|it| it.name == "compact"),
            "{commands:?}"
        );
        assert_eq!(first.result.session_usage, None);
        let id = play.session_id();
        assert_eq!(first.result.session_id.as_deref(), Some(&*id));

        let second = play.play("[[mock:text]] two");
        assert_eq!(second.count("session"), 0, "it is the same");
        assert_eq!(second.result.session_id.as_deref(), Some(&*id));
        assert_eq!(second.result.model, first.result.model);
        let all = second.result.session_usage.unwrap();
        if scenario == "two_sigint_bg" {
            assert_eq!(second.result.text, "I will list it.The command worked.");
            assert_eq!(second.tools(), [("Bash", "toolu_mock_002_1")]);
            assert_eq!(second.outputs(), [("a\nb\n日本語 🙂", Some(false))]);
            assert_eq!(second.tokens(), Some((24, 50)));
            assert_eq!(second.cost(), times(COST, 2.0));
            assert_eq!(all.input_tokens, Some(36));
            assert_eq!(second.result.num_turns, Some(2));
        } else {
            is_plain(&second, HELLO, COST);
            assert_eq!(all.input_tokens, Some(24));
        }
        play.rest();
        assert!(play.unasked.is_empty());
    }
}

#[test]
fn a_message_is_one_line_with_an_id_of_its_own() {
    let mut play = Play::new("2.1.197/persist_replay");
    assert!(
        play.written.is_empty(),
        "nothing is sent before the first turn"
    );
    play.play("[[mock:text]] one");
    play.play("/help\nme");
    let [first, second] = &play.written[..] else {
        panic!("{:#?}", play.written);
    };
    assert_eq!(first["type"], "user");
    let message = json!({"role": "user", "content": "[[mock:text]] one"});
    assert_eq!(first["message"], message);
    assert_eq!(second["message"]["content"], " /help\nme", "no command");
    assert_ne!(first["uuid"], second["uuid"]);
    assert!(teamster_core::provider::is_uuid(
        second["uuid"].as_str().unwrap()
    ));
}

#[test]
fn a_command_only_where_commands_are_allowed() {
    let mut play = Play::with("2.1.197/slash", |options| {
        options.params.slash_commands = true;
    });
    play.turn("/cost");
    assert_eq!(play.written[0]["message"]["content"], "/cost");
}

#[test]
fn commands_end_their_turn_though_they_ask_no_model() {
    for (scenario, cost) in both("slash") {
        let mut play = Play::with(&scenario, |options| options.params.slash_commands = true);
        let costs = play.play("/cost");
        assert!(costs.result.text.contains("Total duration"), "{costs:#?}");
        assert_eq!(costs.result.num_turns, Some(0));
        assert_eq!(costs.cost(), Some(0.0));
        is_plain(&play.play("[[mock:two]] x"), "Answer two.", cost);
        let compacted = play.play("/compact");
        let notices = compacted.notices().join("\n");
        assert!(notices.contains("is being compacted"), "{notices}");
        assert_eq!(compacted.result.status, RunStatus::Completed);
        if scenario.starts_with("2.1.330") {
            assert!(notices.contains("was compacted (manual)"), "{notices}");
        }
        is_plain(&play.play("[[mock:two]] y"), "Answer two.", cost);
        play.rest();
    }
}

#[test]
fn an_image_is_part_of_the_message() {
    for (scenario, cost) in both("image") {
        let mut play = Play::new(&scenario);
        let mut turn = Turn::new("/look");
        turn.images.push(Image {
            media_type: "image/png".into(),
            source: ImageSource::Bytes(vec![0, 1, 2]),
        });
        play.begin(turn);
        let content = json!([
            {"type": "image",
             "source": {"type": "base64", "media_type": "image/png", "data": "AAEC"}},
            {"type": "text", "text": " /look"},
        ]);
        assert_eq!(play.written[0]["message"]["content"], content);
        is_plain(&play.end(), "Answer two.", cost);
        play.rest();
    }
}

#[test]
fn invalid_message_is_an_error_of_the_turn() {
    let mut play = Play::new("2.1.197/persist_clear");
    let turn = play.play(" \n");
    assert_types(&turn.events, "error turn_end done");
    assert_eq!(turn.result.status, RunStatus::Failed);
    assert_eq!(turn.result.errors[0].message, "prompt: it is empty");
    assert!(play.written.is_empty());
    // The session is still usable.
    is_plain(&play.play("[[mock:text]] one"), HELLO, COST);
}

#[test]
fn answers_to_the_requests_of_another_are_no_matter() {
    let mut play = Play::new("2.1.197/persist_control");
    let turn = play.play("[[mock:text]] one");
    assert_eq!(turn.result.text, HELLO);
    assert_eq!(turn.cost(), Some(411.0));
    play.rest();
    let mut play = Play::new("2.1.197/agent_forward_text");
    let turn = play.play("[[mock:agent]] go");
    assert_eq!(turn.result.text, "Delegating.Parent done.");
    assert_eq!(turn.cost(), times(COST, 4.0));
    assert_eq!(turn.tools().len(), 2);
    play.rest();
}

#[test]
fn a_failed_turn_leaves_the_session_as_good_as_before() {
    let mut play = Play::new("2.1.197/persist_api_error");
    let failed = play.play("[[mock:error_401]] one");
    assert_eq!(failed.result.status, RunStatus::Failed);
    assert_eq!(failed.result.errors[0].kind, ErrorKind::Auth);
    assert_eq!(failed.count("retry"), 2);
    is_plain(&play.play("[[mock:text]] two"), HELLO, COST);
    play.rest();

    for (scenario, cost) in both("err") {
        let mut play = Play::new(&scenario);
        let failed = play.play("[[mock:error_once]] first");
        assert_eq!(failed.result.errors[0].kind, ErrorKind::Invalid);
        assert_eq!(failed.cost(), Some(0.0));
        is_plain(&play.play("[[mock:two]] second"), "Answer two.", cost);
        play.rest();
    }
}

#[test]
fn a_limit_of_turns_is_for_each_turn() {
    let mut play = Play::with("2.1.197/persist_max_turns", |o| {
        o.params.max_turns = Some(2);
    });
    let failed = play.play("[[mock:loop_forever]] one");
    assert_eq!(failed.result.errors[0].kind, ErrorKind::MaxTurns);
    assert_eq!(failed.cost(), Some(35_000.0));
    is_plain(&play.play("[[mock:text]] two"), HELLO, COST);
    play.rest();
}

#[test]
fn a_schema_is_for_each_turn() {
    for (scenario, cost) in both("schema") {
        let mut play = Play::new(&scenario);
        for prompt in ["first", "second"] {
            let turn = play.play(&format!("[[mock:so]] {prompt}"));
            assert_eq!(turn.result.structured_output, Some(json!({"answer": "42"})));
            assert_eq!(turn.result.text, r#"{"answer":"42"}"#);
            assert_eq!(turn.cost(), cost);
        }
        let turn = play.play("[[mock:two]] third");
        assert_eq!(turn.result.structured_output, None, "that of a turn before");
        play.rest();
    }
}

#[test]
fn a_session_that_is_not_there_is_reported_by_the_first_turn() {
    for (scenario, _) in both("resume_unknown") {
        let id = "aaaaaaaa-0000-4000-8000-00000000dead";
        let mut play = Play::with(&scenario, |o| o.params.session_id = Some(id.into()));
        assert_eq!(play.session_id(), id);
        let turn = play.play("[[mock:two]] again");
        assert_eq!(turn.result.status, RunStatus::Failed);
        let kinds: Vec<_> = turn.result.errors.iter().map(|e| e.kind).collect();
        assert_eq!(kinds, [ErrorKind::SessionNotFound]);
    }
}

#[test]
fn mcp_and_other_flags_tell_the_same_story_as_a_run() {
    let mut play = Play::new("2.1.197/persist_resume_flags");
    let turn = play.play("[[mock:mcp_ok]] one");
    assert_eq!(turn.tools()[0].0, "mcp__mock__echo");
    let mcp = payloads::<ToolUse>(&turn.events).find_map(|it| it.mcp.as_ref());
    assert_eq!(mcp.unwrap().server, "mock");
    assert_eq!(play.play("[[mock:text]] two").result.text, HELLO);
    play.rest();
}

#[test]
fn every_other_recorded_conversation_goes_through() {
    for (scenario, turns) in [
        ("persist_array", vec![HELLO]),
        ("persist_badline", vec![HELLO]),
        ("persist_idle", vec![HELLO]),
        (
            "persist_exit",
            vec![HELLO, "/exit isn't available in this environment.", HELLO],
        ),
    ] {
        let mut play = Play::new(&format!("2.1.197/{scenario}"));
        for text in turns {
            assert_eq!(play.play("x").result.text, text, "{scenario}");
        }
        play.rest();
    }
    let mut play = Play::new("2.1.197/persist_eof_mid_turn");
    assert!(play.play("x").result.text.starts_with("word0 "));
    play.rest();
}

#[test]
fn a_killed_process_ends_its_turn_and_settles_open_orders() {
    let mut play = Play::new("2.1.197/persist_sigint_then_msg");
    play.turn("[[mock:slow]] go");
    play.until("word5 ");
    let id = play.session_id();
    play.command(SessionCommand::SetModel(CommandId::new(1), "x".into()));
    play.command(SessionCommand::Clear(CommandId::new(2)));
    assert!(play.settled.is_empty());
    let exit = Exit {
        signal: Some("SIGKILL".into()),
        ..Exit::default()
    };
    play.session.finish(exit, 0);
    let events: Vec<_> = play.session.out().drain().collect();
    let Some(AgentEvent::Done(done)) = events.last() else {
        panic!("{events:#?}");
    };
    assert_eq!(done.result.status, RunStatus::Failed);
    assert_eq!(done.result.exit_signal.as_deref(), Some("SIGKILL"));
    let settled = play.session.outbox(Outbox::take_answers);
    let orders: Vec<_> = settled
        .iter()
        .map(|(command, it)| (*command, it.is_err()))
        .collect();
    assert_eq!(
        orders,
        [(CommandId::new(1), true), (CommandId::new(2), true)]
    );
    assert_eq!(play.session_id(), id, "it can be resumed");
}
