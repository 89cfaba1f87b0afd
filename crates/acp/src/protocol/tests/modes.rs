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
fn an_agent_that_leaves_the_mode_in_which_it_asks_is_brought_back() {
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
fn an_agent_that_stays_in_a_mode_in_which_it_does_not_ask_is_interrupted() {
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
    talk.order(Order::SetPermission(OrderId(1), PermissionMode::Default));
    let settled = talk.settled();
    let error = settled[0].1.clone().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert!(error.message.contains("is in its mode yolo"), "{error}");

    let mut talk = in_turn(Approve::Everything, &["default", "plan"]);
    let prompt = talk.request("session/prompt");
    mode_is(&mut talk, "plan");
    talk.order(Order::SetPermission(OrderId(2), PermissionMode::Default));
    talk.answer("session/set_mode", json!({}));
    assert_eq!(talk.settled(), [(OrderId(2), Ok(()))]);
    talk.line(json!({"id": prompt, "result": {"stopReason": "end_turn"}}));
    talk.ended();
}

#[test]
fn claude_changes_neither_its_mode_nor_the_settings_of_a_project() {
    for (name, meta, always) in [
        (
            "@agentclientprotocol/claude-agent-acp",
            json!({"claudeCode": {"options": {"disallowedTools": ["EnterPlanMode"]}}}),
            "once",
        ),
        ("another", Value::Null, "always"),
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
