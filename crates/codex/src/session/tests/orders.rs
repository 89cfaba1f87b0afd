//! Orders, and the messages for them. The lines are hand-made.

use teamster_core::{AgentError, Image, ImageSource};

use super::shown::shown;
use super::*;

fn order(number: u64) -> OrderId {
    OrderId(number)
}

#[test]
fn the_first_words_are_written_at_once() {
    let mut play = Play::new(&bypassing());
    assert_eq!(play.params("initialize")["clientInfo"]["name"], "teamster");
    // Given the directory, the CLI would write into the user's configuration.
    assert_eq!(
        *play.params("thread/start"),
        json!({"approvalPolicy": "never", "sandbox": "danger-full-access"})
    );
    assert!(play.written.iter().all(|line| line["jsonrpc"].is_null()));
    assert_eq!(
        play.methods(),
        ["initialize", "initialized", "thread/start"]
    );
    // A turn waits until there is a session.
    play.begin("/compact @/etc/passwd");
    assert!(play.methods().is_empty());
    play.json(&opened(2));
    assert_eq!(
        *play.params("turn/start"),
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
    let mut play = Play::new(&options);
    assert_eq!(
        *play.params("thread/start"),
        json!({"model": "gpt-5.5", "developerInstructions": "be brief", "approvalPolicy": "never"})
    );
    play.begin("hi");
    play.json(&opened(2));
    assert_eq!(
        play.params("turn/start")["outputSchema"],
        json!({"type": "object"})
    );
    play.json(&turn_answer(3, "t1"));
    play.json(&turn_started("t1"));
    play.json(&message("completed", "t1", "m1", r#"{"a": 1}"#));
    play.json(&turn_ended("t1", "completed"));
    let (_, result) = play.over();
    assert_eq!(result.structured_output, Some(json!({"a": 1})));

    options.params.system_prompt = Some(teamster_core::SystemPrompt::Replace("all".into()));
    let play = Play::new(&options);
    assert_eq!(play.params("thread/start")["baseInstructions"], "all");
}

#[test]
fn changed_mode_and_model_apply_from_the_next_turn() {
    let mut options = bypassing();
    options.params.permission = PermissionMode::Default;
    options.params.effort = Some("high".into());
    options.permissions = PermissionPolicy::Allow;
    let mut play = playing(&options);
    play.order(Order::SetModel(order(1), "gpt-6".into()));
    play.order(Order::SetModel(order(2), " ".into()));
    play.order(Order::SetPermission(order(3), PermissionMode::Bypass));
    assert_eq!(
        play.settled,
        [
            (order(1), Ok(())),
            (order(2), Err("model: it is empty".into())),
            (order(3), Ok(()))
        ]
    );
    play.json(&turn_ended("t1", "completed"));
    play.over();
    play.begin("again");
    let params = play.params("turn/start");
    assert_eq!(params["model"], "gpt-6");
    assert_eq!(params["effort"], "high");
    assert_eq!(params["sandboxPolicy"], json!({"type": "dangerFullAccess"}));
    assert_eq!(params["approvalPolicy"], "never");
    play.json(&turn_answer(4, "t2"));
    play.json(&turn_ended("t2", "completed"));
    let (events, result) = play.over();
    assert_eq!(shown(&events)[0], "session gpt-6");
    assert_eq!(result.model.as_deref(), Some("gpt-6"));
    // Back to the session's original settings, which the CLI has reported.
    play.order(Order::SetPermission(order(4), PermissionMode::Default));
    play.begin("and again");
    let params = play.params("turn/start");
    assert_eq!(params["model"], "gpt-6");
    assert_eq!(
        params["sandboxPolicy"],
        json!({"type": "readOnly", "networkAccess": false})
    );
    assert_eq!(params["approvalPolicy"], "on-request");
}

#[test]
fn a_new_session_in_the_same_process() {
    let mut play = playing(&bypassing());
    let usage = json!({"turnId": "t1", "tokenUsage": {
        "total": {"inputTokens": 5, "outputTokens": 1}, "last": {"inputTokens": 5, "outputTokens": 1}}});
    play.json(&notification("thread/tokenUsage/updated", usage));
    play.json(&turn_ended("t1", "completed"));
    play.over();
    assert_eq!(play.session.session_id().as_deref(), Some(THREAD));
    play.methods();
    play.order(Order::Clear(order(1)));
    assert_eq!(play.methods(), ["thread/start"]);
    assert!(play.settled.is_empty());
    // A turn that is too early waits.
    play.begin("again");
    assert!(play.methods().is_empty());
    play.json(&answer(
        4,
        &json!({"thread": {"id": "other"}, "model": "m"}),
    ));
    assert_eq!(play.settled, [(order(1), Ok(()))]);
    assert_eq!(play.params("thread/unsubscribe")["threadId"], THREAD);
    assert_eq!(play.params("turn/start")["threadId"], "other");
    // The session is not on disk yet.
    assert_eq!(play.session.session_id(), None);
    play.json(&turn_answer(6, "t2"));
    // Remaining lines of the old session belong to no turn.
    play.json(&message("completed", "t1", "m1", "late"));
    play.json(
        &json!({"method": "turn/completed", "params": {"threadId": "other",
        "turn": {"id": "t2", "status": "completed"}}}),
    );
    let (events, result) = play.over();
    assert_eq!(
        shown(&events),
        ["session m", "turn_end false", "done Completed"]
    );
    assert_eq!(result.session_usage, None);
    assert_eq!(play.session.session_id().as_deref(), Some("other"));
}

#[test]
fn a_session_that_is_cleared_before_it_is_there() {
    let mut options = bypassing();
    options.params.session_id = Some(THREAD.into());
    let mut play = Play::new(&options);
    assert_eq!(
        play.methods(),
        ["initialize", "initialized", "thread/resume"]
    );
    play.order(Order::Clear(order(1)));
    assert_eq!(play.methods(), ["thread/start"]);
    play.json(&opened(2));
    assert!(play.settled.is_empty());
    assert_eq!(play.methods(), ["thread/unsubscribe"]);
    play.json(&answer(3, &json!({"thread": {"id": "other"}})));
    assert_eq!(play.settled, [(order(1), Ok(()))]);
    play.begin("hi");
    assert_eq!(play.params("turn/start")["threadId"], "other");
}

#[test]
fn a_new_session_that_is_refused_leaves_the_old_one() {
    let mut play = playing(&bypassing());
    play.json(&turn_ended("t1", "completed"));
    play.over();
    play.order(Order::Clear(order(1)));
    play.json(&json!({"id": 4, "error": {"code": -32603, "message": "it rained"}}));
    assert_eq!(play.settled, [(order(1), Err("it rained".into()))]);
    play.begin("again");
    assert_eq!(play.params("turn/start")["threadId"], THREAD);
}

#[test]
fn a_turn_is_interrupted_as_soon_as_it_can_be() {
    let mut play = Play::new(&bypassing());
    play.begin("hi");
    play.json(&opened(2));
    play.methods();
    play.order(Order::Interrupt);
    play.json(&turn_answer(3, "t1"));
    // The CLI would report that no turn is active at this point.
    assert!(play.methods().is_empty());
    play.json(&turn_started("t1"));
    assert_eq!(play.methods(), ["turn/interrupt"]);
    play.order(Order::Interrupt);
    play.json(&delta("t1", "m1", "a"));
    assert!(play.methods().is_empty(), "once is enough");
    // The CLI nevertheless reports that there is none. The request is repeated after the next line of the turn.
    play.json(
        &json!({"id": 4, "error": {"code": -32600, "message": "no active turn to interrupt"}}),
    );
    assert!(play.methods().is_empty());
    play.json(&delta("t1", "m1", "b"));
    assert_eq!(play.methods(), ["turn/interrupt"]);
    play.json(&turn_ended("t1", "interrupted"));
    assert!(play.session.interrupted());
    let (_, result) = play.over();
    assert_eq!(result.text, "ab");
    play.begin("again");
    assert!(!play.session.interrupted());
}

#[test]
fn a_turn_that_the_cli_has_not_heard_of_ends_at_once() {
    let mut play = Play::new(&bypassing());
    play.begin("hi");
    play.order(Order::Interrupt);
    assert!(play.session.interrupted());
    let (events, _) = play.over();
    assert_eq!(
        shown(&events),
        [
            "turn_end true",
            "error Aborted the run was stopped by its caller",
            "done Aborted"
        ]
    );
    play.json(&opened(2));
    assert!(!play.methods().contains(&"turn/start".to_owned()));
    play.begin("again");
    assert_eq!(play.methods(), ["turn/start"]);
}

/// The CLI would leave them running.
#[test]
fn commands_of_a_turn_end_with_it_when_it_is_interrupted() {
    let mut play = playing(&bypassing());
    play.json(&command("started", "t1", "c1", "inProgress"));
    play.json(&command("started", "t1", "c2", "inProgress"));
    play.json(&command("completed", "t1", "c2", "completed"));
    // A command of an earlier turn.
    play.json(
        &json!({"method": "turn/started", "params": {"threadId": "old",
        "turn": {"id": "a0", "rootTurnId": "t0"}}}),
    );
    play.order(Order::Interrupt);
    assert_eq!(
        play.params("turn/interrupt"),
        &json!({"threadId": THREAD, "turnId": "t1"})
    );
    play.written.clear();
    play.json(&turn_ended("t1", "interrupted"));
    assert_eq!(play.written.len(), 1);
    assert_eq!(
        play.params("thread/backgroundTerminals/terminate"),
        &json!({"threadId": THREAD, "processId": "77"})
    );
    play.over();
}

#[test]
fn early_messages_wait_and_late_ones_are_refused() {
    let mut play = Play::new(&bypassing());
    play.order(Order::Steer(order(1), "no turn".into()));
    assert_eq!(
        play.settled,
        [(order(1), Err(AgentError::no_turn().message))]
    );
    play.begin("hi");
    play.order(Order::Steer(order(2), "early".into()));
    play.json(&opened(2));
    play.json(&turn_answer(3, "t1"));
    assert_eq!(play.settled.len(), 1);
    play.methods();
    play.json(&turn_started("t1"));
    assert_eq!(play.methods(), ["turn/steer"]);
    play.json(&json!({"id": 4, "error": {"code": -32600, "message": "no active turn to steer"}}));
    assert_eq!(
        play.settled[1],
        (order(2), Err("no active turn to steer".into()))
    );
    play.json(&turn_ended("t1", "completed"));
    play.over();

    play.begin("again");
    play.order(Order::Steer(order(3), "early".into()));
    play.json(&json!({"id": 5, "error": {"code": -32602, "message": "too long"}}));
    assert_eq!(
        play.settled[2],
        (order(3), Err(AgentError::no_turn().message))
    );
    let (events, _) = play.over();
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
    let mut play = Play::new(&bypassing());
    play.json(&opened(2));
    let mut turn = Turn::new("what is this?");
    turn.images = vec![
        image(ImageSource::Path(file.clone())),
        image(ImageSource::Bytes(vec![0, 1, 2])),
    ];
    play.session.begin(turn);
    play.look();
    assert_eq!(
        play.params("turn/start")["input"],
        json!([{"type": "localImage", "path": file},
               {"type": "image", "url": "data:image/png;base64,AAEC"},
               {"type": "text", "text": "what is this?", "text_elements": []}])
    );
    play.json(&turn_answer(3, "t1"));
    play.json(&turn_ended("t1", "completed"));
    play.over();
    // An image without a text is a valid prompt.
    let mut turn = Turn::new("");
    turn.images = vec![image(ImageSource::Bytes(vec![0]))];
    play.session.begin(turn);
    play.look();
    assert_eq!(
        play.params("turn/start")["input"].as_array().unwrap().len(),
        1
    );
    play.json(&turn_answer(4, "t2"));
    play.json(&turn_ended("t2", "completed"));
    play.over();
}

#[test]
fn a_prompt_that_the_cli_would_refuse_is_refused_before() {
    for (prompt, code) in [
        (" \n".to_owned(), "INVALID_PARAMS"),
        ("é".repeat((1 << 20) + 1), "PROMPT_TOO_LARGE"),
    ] {
        let mut play = Play::new(&bypassing());
        play.json(&opened(2));
        play.methods();
        play.begin(&prompt);
        let (_, result) = play.over();
        assert_eq!(json!(result.errors[0].code), code);
        assert!(play.methods().is_empty());
    }
}
