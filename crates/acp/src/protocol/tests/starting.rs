//! Start of a session.

use teamster_core::{ErrorKind, McpServer, RunStatus};

use super::*;
use crate::settings::Approve;

#[test]
fn a_turn_waits_until_the_session_is_ready() {
    let mut talk = Talk::new(settings());
    talk.begin("hi");
    let written = talk.written();
    assert_eq!(written.len(), 1);
    let params = &written[0]["params"];
    assert_eq!(params["protocolVersion"], 1);
    assert_eq!(params["clientCapabilities"]["fs"]["readTextFile"], false);
    assert_eq!(params["clientCapabilities"]["terminal"], false);
    assert_eq!(params["clientInfo"]["name"], "teamster");
    talk.line(json!({"id": 1, "result": {"protocolVersion": 1}}));
    let written = talk.written();
    assert_eq!(written[0]["method"], "session/new");
    assert_eq!(
        written[0]["params"],
        json!({"cwd": "/work", "mcpServers": []})
    );
    talk.line(json!({"id": 2, "result": {"sessionId": SESSION}}));
    let written = talk.written();
    assert_eq!(
        written[0]["params"],
        json!({"sessionId": SESSION, "prompt": [{"type": "text", "text": "hi"}]})
    );
    assert_eq!(talk.assembler.session_id(), None, "it has no turn yet");
    talk.line(json!({"id": "3", "result": {"stopReason": "end_turn"}}));
    let events = talk.ended();
    assert_eq!(names(&events), ["session", "turn_end", "done"]);
    assert_eq!(result(&events).status, RunStatus::Completed);
    assert_eq!(result(&events).session_id.as_deref(), Some(SESSION));
}

#[test]
fn text_of_another_program_in_its_lines_is_a_notice() {
    // Made by hand: a banner, terminal codes and two messages in a line.
    let mut talk = Talk::new(settings());
    talk.begin("hi");
    let id = talk.request("initialize");
    let hello = format!(
        "\u{1b}[2K(node) warning {{x}} {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"protocolVersion\":1}}}}"
    );
    talk.assembler.line(hello.as_bytes());
    let id = talk.request("session/new");
    let session = json!({"jsonrpc": "2.0", "id": id, "result": {"sessionId": SESSION}});
    talk.assembler
        .line(format!("{session}\u{1b}[0m ready").as_bytes());
    let id = talk.request("session/prompt");
    let text = json!({"jsonrpc": "2.0", "method": "session/update", "params": {
        "sessionId": SESSION, "update": {"sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": "Hello"}}}});
    let end = json!({"jsonrpc": "2.0", "id": id, "result": {"stopReason": "end_turn"}});
    talk.assembler.line(format!("{text}{end}").as_bytes());
    let events = talk.ended();
    assert_eq!(
        names(&events),
        ["notice", "session", "notice", "text", "turn_end", "done"]
    );
    let notices = events.iter().filter_map(|event| match event {
        AgentEvent::Notice(e) => Some(e.message.as_str()),
        _ => None,
    });
    assert!(notices.eq(["(node) warning {x}", "ready"]));
    assert_eq!(result(&events).status, RunStatus::Completed);
    assert_eq!(result(&events).text, "Hello");
    assert_eq!(result(&events).diagnostics.malformed, 2);
}

#[test]
fn a_failed_start_ends_the_turn_and_the_next_turn_retries() {
    let mut talk = Talk::new(settings());
    talk.begin("one");
    talk.refuse("initialize", -32603, "it rained");
    let events = talk.ended();
    assert_eq!(names(&events), ["error", "turn_end", "done"]);
    assert_eq!(result(&events).errors[0].message, "it rained");

    talk.begin("two");
    talk.answer("initialize", json!({"protocolVersion": 2}));
    let events = talk.ended();
    assert_eq!(result(&events).errors[0].kind, ErrorKind::Protocol);

    talk.begin("three");
    talk.initialized(json!({}));
    talk.refuse("session/new", -32000, "Authentication required");
    let events = talk.ended();
    assert_eq!(result(&events).errors[0].kind, ErrorKind::Auth);

    talk.begin("four");
    talk.answer("session/new", json!({}));
    let events = talk.ended();
    assert_eq!(result(&events).errors[0].kind, ErrorKind::Protocol, "no id");

    talk.begin("five");
    talk.answer("session/new", json!({"sessionId": SESSION}));
    talk.text("here");
    assert_eq!(result(&talk.end("end_turn")).text, "here");
}

