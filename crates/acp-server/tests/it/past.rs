//! Earlier threads: list, load, resume, delete.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use teamster_acp_server::{Catalog, CliFiles, EditorServer, OwnMessage, OwnSession};
use teamster_api::{RunHandle, RunQuery, RunService, SessionSpec};
use teamster_core::SlashCommand;

use crate::editor::is_agent_commands;
use crate::{Editor, entry, memory, runs_of, server, session};

#[tokio::test]
async fn a_thread_is_listed_and_loaded_by_another_editor() {
    let service = memory();
    let mut editor = Editor::start(server(&service)).await;
    // A session without a prompt is not listed.
    editor.begin().await;
    let thread = editor.begin().await;
    editor.turn(&thread, "first words").await;
    editor.end().await;

    let mut editor = Editor::start(server(&service)).await;
    let sessions = editor.list(&json!({"cwd": "/w"})).await;
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    assert_eq!(sessions[0]["sessionId"], thread);
    assert_eq!(sessions[0]["title"], "first words");
    assert!(sessions[0]["updatedAt"].as_str().unwrap().ends_with('Z'));
    assert!(editor.list(&json!({"cwd": "/else"})).await.is_empty());

    let loaded = editor.load(&thread).await;
    assert!(loaded["result"]["configOptions"].is_array(), "{loaded}");
    assert_eq!(editor.texts("user_message_chunk"), ["first words"]);
    assert_eq!(editor.texts("agent_message_chunk"), ["first words"]);
    assert_eq!(editor.turn(&thread, "more").await, "end_turn");
    let newest = session(&service, &runs_of(&service, &thread).await[0].run_id);
    assert_eq!(newest.session_id.as_deref(), Some("session-in-memory"));

    // Both logs are one thread, also while the second is live.
    assert_eq!(editor.list(&json!({})).await.len(), 1);
    editor.seen.clear();
    editor.load(&thread).await;
    assert_eq!(editor.texts("user_message_chunk"), ["first words", "more"]);
    editor.seen.clear();
    let params = json!({"sessionId": thread, "cwd": "/w", "mcpServers": []});
    let resumed = editor.call("session/resume", &params).await;
    assert!(resumed["result"].is_object(), "{resumed}");
    assert_eq!(editor.texts("user_message_chunk"), [""; 0]);
}

/// A CLI that has two sessions on disk: one of its own screen, and that of the threads.
struct OnDisk;

#[async_trait::async_trait]
impl CliFiles for OnDisk {
    async fn commands(&self, agent: &str, folder: &Path) -> Vec<SlashCommand> {
        vec![SlashCommand::new(format!("{agent}{}", folder.display()))]
    }

    async fn list(&self, agent: &str, folder: Option<&Path>) -> Vec<OwnSession> {
        let ids = ["own", "session-in-memory"];
        let sessions = ids.map(|id| OwnSession::new(id, agent, "/w", "from the terminal"));
        let mut sessions = sessions.to_vec();
        sessions.retain(|it| folder.is_none_or(|folder| folder == it.directory));
        sessions
    }

    async fn messages(&self, _: &str, id: &str) -> Option<Vec<OwnMessage>> {
        let prompt = OwnMessage::Prompt("from the terminal".to_owned());
        let answer = OwnMessage::Answer("done there".to_owned());
        // What the thread adds is in the file, too, and was reported before.
        let more = OwnMessage::Prompt("more".to_owned());
        (id == "own").then(|| vec![prompt, answer, more.clone(), more])
    }
}

#[tokio::test]
async fn a_session_of_the_cli_is_listed_once_and_continued() {
    let service = memory();
    let mut editor = Editor::start(server(&service).with_cli_files(Arc::new(OnDisk))).await;
    let thread = editor.begin().await;
    let commands = editor.wait("commands", is_agent_commands).await;
    let commands = &commands["params"]["update"]["availableCommands"];
    assert_eq!(commands[0]["name"], "mock/w", "{commands}");
    editor.turn(&thread, "first words").await;
    let listed = editor.list(&json!({"cwd": "/w"})).await;
    let ids: Vec<_> = listed.iter().map(|it| &it["sessionId"]).collect();
    assert_eq!(ids, [&*thread, "own"], "{listed:?}");
    assert_eq!(listed[1]["title"], "from the terminal");

    let deleted = editor
        .call("session/delete", &json!({"sessionId": "own"}))
        .await;
    let problem = deleted["error"]["message"].as_str().unwrap();
    assert!(problem.contains("CLI's own"), "{deleted}");

    editor.load("own").await;
    assert_eq!(
        editor.texts("user_message_chunk"),
        ["from the terminal", "more", "more"]
    );
    assert!(editor.texts("agent_message_chunk").contains(&"done there"));
    assert_eq!(editor.turn("own", "more").await, "end_turn");
    let spec = session(&service, "own");
    assert_eq!(spec.session_id.as_deref(), Some("own"));
    // From now on it is a thread.
    let sessions = editor.list(&json!({})).await;
    assert_eq!(sessions.len(), 2, "{sessions:?}");
    let continued = sessions.iter().find(|it| it["sessionId"] == "own").unwrap();
    assert_eq!(continued["title"], "from the terminal");
    editor.seen.clear();
    editor.load("own").await;
    assert_eq!(
        editor.texts("user_message_chunk"),
        ["from the terminal", "more", "more"]
    );
    assert_eq!(titles(&editor), ["from the terminal"]);
    let set = json!({"sessionId": "own", "title": "Login"});
    editor.call("session/set_title", &set).await;
    editor.seen.clear();
    editor.load("own").await;
    assert_eq!(titles(&editor), ["Login"]);
}

