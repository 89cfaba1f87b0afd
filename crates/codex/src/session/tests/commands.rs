//! Commands, and the messages for them. The lines are hand-made.

use teamster_core::{AgentError, Image, ImageSource};

use super::shown::shown;
use super::*;

fn numbered(number: u64) -> CommandId {
    CommandId::new(number)
}

#[test]
fn the_first_words_are_written_at_once() {
    let mut peer = Peer::new(&bypassing());
    assert_eq!(peer.params("initialize")["clientInfo"]["name"], "teamster");
    // Given the directory, the CLI would write into the user's configuration.
    assert_eq!(
        *peer.params("thread/start"),
        json!({"approvalPolicy": "never", "sandbox": "danger-full-access"})
    );
    assert!(peer.written.iter().all(|line| line["jsonrpc"].is_null()));
    assert_eq!(
        peer.methods(),
        ["initialize", "initialized", "thread/start"]
    );
    // A turn waits until there is a session.
    peer.begin("/compact @/etc/passwd");
    assert!(peer.methods().is_empty());
    peer.json(&opened(2));
    assert_eq!(
        *peer.params("turn/start"),
        json!({"threadId": THREAD, "input": [
            {"type": "text", "text": "/compact @/etc/passwd", "text_elements": []}]})
    );
}

