//! What an editor sends beside its prompts.

use serde_json::{Value, json};

use crate::{Editor, memory, server, session};

/// The texts of notices so far: an editor without them gets thoughts.
fn notices(editor: &Editor) -> Vec<&str> {
    editor.texts("agent_thought_chunk")
}

#[tokio::test]
async fn warnings_of_a_start_are_shown_once_in_a_thread() {
    let service = memory();
    service.set_warnings(["the MCP server files is left out"]);
    let mut editor = Editor::start(server(&service)).await;
    let thread = editor.begin().await;
    editor.turn(&thread, "hello").await;
    let shown = notices(&editor);
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert!(shown[0].contains("files is left out"), "{shown:?}");
    // Another process of the thread has the same warning.
    editor.set(&thread, "thought_level", "high").await;
    editor.turn(&thread, "hello").await;
    assert_eq!(notices(&editor).len(), 1);
}

#[tokio::test]
async fn remote_machine_refuses_folders_and_takes_allowed_servers() {
    let service = memory();
    service.refuse_servers();
    let server = server(&service).of_other_machine("set it up there");
    let (mut editor, about) = Editor::start_as(server, "test").await;
    let can = &about["result"]["agentCapabilities"];
    assert_eq!(can["promptCapabilities"]["image"], json!(true), "{about}");
    let folders = &can["sessionCapabilities"]["additionalDirectories"];
    assert_eq!(folders, &Value::Null, "{about}");

    let server = json!({"name": "files", "command": "/bin/true", "args": [], "env": []});
    let by_url =
        json!({"type": "http", "name": "web", "url": "https://example.com", "headers": []});
    let thread = editor
        .begin_with(&json!({
            "cwd": "/w", "mcpServers": [server, by_url], "additionalDirectories": ["/other"],
        }))
        .await;
    let image = json!({"type": "image", "mimeType": "image/png", "data": "aGk="});
    let prompt = json!({"sessionId": thread, "prompt": [{"type": "text", "text": "hello"}, image]});
    let answered = editor.call("session/prompt", &prompt).await;
    assert_eq!(answered["result"]["stopReason"], "end_turn", "{answered}");
    let trusted = session(&service, &thread).trusted;
    assert_eq!(trusted.names(), Vec::<&str>::new());
    let shown = notices(&editor);
    assert_eq!(shown.len(), 3, "{shown:?}");
    for (notice, part) in shown.iter().zip([
        "folders are left out (/other): set it up there",
        "servers of the editor are left out (files): they are programs of this machine",
        "servers of the editor are left out (web): mcp_servers: they are not allowed",
    ]) {
        assert!(notice.contains(part), "{notice}");
    }
}
