//! What an agent offers, over its sessions.

use serde_json::json;

use crate::{Editor, memory, server};

#[tokio::test]
async fn a_new_thread_begins_with_what_the_last_one_offered() {
    let service = memory();
    let mut editor = Editor::start(server(&service)).await;
    let first = editor.begin().await;
    let is_commands = |it: &serde_json::Value| {
        it["params"]["update"]["sessionUpdate"] == "available_commands_update"
    };
    assert_eq!(editor.turn(&first, "offer").await, "end_turn");
    let shown = editor.seen.iter().filter(|it| is_commands(it)).count();
    assert_eq!(shown, 1, "{:#?}", editor.seen);

    editor.seen.clear();
    let second = editor.begin().await;
    let commands = editor.wait("commands", is_commands).await;
    assert_eq!(commands["params"]["sessionId"], json!(second));
    let commands = &commands["params"]["update"]["availableCommands"];
    assert_eq!(commands[0]["name"], "compact");
    let begun = editor
        .seen
        .iter()
        .find(|it| it["result"]["sessionId"] == second);
    let options = begun.unwrap()["result"]["configOptions"]
        .as_array()
        .unwrap();
    let model = options.iter().find(|it| it["id"] == "model").unwrap();
    let deep = json!({"value": "deep", "name": "Deep"});
    assert_eq!(model["options"][1], deep, "{model}");
    editor.end().await;
}