#[test]
fn parameters_of_a_new_session() {
    let mut options = SessionOptions::default();
    options.params.model = Some("gpt-5.5".into());
    options.params.system_prompt = Some(teamster_core::SystemPrompt::Append("be brief".into()));
    options.params.output_schema = Some(json!({"type": "object"}));
    let mut peer = Peer::new(&options);
    assert_eq!(
        *peer.params("thread/start"),
        json!({"model": "gpt-5.5", "developerInstructions": "be brief", "approvalPolicy": "never"})
    );
    peer.begin("hi");
    peer.json(&opened(2));
    assert_eq!(
        peer.params("turn/start")["outputSchema"],
        json!({"type": "object"})
    );
    peer.json(&turn_answer(3, "t1"));
    peer.json(&turn_started("t1"));
    peer.json(&message("completed", "t1", "m1", r#"{"a": 1}"#));
    peer.json(&turn_ended("t1", "completed"));
    let (_, result) = peer.over();
    assert_eq!(result.structured_output, Some(json!({"a": 1})));

    options.params.system_prompt = Some(teamster_core::SystemPrompt::Replace("all".into()));
    let peer = Peer::new(&options);
    assert_eq!(peer.params("thread/start")["baseInstructions"], "all");
}

#[test]
fn changed_mode_and_model_apply_from_the_next_turn() {
    let mut options = bypassing();
    options.params.permission = PermissionMode::Default;
    options.params.effort = Some("high".into());
    options.permissions = PermissionPolicy::Allow;
    let mut peer = open_session(&options);
    peer.command(SessionCommand::SetModel(numbered(1), "gpt-6".into()));
    peer.command(SessionCommand::SetModel(numbered(2), " ".into()));
    peer.command(SessionCommand::SetPermission(
        numbered(3),
        PermissionMode::Bypass,
    ));
    assert_eq!(
        peer.settled,
        [
            (numbered(1), Ok(())),
            (numbered(2), Err("model: it is empty".into())),
            (numbered(3), Ok(()))
        ]
    );
    peer.json(&turn_ended("t1", "completed"));
    peer.over();
    peer.begin("again");
    let params = peer.params("turn/start");
    assert_eq!(params["model"], "gpt-6");
    assert_eq!(params["effort"], "high");
    assert_eq!(params["sandboxPolicy"], json!({"type": "dangerFullAccess"}));
    assert_eq!(params["approvalPolicy"], "never");
    peer.json(&turn_answer(4, "t2"));
    peer.json(&turn_ended("t2", "completed"));
    let (events, result) = peer.over();
    assert_eq!(shown(&events)[0], "session gpt-6");
    assert_eq!(result.model.as_deref(), Some("gpt-6"));
    // Back to the session's original settings, which the CLI has reported.
    peer.command(SessionCommand::SetPermission(
        numbered(4),
        PermissionMode::Default,
    ));
    peer.begin("and again");
    let params = peer.params("turn/start");
    assert_eq!(params["model"], "gpt-6");
    assert_eq!(
        params["sandboxPolicy"],
        json!({"type": "readOnly", "networkAccess": false})
    );
    assert_eq!(params["approvalPolicy"], "on-request");
}

#[test]
fn the_plan_mode_is_set_with_a_turn_and_left_with_another_one() {
    let mut options = bypassing();
    options.params.permission = PermissionMode::Plan;
    let mut peer = open_session(&options);
    let plan = json!({"mode": "plan", "settings": {"model": "gpt-5.5", "reasoning_effort": null}});
    assert_eq!(peer.params("turn/start")["collaborationMode"], plan);
    // What the agent proposes is its answer.
    peer.json(&notification(
        "item/plan/delta",
        json!({"turnId": "t1", "itemId": "t1-plan", "delta": "1. Write "}),
    ));
    peer.json(&item(
        "completed",
        "t1",
        &json!({"type": "plan", "id": "t1-plan", "text": "1. Write a test."}),
    ));
    peer.json(&turn_ended("t1", "completed"));
    let (_, result) = peer.over();
    assert_eq!(result.text, "1. Write a test.");
    peer.begin("again");
    assert_eq!(peer.params("turn/start")["collaborationMode"], Value::Null);
    peer.json(&turn_answer(4, "t2"));
    peer.json(&turn_ended("t2", "completed"));
    peer.over();
    let edits = SessionCommand::SetPermission(numbered(1), PermissionMode::AcceptEdits);
    peer.command(edits);
    let back = SessionCommand::SetPermission(numbered(2), PermissionMode::Plan);
    peer.command(back);
    peer.begin("still planning");
    let params = peer.params("turn/start");
    assert_eq!(params["collaborationMode"], Value::Null);
    assert_eq!(params["sandboxPolicy"]["type"], "readOnly");

    // A resumed session is in the mode of its last turn.
    options.params.permission = PermissionMode::Bypass;
    let mut peer = Peer::new(&options);
    peer.begin("do it");
    peer.json(&answer(1, &json!({"userAgent": "x"})));
    peer.json(&answer(
        2,
        &json!({"thread": {"id": THREAD}, "model": "gpt-5.5", "collaborationMode": plan}),
    ));
    let mode = &peer.params("turn/start")["collaborationMode"];
    assert_eq!(mode["mode"], "default");
    assert_eq!(mode["settings"]["model"], "gpt-5.5");
}

#[test]
fn a_new_session_in_the_same_process() {
    let mut peer = open_session(&bypassing());
    let usage = json!({"turnId": "t1", "tokenUsage": {
        "total": {"inputTokens": 5, "outputTokens": 1}, "last": {"inputTokens": 5, "outputTokens": 1}}});
    peer.json(&notification("thread/tokenUsage/updated", usage));
    peer.json(&turn_ended("t1", "completed"));
    peer.over();
    assert_eq!(peer.session.session_id().as_deref(), Some(THREAD));
    peer.methods();
    peer.command(SessionCommand::Clear(numbered(1)));
    assert_eq!(peer.methods(), ["thread/start"]);
    assert!(peer.settled.is_empty());
    // A turn that is too early waits.
    peer.begin("again");
    assert!(peer.methods().is_empty());
    peer.json(&answer(
        4,
        &json!({"thread": {"id": "other"}, "model": "m"}),
    ));
    assert_eq!(peer.settled, [(numbered(1), Ok(()))]);
    assert_eq!(peer.params("thread/unsubscribe")["threadId"], THREAD);
    assert_eq!(peer.params("turn/start")["threadId"], "other");
    // The session is not on disk yet.
    assert_eq!(peer.session.session_id(), None);
    peer.json(&turn_answer(6, "t2"));
    // Remaining lines of the old session belong to no turn.
    peer.json(&message("completed", "t1", "m1", "late"));
    peer.json(
        &json!({"method": "turn/completed", "params": {"threadId": "other",
        "turn": {"id": "t2", "status": "completed"}}}),
    );
    let (events, result) = peer.over();
    assert_eq!(
        shown(&events),
        ["session m", "turn_end false", "done Completed"]
    );
    assert_eq!(result.session_usage, None);
    assert_eq!(peer.session.session_id().as_deref(), Some("other"));
}

#[test]
fn a_session_that_is_cleared_before_it_is_there() {
    let mut options = bypassing();
    options.params.session_id = Some(THREAD.into());
    let mut peer = Peer::new(&options);
    assert_eq!(
        peer.methods(),
        ["initialize", "initialized", "thread/resume"]
    );
    peer.command(SessionCommand::Clear(numbered(1)));
    assert_eq!(peer.methods(), ["thread/start"]);
    peer.json(&opened(2));
    assert!(peer.settled.is_empty());
    assert_eq!(peer.methods(), ["thread/unsubscribe"]);
    peer.json(&answer(3, &json!({"thread": {"id": "other"}})));
    assert_eq!(peer.settled, [(numbered(1), Ok(()))]);
    peer.begin("hi");
    assert_eq!(peer.params("turn/start")["threadId"], "other");
}

#[test]
fn a_new_session_that_is_refused_leaves_the_old_one() {
    let mut peer = open_session(&bypassing());
    peer.json(&turn_ended("t1", "completed"));
    peer.over();
    peer.command(SessionCommand::Clear(numbered(1)));
    peer.json(&json!({"id": 4, "error": {"code": -32603, "message": "it rained"}}));
    assert_eq!(peer.settled, [(numbered(1), Err("it rained".into()))]);
    peer.begin("again");
    assert_eq!(peer.params("turn/start")["threadId"], THREAD);
}

#[test]
fn a_turn_is_interrupted_as_soon_as_it_can_be() {
    let mut peer = Peer::new(&bypassing());
    peer.begin("hi");
    peer.json(&opened(2));
    peer.methods();
    peer.command(SessionCommand::Interrupt);
    peer.json(&turn_answer(3, "t1"));
    // The CLI would report that no turn is active at this point.
    assert!(peer.methods().is_empty());
    peer.json(&turn_started("t1"));
    assert_eq!(peer.methods(), ["turn/interrupt"]);
    peer.command(SessionCommand::Interrupt);
    peer.json(&delta("t1", "m1", "a"));
    assert!(peer.methods().is_empty(), "once is enough");
    // The CLI nevertheless reports that there is none. The request is repeated after the next line of the turn.
    peer.json(
        &json!({"id": 4, "error": {"code": -32600, "message": "no active turn to interrupt"}}),
    );
    assert!(peer.methods().is_empty());
    peer.json(&delta("t1", "m1", "b"));
    assert_eq!(peer.methods(), ["turn/interrupt"]);
    peer.json(&turn_ended("t1", "interrupted"));
    assert!(peer.session.interrupted());
    let (_, result) = peer.over();
    assert_eq!(result.text, "ab");
    peer.begin("again");
    assert!(!peer.session.interrupted());
}

#[test]
fn a_turn_that_the_cli_has_not_heard_of_ends_at_once() {
    let mut peer = Peer::new(&bypassing());
    peer.begin("hi");
    peer.command(SessionCommand::Interrupt);
    assert!(peer.session.interrupted());
    let (events, _) = peer.over();
    assert_eq!(
        shown(&events),
        [
            "turn_end true",
            "error Aborted the run was stopped by its caller",
            "done Aborted"
        ]
    );
    peer.json(&opened(2));
    assert!(!peer.methods().contains(&"turn/start".to_owned()));
    peer.begin("again");
    assert_eq!(peer.methods(), ["turn/start"]);
}

/// The CLI would leave them running.
#[test]
fn commands_of_a_turn_end_with_it_when_it_is_interrupted() {
    let mut peer = open_session(&bypassing());
    peer.json(&command("started", "t1", "c1", "inProgress"));
    peer.json(&command("started", "t1", "c2", "inProgress"));
    peer.json(&command("completed", "t1", "c2", "completed"));
    // A command of an earlier turn.
    peer.json(
        &json!({"method": "turn/started", "params": {"threadId": "old",
        "turn": {"id": "a0", "rootTurnId": "t0"}}}),
    );
    peer.command(SessionCommand::Interrupt);
    assert_eq!(
        peer.params("turn/interrupt"),
        &json!({"threadId": THREAD, "turnId": "t1"})
    );
    peer.written.clear();
    peer.json(&turn_ended("t1", "interrupted"));
    assert_eq!(peer.written.len(), 1);
    assert_eq!(
        peer.params("thread/backgroundTerminals/terminate"),
        &json!({"threadId": THREAD, "processId": "77"})
    );
    peer.over();
}

#[test]
fn early_messages_wait_and_late_ones_are_refused() {
    let mut peer = Peer::new(&bypassing());
    peer.command(SessionCommand::Steer(numbered(1), "no turn".into()));
    assert_eq!(
        peer.settled,
        [(numbered(1), Err(AgentError::no_turn().message))]
    );
    peer.begin("hi");
    peer.command(SessionCommand::Steer(numbered(2), "early".into()));
    peer.json(&opened(2));
    peer.json(&turn_answer(3, "t1"));
    assert_eq!(peer.settled.len(), 1);
    peer.methods();
    peer.json(&turn_started("t1"));
    assert_eq!(peer.methods(), ["turn/steer"]);
    peer.json(&json!({"id": 4, "error": {"code": -32600, "message": "no active turn to steer"}}));
    assert_eq!(
        peer.settled[1],
        (numbered(2), Err("no active turn to steer".into()))
    );
    peer.json(&turn_ended("t1", "completed"));
    peer.over();

    peer.begin("again");
    peer.command(SessionCommand::Steer(numbered(3), "early".into()));
    peer.json(&json!({"id": 5, "error": {"code": -32602, "message": "too long"}}));
    assert_eq!(
        peer.settled[2],
        (numbered(3), Err(AgentError::no_turn().message))
    );
    let (events, _) = peer.over();
    assert_eq!(
        shown(&events),
        [
            "session gpt-5.5",
            "error Invalid too long",
            "turn_end true",
            "done Failed"
        ]
    );
}

#[test]
fn images_stand_before_the_prompt() {
    let file = std::path::PathBuf::from("/made/up/a.png");
    let image = |source| Image {
        media_type: "image/png".into(),
        source,
    };
    let mut peer = Peer::new(&bypassing());
    peer.json(&opened(2));
    let mut turn = Turn::new("what is this?");
    turn.images = vec![
        image(ImageSource::Path(file.clone())),
        image(ImageSource::Bytes(vec![0, 1, 2])),
    ];
    peer.session.begin(turn);
    peer.look();
    assert_eq!(
        peer.params("turn/start")["input"],
        json!([{"type": "localImage", "path": file},
               {"type": "image", "url": "data:image/png;base64,AAEC"},
               {"type": "text", "text": "what is this?", "text_elements": []}])
    );
    peer.json(&turn_answer(3, "t1"));
    peer.json(&turn_ended("t1", "completed"));
    peer.over();
    // An image without a text is a valid prompt.
    let mut turn = Turn::new("");
    turn.images = vec![image(ImageSource::Bytes(vec![0]))];
    peer.session.begin(turn);
    peer.look();
    assert_eq!(
        peer.params("turn/start")["input"].as_array().unwrap().len(),
        1
    );
    peer.json(&turn_answer(4, "t2"));
    peer.json(&turn_ended("t2", "completed"));
    peer.over();
}

#[test]
fn a_prompt_that_the_cli_would_refuse_is_refused_before() {
    for (prompt, code) in [
        (" \n".to_owned(), "INVALID_PARAMS"),
        ("é".repeat((1 << 20) + 1), "PROMPT_TOO_LARGE"),
    ] {
        let mut peer = Peer::new(&bypassing());
        peer.json(&opened(2));
        peer.methods();
        peer.begin(&prompt);
        let (_, result) = peer.over();
        assert_eq!(json!(result.errors[0].code), code);
        assert!(peer.methods().is_empty());
    }
}