#[test]
fn a_session_is_resumed_by_the_method_that_the_agent_has() {
    let mut old = settings();
    old.session_id = Some("old".into());
    let method = |settings: &AcpSettings, capabilities: Value| {
        let mut talk = Talk::new(settings.clone());
        talk.begin("hi");
        talk.initialized(capabilities);
        match talk.written().as_slice() {
            [] => Err(result(&talk.ended()).errors[0].message.clone()),
            [request] => Ok(request["method"].as_str().unwrap().to_owned()),
            more => panic!("{more:?}"),
        }
    };
    let resume = json!({"loadSession": true, "sessionCapabilities": {"resume": {}, "fork": {}}});
    let load = json!({"loadSession": true});
    assert_eq!(method(&old, resume.clone()).unwrap(), "session/resume");
    assert_eq!(method(&old, load.clone()).unwrap(), "session/load");
    let error = method(&old, json!({})).unwrap_err();
    assert!(error.starts_with("session_id: Agent cannot"), "{error}");
    old.fork = true;
    assert_eq!(method(&old, resume).unwrap(), "session/fork");
    let error = method(&old, load).unwrap_err();
    assert!(error.starts_with("fork: "), "{error}");
}

#[test]
fn earlier_turns_are_not_reported_again() {
    let mut old = settings();
    old.session_id = Some("old".into());
    let mut talk = Talk::new(old);
    talk.begin("hi");
    talk.initialized(json!({"loadSession": true}));
    talk.text("long ago");
    talk.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t", "status": "completed"}));
    talk.update(json!({"sessionUpdate": "user_message_chunk", "content": {}}));
    talk.answer("session/load", json!({}));
    assert_eq!(talk.assembler.session_id().as_deref(), Some("old"));
    // Copilot 1.0.102 does so with a call that broke off with its process.
    talk.line(
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "old", "update":
               {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "failed"}}}),
    );
    let events = talk.end("end_turn");
    assert_eq!(names(&events), ["session", "turn_end", "done"]);
    assert_eq!(result(&events).session_id.as_deref(), Some("old"));
}

#[test]
fn servers_are_reported_as_far_as_the_agent_takes_them() {
    let mut with = settings();
    with.mcp_servers = vec![
        McpServer::stdio("a", "srv", ["-x"]).env("TOKEN", "sk-123456"),
        McpServer::http("b", "https://h/mcp").header("Authorization", "Bearer x"),
    ];
    let mut talk = Talk::new(with.clone());
    talk.initialized(json!({"mcpCapabilities": {"http": true}}));
    let written = talk.written();
    assert_eq!(
        written[0]["params"]["mcpServers"],
        json!([
            {"name": "a", "command": "srv", "args": ["-x"],
             "env": [{"name": "TOKEN", "value": "sk-123456"}]},
            {"type": "http", "name": "b", "url": "https://h/mcp",
             "headers": [{"name": "Authorization", "value": "Bearer x"}]}
        ])
    );
    let mut talk = Talk::new(with);
    talk.begin("hi");
    talk.initialized(json!({}));
    let events = talk.ended();
    assert_eq!(
        result(&events).errors[0].message,
        "mcp_servers: b: Agent does not support http servers"
    );
}

#[test]
fn model_and_effort_are_chosen_as_the_session_offers_them() {
    let mut with = settings();
    with.model = Some("m2".into());
    with.effort = Some("high".into());
    let mut talk = Talk::new(with.clone());
    talk.begin("hi");
    talk.initialized(json!({}));
    let options = json!([
        {"id": "mod", "category": "model", "currentValue": "m1"},
        {"id": "thk", "category": "thought_level", "currentValue": "low"},
        "odd"
    ]);
    talk.answer(
        "session/new",
        json!({"sessionId": SESSION, "models": {"currentModelId": "m1"}, "configOptions": options}),
    );
    talk.answer("session/set_model", json!({}));
    let written = talk.written();
    assert_eq!(
        written[0]["params"],
        json!({"sessionId": SESSION, "configId": "thk", "value": "high"})
    );
    talk.line(json!({"id": 4, "result": null}));
    let events = talk.end("end_turn");
    assert_eq!(result(&events).model.as_deref(), Some("m2"));

    // The session offers neither, so they cannot be set.
    let mut talk = Talk::new(with);
    talk.begin("hi");
    talk.initialized(json!({}));
    talk.answer("session/new", json!({"sessionId": SESSION}));
    let events = talk.ended();
    assert_eq!(
        result(&events).errors[0].message,
        "model: Agent does not let clients choose it"
    );
}

