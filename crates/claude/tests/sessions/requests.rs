//! Commands outside of turns, and requests of the CLI.

use serde_json::json;
use teamster_core::provider::{CommandId, SessionCommand};
use teamster_core::{Decision, PermissionAnswer, PermissionEvent, PermissionMode, ToolKind};
use teamster_testkit::events::payloads;

use crate::sessions::play::Play;
use crate::sessions::{COST, HELLO, ONE, asked, both, is_plain, times};

#[test]
fn the_conversation_is_cleared_without_a_turn() {
    for (scenario, cost) in both("clear") {
        let mut play = Play::new(&scenario);
        is_plain(&play.play("[[mock:two]] x"), "Answer two.", cost);
        let old = play.session_id();
        play.command(SessionCommand::Clear(CommandId::new(3)));
        assert_eq!(play.written[1]["message"]["content"], "/clear");
        assert!(play.settled.is_empty());
        play.idle(r#""type":"result""#);
        assert_eq!(play.settled, [(CommandId::new(3), Ok(()))]);
        assert_eq!(play.session.turn(), None);
        let new = play.session_id();
        assert_ne!(old, new);

        let turn = play.play("[[mock:three]] x");
        is_plain(&turn, "Answer three.", cost);
        assert_eq!(turn.result.session_id.as_deref(), Some(&*new));
        assert_eq!(turn.events[0].type_name(), "session");
        assert_eq!(turn.count("session"), 1);
        assert_eq!(turn.result.session_usage, None, "its count starts over");
        let turn = play.play("[[mock:three]] y");
        is_plain(&turn, "Answer three.", cost);
        let all = turn.result.session_usage.unwrap();
        assert_eq!(all.input_tokens, Some(24), "{scenario}");
        play.rest();
        assert!(play.unasked.is_empty());
    }
}

#[test]
fn a_turn_waits_until_the_conversation_is_cleared() {
    for (scenario, cost) in both("clear") {
        let mut play = Play::new(&scenario);
        play.play("[[mock:two]] x");
        play.command(SessionCommand::Clear(CommandId::new(3)));
        play.turn("[[mock:three]] x");
        play.command(SessionCommand::Steer(CommandId::new(4), "more".into()));
        assert_eq!(play.written.len(), 2, "neither is sent yet");
        play.until(r#""type":"result""#);
        assert_eq!(play.written.len(), 4);
        assert_eq!(play.written[2]["message"]["content"], "[[mock:three]] x");
        assert_eq!(play.written[3]["message"]["content"], "more");
        assert_eq!(
            play.settled,
            [(CommandId::new(3), Ok(())), (CommandId::new(4), Ok(()))]
        );
        let turn = play.end();
        assert_eq!(turn.result.text, "Answer three.Answer three.");
        assert_eq!(turn.cost(), times(cost, 2.0));
    }
}

#[test]
fn the_capture_without_ids_is_cleared_too() {
    let mut play = Play::new("2.1.197/persist_clear");
    is_plain(&play.play("[[mock:text]] one"), HELLO, COST);
    play.command(SessionCommand::Clear(CommandId::new(3)));
    play.idle(r#""type":"result""#);
    assert_eq!(play.settled, [(CommandId::new(3), Ok(()))]);
    is_plain(&play.play("[[mock:text]] after clear"), HELLO, COST);
    play.rest();
}

#[test]
fn requests_are_settled_by_the_cli_s_answers() {
    for (scenario, _) in both("setters") {
        let mut play = Play::new(&scenario);
        play.command(SessionCommand::SetPermission(
            CommandId::new(1),
            PermissionMode::Bypass,
        ));
        play.command(SessionCommand::SetPermission(
            CommandId::new(2),
            PermissionMode::AcceptEdits,
        ));
        play.command(SessionCommand::SetModel(CommandId::new(3), "haiku".into()));
        assert_eq!(play.written[1]["request"]["mode"], "acceptEdits");
        assert_eq!(play.written[2]["request"]["model"], "haiku");
        play.idle(&play.written[2]["request_id"].to_string());
        assert_eq!(
            play.settled[1..],
            [(CommandId::new(2), Ok(())), (CommandId::new(3), Ok(()))]
        );
        let (id, Err(error)) = &play.settled[0] else {
            panic!("{:?}", play.settled);
        };
        assert_eq!(*id, CommandId::new(1));
        assert!(
            error
                .message
                .contains("was not launched with --dangerously-skip-permissions"),
            "{error:?}"
        );
        let turn = play.play("[[mock:two]] first");
        assert_eq!(turn.result.text, "Answer two.");
        assert!(turn.result.model.unwrap().contains("haiku"));

        play.command(SessionCommand::SetPermission(
            CommandId::new(4),
            PermissionMode::Default,
        ));
        play.command(SessionCommand::SetModel(
            CommandId::new(5),
            "claude-sonnet-4-5".into(),
        ));
        let turn = play.play("[[mock:two]] second");
        assert_eq!(turn.count("session"), 1, "its model is another");
        assert_eq!(turn.result.model.as_deref(), Some("claude-sonnet-4-5"));
        let models: Vec<_> = turn.result.usage_by_model.keys().collect();
        assert_eq!(models, ["claude-sonnet-4-5"], "the other was not used");
        assert_eq!(turn.tokens(), ONE);
        assert_eq!(turn.cost(), Some(411.0));
        assert_eq!(play.settled.len(), 5);
        play.command(SessionCommand::Close);
        assert_eq!(
            play.written.last().unwrap()["request"]["subtype"],
            "end_session"
        );
        play.rest();
    }
}

#[test]
fn the_cli_asks_and_is_answered() {
    let mut play = Play::with("2.1.197/persist_can_use_tool", asked);
    play.turn("[[mock:write_denied]] go");
    play.until("can_use_tool");
    let request = play.asked.pop().unwrap();
    assert_eq!(request.tool_name, "Write");
    assert_eq!(request.tool_id.as_deref(), Some("toolu_mock_001_0"));
    assert_eq!(request.kind, ToolKind::Edit);
    assert_eq!(request.input["file_path"], "/tmp/ws/denied.txt");
    assert_eq!(request.message.as_deref(), Some("denied.txt"));
    play.written.clear();
    play.command(SessionCommand::Answer(request.id, PermissionAnswer::Allow));
    let answer = &play.written[0]["response"];
    assert_eq!(answer["request_id"], "67677322-a61e-4123-8ebd-3edc78471bec");
    assert_eq!(
        answer["response"],
        json!({"behavior": "allow", "updatedInput": request.input})
    );
    play.until("can_use_tool");
    let second = play.asked.pop().unwrap();
    assert_ne!(second.id, request.id);
    let no = PermissionAnswer::Deny(Some("no thanks".into()));
    play.command(SessionCommand::Answer(second.id, no));
    let answer = &play.written[1]["response"]["response"];
    assert_eq!(answer, &json!({"behavior": "deny", "message": "no thanks"}));
    // A second answer is ignored.
    play.command(SessionCommand::Answer(second.id, PermissionAnswer::Allow));
    assert_eq!(play.written.len(), 2);
    let turn = play.end();
    let decisions: Vec<_> = payloads::<PermissionEvent>(&turn.events)
        .map(|it| (it.tool_name.as_str(), it.decision))
        .collect();
    // The engine emits the decision; here, only the result shows it.
    let expected = [
        ("Write", Decision::Requested),
        ("Bash", Decision::Requested),
        ("Bash", Decision::Denied),
    ];
    assert_eq!(decisions, expected);
    assert_eq!(turn.count("file_change"), 1);
    assert_eq!(turn.outputs()[1], ("no thanks", Some(true)));
    play.rest();
}

#[test]
fn always_allow_holds_for_this_session_only() {
    for (scenario, cost) in both("always") {
        let mut play = Play::with(&scenario, asked);
        play.turn("[[mock:write2]] first");
        play.written.clear();
        for _ in 0..2 {
            play.until(r#""subtype":"can_use_tool""#);
            let request = play.asked.pop().unwrap();
            play.command(SessionCommand::Answer(
                request.id,
                PermissionAnswer::AllowAlways,
            ));
        }
        let rules = |n: usize| &play.written[n]["response"]["response"]["updatedPermissions"];
        // The CLI suggests accepting all edits, which would allow more than the request.
        let write = json!([{"type": "addRules", "rules": [{"toolName": "Write"}],
            "behavior": "allow", "destination": "session"}]);
        assert_eq!(rules(0), &write);
        let bash = json!({"type": "addRules", "behavior": "allow", "destination": "session",
            "rules": [{"toolName": "Bash", "ruleContent": "touch b.txt"}]});
        assert_eq!(rules(1)[0], bash);
        let turn = play.end();
        assert_eq!(turn.result.text, "Both over.");
        let turn = play.play("[[mock:write2]] again");
        assert!(play.asked.is_empty(), "the real program asked no more");
        assert_eq!(turn.tools().len(), 2);
        assert_eq!(turn.cost(), times(cost, 2.0));
        play.rest();
    }
}
