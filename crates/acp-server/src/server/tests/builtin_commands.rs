//! Titles, and the commands that the server answers itself.

use teamster_core::SlashCommand;

use super::*;

/// Returns the texts of the messages so far.
fn messages(editor: &mut Editor) -> Vec<String> {
    let updates = editor.updates().into_iter();
    let updates = updates.map(|it| it["params"]["update"].clone());
    let messages = updates.filter(|it| it["sessionUpdate"] == "agent_message_chunk");
    messages
        .map(|it| it["content"]["text"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn status_is_answered_without_a_prompt_for_the_agent() {
    let mut editor = Editor::with_session();
    editor.prompt(2, "/status");
    assert_eq!(editor.actions, []);
    assert_eq!(editor.answer(2)["result"]["stopReason"], "end_turn");
    let before = "Claude Code\n\n- Model: the agent's own choice\n- Mode: Ask\n- Folder: `/w`\n- Thread: `s1`\n";
    assert_eq!(messages(&mut editor), [before]);

    editor.prompt(3, "hi");
    editor.turn("s1.1");
    editor.log(
        json!({"type": "session", "sessionId": "of-cli", "model": "opus-5", "mcpServers": [
        {"name": "docs", "status": "connected"}, {"name": "d`b", "status": "failed"}]}),
    );
    editor.log(json!({"type": "context", "tokens": 1240, "window": 200_000}));
    // It waits for the end of the turn.
    editor.prompt(4, " /status\n");
    assert!(!editor.has_answer(4));
    let usage = json!({"inputTokens": 1200, "outputTokens": 40});
    editor.done(
        "s1.1",
        json!({"usage": usage, "totalCostUsd": 0.25, "costSource": "estimated"}),
    );
    assert_eq!(editor.answer(4)["result"]["stopReason"], "end_turn");
    let after = "Claude Code\n\n- Model: `opus-5`\n- Mode: Ask\n- Folder: `/w`\n- Context: 1240 of 200000 tokens\n\
         - Used: 1240 tokens, ~$0.25\n- MCP servers: `docs` connected, `d'b` failed\n- Thread: `s1`\n\
         - Session of the agent: `of-cli`\n";
    assert_eq!(messages(&mut editor), [after]);

    // What an agent reports is not always a possible figure.
    editor.prompt(5, "hi");
    editor.turn("s1.2");
    editor.done("s1.2", json!({"usage": {"inputTokens": u64::MAX}}));
    editor.prompt(6, "/status");
    let used = format!("- Used: {} tokens, ~$0.25\n", u64::MAX);
    let status = messages(&mut editor).join("");
    assert!(status.contains(&used), "{status}");
}

#[test]
fn command_of_the_agent_replaces_the_one_of_this_server() {
    let mut editor = Editor::with_session();
    let offers = Offers::new().commands(vec![SlashCommand::new("status")]);
    editor.host(|server, out| server.offered("s1", "claude", &offers, out));
    let update = editor.updates()[0]["params"]["update"].clone();
    let names = update["availableCommands"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|it| it["name"].clone()).collect();
    assert_eq!(names, ["status", "rename"]);
    editor.prompt(2, "/status");
    assert!(matches!(editor.actions.pop(), Some(Action::Prompt { .. })));
}

#[test]
fn other_text_is_a_prompt() {
    for text in ["/status now", "/statuses", "status", "/", "rename it", "/x"] {
        let mut editor = Editor::with_session();
        editor.prompt(2, text);
        let sent = editor.actions.pop();
        assert!(matches!(sent, Some(Action::Prompt { .. })), "{text}");
    }
}

#[test]
fn thread_gets_another_title_by_request_and_by_command() {
    let mut editor = Editor::with_session();
    let set = |title: &str| json!({"sessionId": "s1", "title": title});
    editor.prompt(2, "/rename Login");
    editor.call(10, "session/set_title", set("Login"));
    for id in [2, 10] {
        let early = editor.answer(id);
        assert_eq!(early["error"]["code"], -32602, "it has no prompt: {early}");
    }
    editor.prompt(3, "hi");
    editor.turn("s1.1");
    editor.done("s1.1", json!({}));
    editor.actions.clear();
    editor.updates();

    editor.call(4, "session/set_title", set(" The\nlogin "));
    let Some(Action::SetTitle {
        ticket,
        session_id,
        title,
    }) = editor.actions.pop()
    else {
        panic!("{:?}", editor.messages);
    };
    assert_eq!((&*session_id, &*title), ("s1", "The login"));
    assert!(!editor.has_answer(4), "it is not stored yet");
    editor.host(|server, out| server.titled(ticket, Ok(()), out));
    assert_eq!(editor.answer(4)["result"], json!({"title": "The login"}));
    let update = editor.updates()[0]["params"]["update"].clone();
    let title = json!({"sessionUpdate": "session_info_update", "title": "The login"});
    assert_eq!(update, title);
    for (id, title) in [
        (5, json!("")),
        (6, json!("x".repeat(201))),
        (7, Value::Null),
    ] {
        let params = json!({"sessionId": "s1", "title": title});
        editor.call(id, "session/set_title", params);
        assert_eq!(editor.answer(id)["error"]["code"], -32602);
    }

    editor.prompt(8, "/rename Logout __init__");
    let Some(Action::SetTitle { ticket, title, .. }) = editor.actions.pop() else {
        panic!("{:?}", editor.messages);
    };
    assert_eq!(title, "Logout __init__");
    editor.host(|server, out| server.titled(ticket, Ok(()), out));
    assert_eq!(editor.answer(8)["result"]["stopReason"], "end_turn");
    assert_eq!(
        messages(&mut editor),
        ["The title is now: `Logout __init__`"]
    );

    // One that is not open here, and is not there.
    editor.call(
        9,
        "session/set_title",
        json!({"sessionId": "x", "title": "y"}),
    );
    let Some(Action::SetTitle { ticket, .. }) = editor.actions.pop() else {
        panic!("{:?}", editor.messages);
    };
    let missing = AgentError::new(Code::CliError, ErrorKind::SessionNotFound, "no session x");
    editor.host(|server, out| server.titled(ticket, Err(missing), out));
    assert_eq!(editor.answer(9)["error"]["code"], -32002);
}
