//! What an agent offers, over its sessions.

use std::sync::Arc;

use serde_json::json;
use teamster_acp_server::AskOffers;
use teamster_api::SessionSpec;
use teamster_core::{Offers, SlashCommand};
use tokio::sync::mpsc;

use crate::editor::is_agent_commands;
use crate::{Editor, memory, server};

#[tokio::test]
async fn a_new_thread_begins_with_what_the_last_one_offered() {
    let service = memory();
    let mut editor = Editor::start(server(&service)).await;
    let first = editor.begin().await;
    assert_eq!(editor.turn(&first, "offer").await, "end_turn");
    let shown = editor
        .seen
        .iter()
        .filter(|it| is_agent_commands(it))
        .count();
    assert_eq!(shown, 1, "{:#?}", editor.seen);

    editor.seen.clear();
    let second = editor.begin().await;
    let commands = editor.wait("commands", is_agent_commands).await;
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

/// Agents that say what they offer, but for `/silent`, which is asked until the future is dropped. That is reported.
struct Asked(mpsc::UnboundedSender<&'static str>);

struct OnDrop(mpsc::UnboundedSender<&'static str>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

#[async_trait::async_trait]
impl AskOffers for Asked {
    async fn ask(&self, session: SessionSpec) -> Option<Offers> {
        let folder = session.working_directory?;
        if folder.ends_with("silent") {
            let _on_drop = OnDrop(self.0.clone());
            self.0.send("asked").unwrap();
            std::future::pending::<()>().await;
        }
        let name = format!("{}{}", session.provider, folder.display());
        Some(Offers::new().commands(vec![SlashCommand::new(name)]))
    }
}

#[tokio::test]
async fn a_thread_without_a_prompt_has_what_the_agent_says() {
    let service = memory();
    let (reports, mut reported) = mpsc::unbounded_channel();
    let asked = Arc::new(Asked(reports));
    let mut editor = Editor::start(server(&service).with_offers(asked)).await;
    editor.begin().await;
    let commands = editor.wait("commands", is_agent_commands).await;
    let commands = &commands["params"]["update"]["availableCommands"];
    assert_eq!(commands[0]["name"], "mock/w", "{commands}");

    // The process that is asked ends with the first prompt, and with the thread.
    let silent = json!({"cwd": "/silent", "mcpServers": []});
    let thread = editor.begin_with(&silent).await;
    assert_eq!(reported.recv().await, Some("asked"));
    assert_eq!(editor.turn(&thread, "hello").await, "end_turn");
    assert_eq!(reported.recv().await, Some("dropped"));
    let thread = editor.begin_with(&silent).await;
    assert_eq!(reported.recv().await, Some("asked"));
    let closed = editor.close(&thread).await;
    assert!(closed["result"].is_object(), "{closed}");
    assert_eq!(reported.recv().await, Some("dropped"));
    editor.begin_with(&silent).await;
    assert_eq!(reported.recv().await, Some("asked"));
    editor.end().await;
    assert_eq!(reported.recv().await, Some("dropped"));
}