/// Returns the titles that an editor was sent.
fn titles(editor: &Editor) -> Vec<Value> {
    let updates = editor.seen.iter().map(|it| &it["params"]["update"]);
    let titles = updates.filter(|it| it["sessionUpdate"] == "session_info_update");
    titles.map(|it| it["title"].clone()).collect()
}

#[tokio::test]
async fn a_deleted_thread_is_gone_with_all_its_logs() {
    let service = memory();
    let mut editor = Editor::start(server(&service)).await;
    let thread = editor.begin().await;
    editor.turn(&thread, "hello").await;
    editor.set(&thread, "thought_level", "high").await;
    editor.turn(&thread, "hello").await;
    let kept = editor.begin().await;
    editor.turn(&kept, "kept").await;
    let gone = editor
        .call("session/delete", &json!({"sessionId": thread}))
        .await;
    assert!(gone["result"].is_object(), "{gone}");
    let sessions = editor.list(&json!({})).await;
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    assert_eq!(sessions[0]["sessionId"], kept);
    let runs = service.list(RunQuery::default()).await.unwrap().runs;
    assert_eq!(runs.len(), 1);
}

#[tokio::test]
async fn a_thread_that_is_not_there_or_of_another_agent_is_not_found() {
    let service = memory();
    let mut editor = Editor::start(server(&service)).await;
    let refused = editor.load("no-such").await;
    assert_eq!(refused["error"]["code"], -32002, "{refused}");

    // A session of another client.
    let runs: Arc<dyn RunService> = Arc::new(service.clone());
    let mut spec = SessionSpec::new("other");
    spec.working_directory = Some("/w".into());
    let other = RunHandle::start(runs.clone(), "theirs", spec)
        .await
        .unwrap();
    other.say("hello").await.unwrap();
    let refused = editor.load("theirs").await;
    let problem = refused["error"]["message"].as_str().unwrap();
    assert!(
        problem.contains("belongs to other, not to mock"),
        "{problem}"
    );
    assert!(editor.list(&json!({})).await.is_empty());

    // Where the editor chooses the agent, it is a thread as any other.
    let catalog = Catalog::choice(vec![entry("mock"), entry("other")]);
    let server = EditorServer::new(runs, catalog, SessionSpec::new(""));
    let mut editor = Editor::start(server).await;
    let loaded = editor.load("theirs").await;
    assert!(loaded["result"].is_object(), "{loaded}");
    assert_eq!(editor.texts("user_message_chunk"), ["hello"]);
}

#[tokio::test]
async fn a_renamed_thread_has_its_title_listed_and_loaded() {
    let service = memory();
    let mut editor = Editor::start(server(&service)).await;
    let thread = editor.begin().await;
    editor.turn(&thread, "first words").await;
    let set = json!({"sessionId": thread, "title": "Login"});
    let renamed = editor.call("session/set_title", &set).await;
    assert_eq!(renamed["result"]["title"], "Login", "{renamed}");
    editor.end().await;

    let mut editor = Editor::start(server(&service)).await;
    assert_eq!(editor.list(&json!({})).await[0]["title"], "Login");
    editor.load(&thread).await;
    assert_eq!(titles(&editor), ["Login"]);
    let set = json!({"sessionId": "none", "title": "x"});
    let missing = editor.call("session/set_title", &set).await;
    assert_eq!(missing["error"]["code"], -32002, "{missing}");
}

#[tokio::test]
async fn a_list_has_pages() {
    let service = memory();
    for number in 0..60 {
        let runs: Arc<dyn RunService> = Arc::new(service.clone());
        let id = format!("s{number:02}");
        let run = RunHandle::start(runs, id, SessionSpec::new("mock")).await;
        let run = run.unwrap();
        // Every tenth has no prompt.
        if number % 10 != 0 {
            run.say(format!("prompt {number}")).await.unwrap();
        }
    }
    let mut editor = Editor::start(server(&service)).await;
    let mut all = Vec::new();
    let mut params = json!({});
    let mut pages = Vec::new();
    loop {
        let page = editor.call("session/list", &params).await;
        let sessions = page["result"]["sessions"].as_array().unwrap().clone();
        pages.push(sessions.len());
        all.extend(sessions.into_iter().map(|it| it["sessionId"].clone()));
        let Some(next) = page["result"]["nextCursor"].as_str() else {
            break;
        };
        params = json!({"cursor": next});
    }
    assert_eq!(pages, [50, 4]);
    all.sort_by_key(ToString::to_string);
    all.dedup();
    assert_eq!(all.len(), 54);
    let refused = editor
        .call("session/list", &json!({"cursor": "next"}))
        .await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}