#[test]
fn a_turn_that_is_interrupted_before_it_was_sent_is_not_sent() {
    let mut talk = Talk::new(settings());
    talk.begin("hi");
    talk.command(SessionCommand::Interrupt);
    let events = talk.ended();
    assert_eq!(result(&events).status, RunStatus::Aborted);
    talk.initialized(json!({}));
    talk.answer("session/new", json!({"sessionId": SESSION}));
    assert!(talk.written().is_empty());
    talk.begin("again");
    talk.text("here");
    assert_eq!(result(&talk.end("end_turn")).text, "here");
}

#[test]
fn process_end_before_the_session_ends_the_turn() {
    let mut talk = Talk::new(settings());
    talk.begin("hi");
    let exit = Exit {
        code: Some(1),
        stderr: "\u{1b}[31mno key\u{1b}[0m".into(),
        ..Exit::default()
    };
    talk.assembler.finish(exit, 0);
    let events: Vec<_> = talk.assembler.out().drain().collect();
    assert_eq!(names(&events), ["error", "done"]);
    assert_eq!(result(&events).errors[0].message, "no key");
}

/// Opens a session with these modes. Returns the mode that is set, or the error of the turn.
fn first_mode(current: &str, offered: &[&str], approve: Approve) -> Result<Option<String>, String> {
    let mut with = settings();
    with.approve = approve;
    let mut talk = Talk::new(with);
    talk.begin("hi");
    talk.initialized(json!({}));
    let modes: Vec<_> = offered
        .iter()
        .map(|id| json!({"id": id, "name": id}))
        .collect();
    talk.answer(
        "session/new",
        json!({"sessionId": SESSION, "modes": {"currentModeId": current, "availableModes": modes}}),
    );
    let written = talk.written();
    match written.first().map(|line| line["method"].clone()) {
        Some(method) if method == "session/set_mode" => {
            Ok(written[0]["params"]["modeId"].as_str().map(str::to_owned))
        }
        Some(_) => Ok(None),
        None => Err(result(&talk.ended()).errors[0].message.clone()),
    }
}

#[test]
fn an_agent_is_set_to_the_mode_in_which_it_asks() {
    let claude = [
        "auto",
        "default",
        "acceptEdits",
        "plan",
        "bypassPermissions",
    ];
    let is = |mode: &str| Ok(Some(mode.to_owned()));
    for approve in [Approve::Nothing, Approve::Edits, Approve::Everything] {
        assert_eq!(first_mode("auto", &claude, approve), is("default"));
        assert_eq!(first_mode("plan", &claude, approve), is("default"));
        assert_eq!(first_mode("default", &claude, approve), Ok(None));
    }
    assert_eq!(
        first_mode("acceptEdits", &claude, Approve::Nothing),
        is("default")
    );
    // It would allow commands too, and remain when the session is brought to a stricter mode.
    assert_eq!(
        first_mode("acceptEdits", &claude, Approve::Edits),
        is("default")
    );
    assert_eq!(
        first_mode("bypassPermissions", &claude, Approve::Edits),
        is("default")
    );
    assert_eq!(
        first_mode("bypassPermissions", &claude, Approve::Everything),
        is("default")
    );
    assert_eq!(
        first_mode("acceptEdits", &["acceptEdits"], Approve::Edits),
        Ok(None)
    );
    // Modes of an agent's own, which may ask.
    assert_eq!(
        first_mode("auto", &["read-only", "auto"], Approve::Nothing),
        Ok(None)
    );
    let error = first_mode("yolo", &["yolo", "plan"], Approve::Nothing).unwrap_err();
    assert!(
        error.starts_with("permission: Agent is in its mode yolo"),
        "{error}"
    );
    assert_eq!(first_mode("yolo", &["yolo"], Approve::Everything), Ok(None));
    // Denies what it would ask about.
    assert_eq!(
        first_mode("dontAsk", &["default", "dontAsk"], Approve::Everything),
        is("default")
    );
}

#[test]
fn a_mode_may_be_a_setting() {
    let mut talk = Talk::new(settings());
    talk.initialized(json!({}));
    talk.answer(
        "session/new",
        json!({"sessionId": SESSION, "configOptions": [{"id": "m", "category": "mode",
            "currentValue": "auto", "options": [{"value": "auto"}, {"value": "default"}]}]}),
    );
    let params = talk.written()[0]["params"].clone();
    assert_eq!(
        params,
        json!({"sessionId": SESSION, "configId": "m", "value": "default"})
    );
}
