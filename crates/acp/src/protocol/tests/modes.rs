//! Modes that the agent leaves by itself.

use teamster_core::{ErrorKind, PermissionAnswer, PermissionMode, RunStatus};

use super::*;
use crate::settings::Approve;

/// Begins a turn with an agent that has these modes and is in the first one.
fn in_turn(approve: Approve, modes: &[&str]) -> Talk {
    let mut with = settings();
    with.approve = approve;
    let mut talk = Talk::new(with);
    talk.initialized(json!({}));
    let offered: Vec<_> = modes
        .iter()
        .map(|id| json!({"id": id, "name": id}))
        .collect();
    talk.answer(
        "session/new",
        json!({"sessionId": SESSION, "modes": {"currentModeId": modes[0], "availableModes": offered}}),
    );
    talk.begin("hi");
    talk
}

fn mode_is(talk: &mut Talk, mode: &str) {
    talk.update(json!({"sessionUpdate": "current_mode_update", "currentModeId": mode}));
}

#[test]
fn agent_that_leaves_the_asking_mode_is_set_back() {
    for approve in [Approve::Nothing, Approve::Edits] {
        let mut talk = in_turn(approve, &["default", "plan", "bypassPermissions"]);
        let prompt = talk.request("session/prompt");
        mode_is(&mut talk, "plan");
        mode_is(&mut talk, "plan");
        let written = talk.written();
        assert_eq!(written.len(), 1, "{written:?}");
        assert_eq!(
            written[0]["params"],
            json!({"sessionId": SESSION, "modeId": "default"})
        );
        talk.line(json!({"id": written[0]["id"], "result": {}}));
        mode_is(&mut talk, "default");
        assert!(talk.written().is_empty());
        talk.line(json!({"id": prompt, "result": {"stopReason": "end_turn"}}));
        assert_eq!(result(&talk.ended()).status, RunStatus::Completed);
    }
    // What would be requested is allowed anyway, and the model's plan mode denies.
    let mut talk = in_turn(Approve::Everything, &["default", "plan"]);
    let prompt = talk.request("session/prompt");
    mode_is(&mut talk, "plan");
    assert!(talk.written().is_empty());
    talk.line(json!({"id": prompt, "result": {"stopReason": "end_turn"}}));
    talk.ended();
    // The next turn begins in the mode in which it asks.
    talk.begin("two");
    talk.answer("session/set_mode", json!({}));
    talk.end("end_turn");
    talk.begin("three");
    talk.end("end_turn");
}

#[test]
fn agent_that_stays_in_another_mode_is_interrupted() {
    let mut talk = in_turn(Approve::Nothing, &["default", "plan"]);
    let prompt = talk.request("session/prompt");
    mode_is(&mut talk, "plan");
    talk.refuse("session/set_mode", -32603, "not now");
    let written = talk.written();
    assert_eq!(written[0]["method"], "session/cancel");
    talk.line(json!({"id": prompt, "result": {"stopReason": "cancelled"}}));
    let events = talk.ended();
    assert_eq!(result(&events).status, RunStatus::Aborted);
    let warned = events.iter().any(|event| {
        matches!(event, AgentEvent::Notice(notice) if notice.message.ends_with("interrupted: not now"))
    });
    assert!(warned, "{events:?}");
    // And no other turn begins there.
    talk.begin("two");
    talk.refuse("session/set_mode", -32603, "not now");
    assert_eq!(result(&talk.ended()).errors[0].message, "not now");

    // One that has no mode in which it asks.
    let mut talk = in_turn(Approve::Nothing, &["plan", "yolo"]);
    talk.request("session/prompt");
    mode_is(&mut talk, "yolo");
    assert_eq!(talk.written()[0]["method"], "session/cancel");
}

#[test]
fn a_mode_that_is_a_setting_is_set_back_as_one() {
    let options = |mode: &str| {
        json!([{"id": "m", "category": "mode", "currentValue": mode,
                "options": [{"value": "plan"}, {"value": "default"}]}])
    };
    let mut talk = Talk::new(settings());
    talk.initialized(json!({}));
    talk.answer(
        "session/new",
        json!({"sessionId": SESSION, "configOptions": options("default")}),
    );
    talk.begin("hi");
    talk.request("session/prompt");
    talk.update(json!({"sessionUpdate": "config_option_update", "configOptions": options("plan")}));
    let written = talk.written();
    assert_eq!(
        written[0]["params"],
        json!({"sessionId": SESSION, "configId": "m", "value": "default"})
    );
}

#[test]
fn a_stricter_mode_is_refused_where_the_agent_does_not_ask() {
    let mut talk = in_turn(Approve::Everything, &["yolo", "plan"]);
    talk.end("end_turn");
    talk.command(SessionCommand::SetPermission(
        CommandId::new(1),
        PermissionMode::Default,
    ));
    let settled = talk.settled();
    let error = settled[0].1.clone().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert!(error.message.contains("is in its mode yolo"), "{error}");

    let mut talk = in_turn(Approve::Everything, &["default", "plan"]);
    let prompt = talk.request("session/prompt");
    mode_is(&mut talk, "plan");
    talk.command(SessionCommand::SetPermission(
        CommandId::new(2),
        PermissionMode::Default,
    ));
    talk.answer("session/set_mode", json!({}));
    assert_eq!(talk.settled(), [(CommandId::new(2), Ok(()))]);
    talk.line(json!({"id": prompt, "result": {"stopReason": "end_turn"}}));
    talk.ended();
}

