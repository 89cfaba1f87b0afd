//! Requests of the CLI. The lines are hand-made, in recorded shapes.

use teamster_core::ToolKind;

use super::shown::shown;
use super::*;

fn asking() -> Peer {
    let mut options = bypassing();
    options.params.permission = PermissionMode::AcceptEdits;
    options.permissions = PermissionPolicy::Allow;
    open_session(&options)
}

/// Returns the request that the CLI has just made.
fn asked(peer: &mut Peer) -> PermissionRequest {
    let mut asked = peer.session.outbox(Outbox::take_requests);
    assert_eq!(asked.len(), 1);
    asked.remove(0)
}

fn request(id: &Value, method: &str, mut params: Value) -> Value {
    params["turnId"] = json!("t1");
    let mut request = notification(method, params);
    request["id"] = id.clone();
    request
}

/// Returns the CLI's input for each possible answer.
fn answers(mut ask: impl FnMut(&mut Peer)) -> Vec<Value> {
    let answers = [
        PermissionAnswer::Allow,
        PermissionAnswer::AllowAlways,
        PermissionAnswer::Deny(Some("no".into())),
    ];
    answers
        .into_iter()
        .map(|answer| {
            let mut peer = asking();
            ask(&mut peer);
            let request = asked(&mut peer);
            peer.answer(&request, answer);
            let written = peer.written.pop().unwrap();
            assert!(!written["id"].is_null());
            written["result"].clone()
        })
        .collect()
}

#[test]
fn file_changes_are_shown_in_full_in_the_request() {
    let ask = |peer: &mut Peer| {
        let changes = json!([{"path": "/w/a", "kind": {"type": "delete"}, "diff": "x\n"}]);
        let change = json!({"type": "fileChange", "id": "c1", "changes": changes,
                            "status": "inProgress"});
        peer.json(&item("started", "t1", &change));
        peer.json(&request(
            &json!("x-1"),
            "item/fileChange/requestApproval",
            json!({"itemId": "c1", "reason": null, "grantRoot": null}),
        ));
    };
    let mut peer = asking();
    ask(&mut peer);
    let request = asked(&mut peer);
    assert_eq!(request.tool_name, "file_change");
    assert_eq!(request.kind, ToolKind::Delete);
    assert_eq!(request.tool_id.as_deref(), Some("c1"));
    assert_eq!(request.input["changes"][0]["diff"], "x\n");
    assert_eq!(
        answers(ask),
        [
            json!({"decision": "accept"}),
            json!({"decision": "acceptForSession"}),
            json!({"decision": "decline"})
        ]
    );
}

/// The CLI does not identify the call that it asks about.
#[test]
fn tools_of_servers() {
    let call = |id: &str| {
        json!({"type": "mcpToolCall", "id": id, "server": "s", "tool": "echo",
               "status": "inProgress", "arguments": {"a": 1}})
    };
    let ask = |peer: &mut Peer| {
        peer.json(&item("started", "t1", &call("c1")));
        peer.json(&request(
            &json!(5),
            "mcpServer/elicitation/request",
            json!({"serverName": "s", "mode": "form", "message": "Allow it?",
                   "_meta": {"codex_approval_kind": "mcp_tool_call", "tool_name": "echo",
                             "tool_params": {"a": 1}}}),
        ));
    };
    let mut peer = asking();
    ask(&mut peer);
    let first = asked(&mut peer);
    assert_eq!((&*first.tool_name, first.kind), ("echo", ToolKind::Mcp));
    assert_eq!(first.tool_id.as_deref(), Some("c1"));
    assert_eq!(first.input, json!({"a": 1}));
    assert_eq!(first.message.as_deref(), Some("Allow it?"));
    // A second call of the same tool is asked about while the first one waits.
    peer.json(&item("started", "t1", &call("c2")));
    ask(&mut peer);
    assert_eq!(asked(&mut peer).tool_id.as_deref(), Some("c2"));
    assert_eq!(
        answers(ask),
        [
            json!({"action": "accept", "content": {}, "_meta": null}),
            json!({"action": "accept", "content": {}, "_meta": {"persist": "session"}}),
            json!({"action": "decline", "content": null, "_meta": null})
        ]
    );
}

