//! Sessions: new, load, resume, list, close.

use teamster_core::McpServer;

use super::*;

#[test]
fn a_new_session_is_refused_where_the_agent_cannot_begin() {
    let mut editor = Editor::new();
    editor.call(1, "session/new", json!({"cwd": "/w", "mcpServers": []}));
    let Some(Action::Prepare { ticket, setup }) = editor.actions.pop() else {
        panic!();
    };
    assert_eq!(setup.agent.as_deref(), Some("claude"));
    let error = AgentError::new(Code::CliNotFound, ErrorKind::Auth, "log in with `claude`");
    editor.host(|server, out| server.prepared(ticket, Err(error), out));
    let answer = editor.answer(1);
    assert_eq!(answer["error"]["code"], -32000);
    assert_eq!(answer["error"]["message"], "log in with `claude`");
    assert_eq!(answer["error"]["data"]["teamster"]["kind"], "auth");

    editor.call(2, "session/new", json!({"cwd": "w", "mcpServers": []}));
    assert_eq!(editor.answer(2)["error"]["code"], -32602);
    editor.call(3, "session/new", json!({"mcpServers": []}));
    assert!(
        editor.answer(3)["error"]["message"]
            .as_str()
            .unwrap()
            .contains("cwd")
    );
    // Made by hand: MCP servers of another form, and none at all.
    for (id, params) in [
        (4, json!({"cwd": "/w", "mcpServers": "x"})),
        (
            5,
            json!({"cwd": "/w", "mcpServers": {"a": {"command": "/bin/a"}}}),
        ),
        (6, json!({"cwd": "/w"})),
    ] {
        editor.call(id, "session/new", params);
        assert_eq!(editor.answer(id)["error"]["code"], -32602, "{id}");
    }
}

#[test]
fn the_editor_s_folders_and_servers_are_in_the_setup() {
    let mut editor = Editor::new();
    editor.call(
        1,
        "session/new",
        json!({"cwd": "/w", "additionalDirectories": ["/other"], "mcpServers": [
            {"name": "a", "command": "/bin/a", "args": ["x"], "env": [{"name": "K", "value": "v"}]},
            {"type": "http", "name": "b", "url": "https://b", "headers": [{"name": "H", "value": "1"}]},
            {"type": "sse", "name": "c", "url": "https://c", "headers": []}]}),
    );
    let Some(Action::Prepare { setup, .. }) = editor.actions.pop() else {
        panic!();
    };
    assert_eq!(setup.cwd, Path::new("/w"));
    assert_eq!(setup.add_dirs, [Path::new("/other")]);
    assert_eq!(
        setup.mcp_servers,
        [
            McpServer::stdio("a", "/bin/a", ["x"]).env("K", "v"),
            McpServer::http("b", "https://b").header("H", "1"),
            McpServer::sse("c", "https://c"),
        ]
    );
}

#[test]
fn a_session_is_loaded_with_its_log_and_resumed_without() {
    let entry = |event: Value| -> RunLogEntry {
        let mut line = json!({"seq": 1, "atMs": 1, "attempt": 1});
        line.as_object_mut()
            .unwrap()
            .extend(event.as_object().unwrap().clone());
        serde_json::from_value(line).unwrap()
    };
    for method in ["session/load", "session/resume"] {
        let mut editor = Editor::new();
        editor.call(0, "initialize", json!({"protocolVersion": 1}));
        editor.call(
            1,
            method,
            json!({"sessionId": "old", "cwd": "/w", "mcpServers": []}),
        );
        let Some(Action::Find {
            ticket, session_id, ..
        }) = editor.actions.pop()
        else {
            panic!();
        };
        assert_eq!(session_id, "old");
        let found = Found::new(
            "claude",
            Some("opus".to_owned()),
            vec![
                entry(
                    json!({"type": "user:message", "runId": "old.1", "text": "hi", "from": "zed"}),
                ),
                entry(json!({"type": "text", "text": "Hello", "messageId": "m"})),
            ],
        );
        editor.host(|server, out| server.found(ticket, Ok(found), out));
        let kinds: Vec<_> = editor
            .updates()
            .iter()
            .map(|it| it["params"]["update"]["sessionUpdate"].clone())
            .filter(|kind| kind != "available_commands_update")
            .collect();
        if method == "session/load" {
            assert_eq!(
                kinds,
                [
                    "user_message_chunk",
                    "session_info_update",
                    "agent_message_chunk"
                ]
            );
        } else {
            assert_eq!(kinds, [Value::Null; 0]);
        }
        let answer = editor.answer(1);
        assert_eq!(answer["result"]["configOptions"][1]["currentValue"], "opus");
        editor.call(
            2,
            "session/prompt",
            json!({"sessionId": "old", "prompt": [{"type": "text", "text": "more"}]}),
        );
        let Some(Action::Prompt { setup, .. }) = editor.actions.pop() else {
            panic!();
        };
        assert!(setup.resumed);
    }
}

#[test]
fn sessions_are_listed_closed_and_removed() {
    let mut editor = Editor::with_session();
    editor.call(2, "session/list", json!({"cwd": "/w", "cursor": "50"}));
    let Some(Action::List {
        ticket,
        cwd,
        cursor,
    }) = editor.actions.pop()
    else {
        panic!();
    };
    assert_eq!(
        (cwd.as_deref(), cursor.as_deref()),
        (Some(Path::new("/w")), Some("50"))
    );
    let mut summary = SessionSummary::new("a", "/w", "claude");
    summary.first_prompt = Some("Fix it\nnow".to_owned());
    summary.updated_at = Some("2026-01-01T00:00:00Z".to_owned());
    let page = SessionPage::new(vec![summary], Some("100".to_owned()));
    editor.host(|server, out| server.listed(ticket, Ok(page), out));
    assert_eq!(
        editor.answer(2)["result"],
        json!({"sessions": [{"sessionId": "a", "cwd": "/w", "title": "Fix it", "updatedAt": "2026-01-01T00:00:00Z",
            "_meta": {"teamster": {"agent": "claude"}}}], "nextCursor": "100"})
    );

    editor.call(3, "session/close", json!({"sessionId": "s1"}));
    let Some(Action::Close { ticket, .. }) = editor.actions.pop() else {
        panic!();
    };
    editor.host(|server, out| server.done(ticket, "s1", Ok(()), out));
    assert_eq!(editor.answer(3)["result"], json!({}));
    editor.prompt(4, "hi");
    assert_eq!(editor.answer(4)["error"]["code"], -32002);
    editor.call(5, "session/delete", json!({"sessionId": "a"}));
    assert!(matches!(editor.actions.pop(), Some(Action::Delete { .. })));
}