/// The agent requests permission for an edit. Returns whether it was approved without a request to the caller.
fn is_approved(talk: &mut Talk, id: u64) -> bool {
    talk.line(
        json!({"id": id, "method": "session/request_permission", "params": {
        "sessionId": SESSION, "toolCall": {"toolCallId": format!("t{id}"), "title": "a", "kind": "edit"},
        "options": [{"optionId": "once", "name": "Once", "kind": "allow_once"}]}}),
    );
    let asked = talk.asked();
    let written = talk.written();
    assert_eq!(asked.len() + written.len(), 1, "{asked:?} {written:?}");
    written
        .iter()
        .all(|line| line["result"]["outcome"]["optionId"] == "once")
        && asked.is_empty()
}

#[test]
fn a_refused_mode_leaves_the_permissions_as_they_were() {
    let bypass = |id| SessionCommand::SetPermission(CommandId::new(id), PermissionMode::Bypass);
    let no = |id: &Value| json!({"id": id, "error": {"code": -32603, "message": "not now"}});
    let yes = |id: &Value| json!({"id": id, "result": {}});
    let mut talk = in_turn(Approve::Nothing, &["default", "plan"]);
    talk.request("session/prompt");
    mode_is(&mut talk, "plan");
    talk.request("session/set_mode");
    talk.command(bypass(1));
    // It counts at once, and no longer after the refusal.
    let first = json!(talk.request("session/set_mode"));
    assert!(is_approved(&mut talk, 11));
    talk.line(no(&first));
    assert!(talk.settled()[0].1.is_err());
    assert!(!is_approved(&mut talk, 12));

    // The newest of two counts, and a refusal leaves what was confirmed.
    talk.command(bypass(2));
    let first = json!(talk.request("session/set_mode"));
    talk.command(SessionCommand::SetPermission(
        CommandId::new(3),
        PermissionMode::Default,
    ));
    let second = json!(talk.request("session/set_mode"));
    assert!(!is_approved(&mut talk, 13));
    talk.line(no(&first));
    talk.line(no(&second));
    assert!(!is_approved(&mut talk, 14));
    talk.command(bypass(4));
    let first = json!(talk.request("session/set_mode"));
    talk.line(yes(&first));
    assert!(is_approved(&mut talk, 15));
    // Nothing is sent for this one: the agent is in its mode now.
    talk.command(SessionCommand::SetPermission(
        CommandId::new(5),
        PermissionMode::Default,
    ));
    assert!(talk.written().is_empty());
    assert!(!is_approved(&mut talk, 16));
}

#[test]
fn refused_mode_of_another_teamster_keeps_the_permissions() {
    let dialect = PlainDialect::new("x").teamster(true);
    let mut talk = Talk::with(Box::new(dialect), settings());
    talk.initialized(json!({}));
    talk.answer("session/new", json!({"sessionId": SESSION}));
    talk.begin("hi");
    talk.request("session/prompt");
    talk.command(SessionCommand::SetPermission(
        CommandId::new(1),
        PermissionMode::Bypass,
    ));
    talk.refuse("session/set_mode", -32603, "not now");
    assert!(talk.settled()[0].1.is_err());
    assert!(!is_approved(&mut talk, 11));
}

#[test]
fn claude_keeps_its_mode_and_the_project_settings() {
    let without_plan =
        || json!({"claudeCode": {"options": {"disallowedTools": ["EnterPlanMode"]}}});
    for (name, meta, always) in [
        (
            "@agentclientprotocol/claude-agent-acp",
            without_plan(),
            "once",
        ),
        ("claude-code-acp", without_plan(), "once"),
        ("not-claude-code-acp", Value::Null, "always"),
    ] {
        let mut talk = Talk::new(settings());
        talk.begin("hi");
        talk.answer(
            "initialize",
            json!({"protocolVersion": 1, "agentInfo": {"name": name, "version": "1"}}),
        );
        let opening = talk.written();
        assert_eq!(opening[0]["params"]["_meta"], meta);
        talk.line(json!({"id": opening[0]["id"], "result": {"sessionId": SESSION}}));
        talk.request("session/prompt");
        talk.line(
            json!({"id": 7, "method": "session/request_permission", "params": {
            "sessionId": SESSION, "toolCall": {"toolCallId": "t1", "title": "ls", "kind": "execute",
            "rawInput": {"command": "ls"}}, "options": [
                {"optionId": "always", "name": "Always", "kind": "allow_always"},
                {"optionId": "once", "name": "Once", "kind": "allow_once"}]}}),
        );
        let asked = talk.asked();
        talk.assembler
            .answer(&asked[0], PermissionAnswer::AllowAlways);
        let answered = talk.written();
        assert_eq!(answered[0]["result"]["outcome"]["optionId"], always);
    }
}