#[test]
fn permissions_for_some_time() {
    let ask = |peer: &mut Peer| {
        peer.json(&request(
            &json!(0),
            "item/permissions/requestApproval",
            json!({"itemId": "c1", "cwd": "/w", "reason": "net",
                   "permissions": {"network": {"enabled": true}}}),
        ));
    };
    assert_eq!(
        answers(ask),
        [
            json!({"permissions": {"network": {"enabled": true}}, "scope": "turn"}),
            json!({"permissions": {"network": {"enabled": true}}, "scope": "session"}),
            json!({"permissions": {}, "scope": "turn"})
        ]
    );
}

#[test]
fn a_server_s_question_goes_to_the_caller() {
    let schema =
        json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    for (answer, written) in [
        (
            // It has no value for the required field.
            PermissionAnswer::Allow,
            json!({"action": "decline", "content": null, "_meta": null}),
        ),
        (
            PermissionAnswer::AllowWith(json!({"name": "Ada"})),
            json!({"action": "accept", "content": {"name": "Ada"}, "_meta": null}),
        ),
        (
            PermissionAnswer::Deny(None),
            json!({"action": "decline", "content": null, "_meta": null}),
        ),
    ] {
        let mut peer = asking();
        peer.json(&request(
            &json!(0),
            "mcpServer/elicitation/request",
            json!({"serverName": "s", "mode": "form", "message": "Your name?", "_meta": null,
                   "requestedSchema": schema}),
        ));
        let question = asked(&mut peer);
        assert_eq!(question.schema.as_ref(), Some(&schema));
        assert_eq!(question.input, json!({"server": "s"}));
        assert_eq!(
            question.message.as_deref(),
            Some("the MCP server s asks: Your name?")
        );
        peer.answer(&question, answer);
        assert_eq!(
            *peer.written.last().unwrap(),
            json!({"id": 0, "result": written})
        );
    }
}

#[test]
fn a_changed_input_is_denied_with_the_reason() {
    for (method, params, denied) in [
        (
            "item/commandExecution/requestApproval",
            json!({"itemId": "c1", "command": "ls"}),
            json!({"decision": "decline"}),
        ),
        (
            "item/permissions/requestApproval",
            json!({"itemId": "c1", "permissions": {"network": {"enabled": true}}}),
            json!({"permissions": {}, "scope": "turn"}),
        ),
        (
            // The CLI would take this for consent, and use the tool with its original input.
            "mcpServer/elicitation/request",
            json!({"serverName": "s", "mode": "form", "message": "Allow it?",
                   "_meta": {"codex_approval_kind": "mcp_tool_call", "tool_name": "echo",
                             "tool_params": {"a": 1}}}),
            json!({"action": "decline", "content": null, "_meta": null}),
        ),
    ] {
        let mut peer = asking();
        peer.json(&request(&json!(0), method, params));
        let tool = asked(&mut peer);
        assert!(!tool.takes_input, "{method}");
        peer.answer(&tool, PermissionAnswer::AllowWith(json!({"a": 2})));
        assert_eq!(peer.written.last().unwrap()["result"], denied);
        peer.json(&turn_ended("t1", "completed"));
        let (events, _) = peer.over();
        let answer = events.iter().rev().find_map(|event| match event {
            AgentEvent::Permission(e) => Some((e.decision, e.reason.as_deref())),
            _ => None,
        });
        let why = "Codex cannot run a tool with a changed input";
        assert_eq!(answer, Some((Decision::Denied, Some(why))), "{method}");
    }
}

