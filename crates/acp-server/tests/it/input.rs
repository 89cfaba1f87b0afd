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
async fn another_machine_takes_no_input_and_the_editor_is_informed() {
    let service = memory();
    let server = server(&service).of_other_machine("set it up there");
    let (mut editor, about) = Editor::start_as(server, "test").await;
    let can = &about["result"]["agentCapabilities"];
    let mcp = &can["mcpCapabilities"];
    assert_eq!(
        (&mcp["http"], &mcp["sse"]),
        (&json!(false), &json!(false)),
        "{about}"
    );
    assert_eq!(can["promptCapabilities"]["image"], json!(false), "{about}");
    let folders = &can["sessionCapabilities"]["additionalDirectories"];
    assert_eq!(folders, &Value::Null, "{about}");

    let server = json!({"name": "files", "command": "/bin/true", "args": [], "env": []});
    let thread = editor
        .begin_with(&json!({
            "cwd": "/w", "mcpServers": [server], "additionalDirectories": ["/other"],
        }))
        .await;
    let image = json!({"type": "image", "mimeType": "image/png", "data": "aGk="});
    let prompt = json!({"sessionId": thread, "prompt": [image]});
    let refused = editor.call("session/prompt", &prompt).await;
    let problem = refused["error"]["message"].as_str().unwrap();
    assert_eq!(problem, "images: cannot be sent: set it up there");
    assert_eq!(
        refused["error"]["data"]["teamster"]["detail"]["name"],
        "images"
    );

    assert_eq!(editor.turn(&thread, "hello").await, "end_turn");
    assert!(session(&service, &thread).trusted.is_empty());
    let shown = notices(&editor);
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert!(shown[0].contains("folders are left out (/other): set it up there"));
    assert!(shown[1].contains("servers of the editor are left out (files): set it up there"));
}
