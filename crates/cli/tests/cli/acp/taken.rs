//! What a thread takes over: the cost so far, and what its agents take of the editor's input.

use super::*;

#[test]
fn a_session_s_cost_continues_where_it_was() {
    let agent = Agent::new();
    let folder = agent.path("");
    let cost = |editor: &Editor| {
        let updates = editor.updates("usage_update");
        updates.last().map(|it| it["cost"]["amount"].clone())
    };
    let mut editor = Editor::new(&agent, ["claude"]);
    editor.initialize();
    let session = editor.begin(&folder);
    editor.prompt_and_wait(&session, "window");
    assert_eq!(cost(&editor), Some(json!(0.25)));
    editor.end();

    let known = json!({"sessionId": session, "cwd": folder, "mcpServers": []});
    for (method, shown) in [
        ("session/load", Some(json!(0.25))),
        ("session/resume", None),
    ] {
        let mut editor = Editor::new(&agent, ["claude"]);
        editor.initialize();
        editor.call(method, &known);
        assert_eq!(cost(&editor), shown, "{method}");
    }
    let mut editor = Editor::new(&agent, ["claude"]);
    editor.initialize();
    editor.call("session/resume", &known);
    editor.prompt_and_wait(&session, "window");
    assert_eq!(cost(&editor), Some(json!(0.5)));
}

#[test]
fn a_fallback_gets_what_it_takes_of_the_editor_s_input() {
    let agent = Agent::new();
    let mut editor = Editor::new(
        &agent,
        ["claude", "--fallback", "codex", "--fallback", "cline"],
    );
    editor.initialize();
    let server = json!({"name": "files", "command": "/bin/true", "args": [], "env": []});
    let begun = editor.call(
        "session/new",
        &json!({"cwd": agent.path(""), "mcpServers": [server]}),
    );
    let session = begun["result"]["sessionId"].as_str().unwrap().to_owned();
    let answer = editor.prompt_and_wait(&session, "hello");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let notices = editor.updates("agent_thought_chunk");
    let words: Vec<_> = notices
        .iter()
        .map(|it| it["content"]["text"].as_str().unwrap())
        .collect();
    // The agent itself reports the server, which its stand-in does not load.
    assert!(
        words[0].contains("MCP server files is left out") && words[0].contains("Cline"),
        "{words:?}"
    );
    let starts = agent.starts();
    assert!(starts[0].contains("--mcp-config"), "{starts:?}");
}

#[test]
fn an_agent_without_mcp_servers_leaves_out_those_of_the_editor() {
    let agent = Agent::new();
    // It ends at once, which is another error than a refused parameter.
    crate::cli::program(&agent.path("cline"), "exit 7");
    let mut command = command(&agent, ["cline"]);
    command.env("TEAMSTER_CLINE_BIN", agent.path("cline"));
    command.env("CLINE_API_KEY", "sk-test");
    let mut editor = Editor::start(&mut command);
    let about = editor.initialize();
    let can = &about["result"]["agentCapabilities"];
    let mcp = can["mcpCapabilities"].clone();
    assert_eq!(
        (&mcp["http"], &mcp["sse"]),
        (&json!(false), &json!(false)),
        "{about}"
    );
    let folders = &can["sessionCapabilities"]["additionalDirectories"];
    assert!(folders.is_null(), "{about}");
    let server = json!({"name": "files", "command": "/bin/true", "args": [], "env": []});
    let begun = editor.call(
        "session/new",
        &json!({"cwd": agent.path(""), "mcpServers": [server]}),
    );
    let session = begun["result"]["sessionId"].as_str().unwrap().to_owned();
    let answer = editor.prompt_and_wait(&session, "hello");
    assert_ne!(
        answer["error"]["data"]["teamster"]["code"], "INVALID_PARAMS",
        "{answer}"
    );
    let notices = editor.updates("agent_thought_chunk");
    let words = notices[0]["content"]["text"].as_str().unwrap();
    assert!(words.contains("MCP server files is left out"), "{words}");
}