#[test]
fn unknown_requests_are_answered_with_an_error() {
    let mut peer = asking();
    for (id, method) in [
        (json!(0), "item/tool/requestUserInput"),
        (json!("a"), "currentTime/read"),
        (json!(9), "something/new"),
    ] {
        peer.json(&request(&id, method, json!({})));
        assert_eq!(
            *peer.written.last().unwrap(),
            json!({"id": id, "error": {"code": -32601, "message": "method not found"}})
        );
    }
    peer.json(&turn_ended("t1", "completed"));
    assert_eq!(peer.over().1.diagnostics.unknown, 0);
}

fn command_request(id: u64, thread: &str, turn: &str) -> Value {
    json!({"id": id, "method": "item/commandExecution/requestApproval",
           "params": {"threadId": thread, "turnId": turn, "itemId": "c1", "command": "x"}})
}

#[test]
fn requests_without_a_reader_are_declined() {
    let declined = |id: u64| json!({"id": id, "result": {"decision": "decline"}});
    let mut peer = asking();
    peer.json(&command_request(0, THREAD, "t0"));
    assert_eq!(*peer.written.last().unwrap(), declined(0));
    peer.json(&command_request(1, "other", "t1"));
    assert_eq!(*peer.written.last().unwrap(), declined(1));
    peer.json(&turn_ended("t1", "completed"));
    let (events, _) = peer.over();
    assert_eq!(
        shown(&events),
        ["session gpt-5.5", "turn_end false", "done Completed"]
    );
    peer.json(&command_request(2, THREAD, "t1"));
    assert_eq!(*peer.written.last().unwrap(), declined(2));
    assert_eq!(peer.session.turn(), None, "no turn begins by it");
}

#[test]
fn an_agent_asks_for_the_turn_and_is_not_left_waiting() {
    let mut peer = asking();
    peer.json(
        &json!({"method": "turn/started", "params": {"threadId": "agent",
        "turn": {"id": "a1", "rootTurnId": "t1"}}}),
    );
    let mut call = command("started", "a1", "c1", "inProgress");
    call["params"]["threadId"] = json!("agent");
    peer.json(&call);
    peer.json(&command_request(7, "agent", "a1"));
    let request = asked(&mut peer);
    assert_eq!(request.tool_id.as_deref(), Some("c1"));
    peer.json(&turn_ended("t1", "completed"));
    assert!(!peer.session.is_over(), "it waits for the answer");
    // The agent cannot be interrupted, so its end is not awaited.
    peer.command(SessionCommand::Interrupt);
    let id = peer.written.last().unwrap()["id"].clone();
    peer.json(&json!({"id": id, "error": {"code": -32600, "message": "no active turn"}}));
    let withdrawn = peer.session.outbox(Outbox::take_withdrawn);
    assert_eq!(withdrawn, [request.id]);
    let declined = json!({"id": 7, "result": {"decision": "decline"}});
    assert!(peer.written.contains(&declined));
    peer.over();
}

#[test]
fn a_request_that_needs_no_answer_any_more_is_withdrawn() {
    let mut peer = asking();
    peer.json(&command("started", "t1", "c1", "inProgress"));
    peer.json(&command_request(0, THREAD, "t1"));
    peer.json(&command_request(1, THREAD, "t1"));
    let asked = peer.session.outbox(Outbox::take_requests);
    peer.json(&notification(
        "serverRequest/resolved",
        json!({"requestId": 0}),
    ));
    assert_eq!(peer.session.outbox(Outbox::take_withdrawn), [asked[0].id]);
    peer.written.clear();
    peer.answer(&asked[0], PermissionAnswer::Allow);
    assert!(peer.written.is_empty(), "it is not answered");
    // The end of the turn withdraws the other requests.
    peer.json(&turn_ended("t1", "interrupted"));
    assert_eq!(peer.session.outbox(Outbox::take_withdrawn), [asked[1].id]);
    peer.over();
    peer.answer(&asked[1], PermissionAnswer::Allow);
    assert!(!peer.methods().contains(&"answer".to_owned()));
}
