//! Commands outside of turns.

use teamster_core::{ErrorKind, PermissionMode};

use super::*;

#[test]
fn a_refused_order_has_the_agents_message() {
    let mut talk = Talk::ready();
    talk.command(SessionCommand::SetModel(CommandId::new(1), "m2".into()));
    talk.refuse("session/set_model", -32602, "no such model");
    let settled = talk.settled();
    assert_eq!(settled.len(), 1);
    let error = settled[0].1.clone().unwrap_err();
    assert_eq!(error.message, "no such model");
    assert_eq!(error.kind, ErrorKind::Invalid);

    talk.command(SessionCommand::SetModel(CommandId::new(2), "m3".into()));
    talk.answer("session/set_model", json!({}));
    assert_eq!(talk.settled(), [(CommandId::new(2), Ok(()))]);
    talk.command(SessionCommand::Steer(CommandId::new(3), "more".into()));
    talk.command(SessionCommand::SetPermission(
        CommandId::new(4),
        PermissionMode::ReadOnly,
    ));
    let settled = talk.settled();
    assert_eq!(settled.len(), 2);
    assert!(settled.iter().all(|(_, result)| result.is_err()));
    assert!(talk.written().is_empty());
}

#[test]
fn orders_wait_for_the_session_and_are_refused_with_it() {
    let mut talk = Talk::new(settings());
    talk.command(SessionCommand::SetModel(CommandId::new(1), "m2".into()));
    talk.initialized(json!({}));
    talk.answer("session/new", json!({"sessionId": SESSION}));
    talk.answer("session/set_model", json!({}));
    assert_eq!(talk.settled(), [(CommandId::new(1), Ok(()))]);

    let mut talk = Talk::new(settings());
    talk.command(SessionCommand::Clear(CommandId::new(1)));
    talk.command(SessionCommand::SetModel(CommandId::new(2), "m2".into()));
    talk.refuse("initialize", -32000, "no");
    let settled = talk.settled();
    assert_eq!(settled.len(), 2);
    assert!(settled.iter().all(|(_, result)| result.is_err()));
}

#[test]
fn clear_opens_another_session_with_the_chosen_model() {
    let mut talk = Talk::ready();
    talk.begin("one");
    talk.text("a");
    talk.end("end_turn");
    assert_eq!(talk.assembler.session_id().as_deref(), Some(SESSION));
    talk.command(SessionCommand::SetModel(CommandId::new(1), "m2".into()));
    talk.answer("session/set_model", json!({}));
    talk.command(SessionCommand::Clear(CommandId::new(2)));
    talk.answer("session/new", json!({"sessionId": "s2"}));
    assert_eq!(
        talk.settled(),
        [(CommandId::new(1), Ok(())), (CommandId::new(2), Ok(()))]
    );
    assert_eq!(talk.assembler.session_id(), None);
    talk.begin("two");
    let written = talk.written();
    assert_eq!(
        written[0]["params"],
        json!({"sessionId": "s2", "modelId": "m2"})
    );
    talk.line(json!({"id": written[0]["id"], "result": {}}));
    let events = talk.end("end_turn");
    assert_eq!(names(&events), ["session", "turn_end", "done"]);
    assert_eq!(result(&events).session_id.as_deref(), Some("s2"));
    assert_eq!(result(&events).model.as_deref(), Some("m2"));

    talk.command(SessionCommand::Clear(CommandId::new(3)));
    talk.refuse("session/new", -32603, "no");
    assert!(talk.settled()[0].1.is_err());
    talk.begin("three");
    assert_eq!(
        result(&talk.end("end_turn")).session_id.as_deref(),
        Some("s2")
    );
}

#[test]
fn new_session_without_an_asking_mode_keeps_the_current_one() {
    let mut talk = Talk::ready();
    talk.command(SessionCommand::Clear(CommandId::new(1)));
    talk.answer(
        "session/new",
        json!({"sessionId": "s2", "modes": {"currentModeId": "yolo", "availableModes": []}}),
    );
    let settled = talk.settled();
    assert!(settled[0].1.is_err(), "{settled:?}");
    talk.begin("one");
    let written = talk.written();
    assert_eq!(written[0]["params"]["sessionId"], SESSION);
}

#[test]
fn a_cancellation_error_is_an_interruption() {
    let mut talk = Talk::ready();
    talk.begin("one");
    let prompt = talk.request("session/prompt");
    talk.command(SessionCommand::Interrupt);
    talk.line(json!({"id": prompt, "error": {"code": -32800, "message": "Request cancelled"}}));
    let events = talk.ended();
    assert!(result(&events).aborted);
    assert_eq!(result(&events).errors.len(), 1);
}
