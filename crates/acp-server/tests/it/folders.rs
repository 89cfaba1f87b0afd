//! The editor's folder goes along to the machine of the service.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use teamster_acp_server::{EditorServer, FolderTransfer, SentFolder};
use teamster_api::{
    Command, ProblemCode, RunHandle, RunService, ServiceError, ViewState, Workspace,
};
use teamster_core::{PermissionMode, Stopping};
use teamster_testkit::run_service::MemoryService;
use tokio::sync::Mutex;

use crate::{Editor, memory, runs_of, server, session};

/// Calls, in their order.
#[derive(Clone, Default)]
struct Transfer {
    calls: Arc<std::sync::Mutex<Vec<String>>>,
    /// Sending never ends.
    is_slow: Arc<AtomicBool>,
    brought: Arc<Mutex<()>>,
}

impl Transfer {
    fn note(&self, call: &str, folder: &Path) {
        let call = format!("{call} {}", folder.display());
        self.calls.lock().unwrap().push(call);
    }

    fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }

    /// Waits until so many calls have begun.
    async fn begun(&self, calls: usize) {
        while self.calls().len() < calls {
            tokio::task::yield_now().await;
        }
    }
}

/// The workspace that a folder becomes.
fn uploaded() -> Workspace {
    Workspace::Upload {
        repository: "0".repeat(40),
        commit: "1".repeat(40),
        head: None,
        included: None,
        name: None,
        subdirectory: None,
        submitted_from: Some("/w".to_owned()),
        stays: true,
    }
}

#[async_trait::async_trait]
impl FolderTransfer for Transfer {
    async fn check(&self, folder: &Path) -> Result<(), ServiceError> {
        self.note("check", folder);
        let is_there = folder == Path::new("/w");
        if is_there {
            return Ok(());
        }
        let problem = "no repository: open one";
        Err(ServiceError::new(ProblemCode::InvalidParams, problem))
    }

    async fn send(&self, _: &str, folder: &Path) -> Result<SentFolder, ServiceError> {
        self.note("send", folder);
        let is_slow = self.is_slow.load(Ordering::Relaxed);
        if is_slow {
            std::future::pending::<()>().await;
        }
        let warnings = vec!["a file was left out".to_owned()];
        Ok(SentFolder::new(uploaded(), warnings))
    }

    async fn give_up(&self, _: &str) -> Result<(), ServiceError> {
        self.note("give up", Path::new("it"));
        Ok(())
    }

    async fn bring_back(
        &self,
        session: &RunHandle,
        folder: &Path,
    ) -> Result<Option<String>, ServiceError> {
        let _held = self.brought.lock().await;
        let state = session.outline().await?.summary.state;
        assert_eq!(state, ViewState::Ended);
        self.note("bring back", folder);
        Ok(Some("branch b: 1 commit".to_owned()))
    }
}

fn with_folders(service: &MemoryService, transfer: &Transfer) -> EditorServer {
    let server = server(service).of_other_machine("set them up there");
    server.with_folders(Arc::new(transfer.clone()))
}

#[tokio::test]
async fn a_session_works_in_the_copy_and_its_changes_come_back() {
    let service = memory();
    let transfer = Transfer::default();
    let mut editor = Editor::start(with_folders(&service, &transfer)).await;
    let refused = editor
        .call("session/new", &json!({"cwd": "/none", "mcpServers": []}))
        .await;
    let problem = refused["error"]["message"].as_str().unwrap();
    assert_eq!(problem, "no repository: open one");
    let thread = editor.begin().await;
    assert_eq!(editor.turn(&thread, "hello").await, "end_turn");
    assert_eq!(editor.turn(&thread, "more").await, "end_turn");
    let spec = session(&service, &thread);
    assert_eq!(spec.workspace, Some(uploaded()));
    assert_eq!(spec.working_directory, None);
    assert_eq!(editor.texts("agent_thought_chunk").len(), 1);
    // Another process works in the same copy.
    editor.set(&thread, "thought_level", "high").await;
    assert_eq!(editor.turn(&thread, "deeper").await, "end_turn");
    let spec = session(&service, &continued(&service, &thread).await);
    assert_eq!(spec.workspace, Some(Workspace::Continued {}));
    assert_eq!(spec.effort.as_deref(), Some("high"));
    editor.close(&thread).await;
    let expected = ["check /none", "check /w", "send /w", "bring back /w"];
    assert_eq!(transfer.calls(), expected);
}

/// Returns the id of the last session of a thread.
async fn continued(service: &MemoryService, thread: &str) -> String {
    let last = runs_of(service, thread).await.swap_remove(0);
    assert_eq!(last.continues.as_deref(), Some(thread));
    last.run_id
}

#[tokio::test]
async fn a_thread_is_found_by_its_folder_and_goes_on_in_the_same_copy() {
    let service = memory();
    let transfer = Transfer::default();
    let mut editor = Editor::start(with_folders(&service, &transfer)).await;
    let thread = editor.begin().await;
    editor.turn(&thread, "hello").await;
    editor.end().await;
    assert_eq!(transfer.calls(), ["check /w", "send /w", "bring back /w"]);

    let mut editor = Editor::start(with_folders(&service, &transfer)).await;
    let sessions = editor.list(&json!({"cwd": "/w"})).await;
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    assert_eq!(sessions[0]["sessionId"], thread.as_str());
    assert_eq!(sessions[0]["cwd"], "/w");
    assert!(editor.list(&json!({"cwd": "/x"})).await.is_empty());
    let loaded = editor.load(&thread).await;
    assert!(loaded["result"].is_object(), "{loaded}");
    assert_eq!(editor.turn(&thread, "more").await, "end_turn");
    let spec = session(&service, &continued(&service, &thread).await);
    assert_eq!(spec.workspace, Some(Workspace::Continued {}));
    assert!(spec.session_id.is_some());
    editor.end().await;
    assert_eq!(transfer.calls()[3..], ["bring back /w"]);
}

#[tokio::test]
async fn changes_of_a_session_that_ends_by_itself_return_at_once() {
    let service = memory();
    let transfer = Transfer::default();
    let mut editor = Editor::start(with_folders(&service, &transfer)).await;
    let thread = editor.begin().await;
    editor.turn(&thread, "hello").await;
    let cancel = Command::Cancel { kill: false };
    service.send(&thread, cancel).await.unwrap();
    editor
        .wait("report", |it| {
            let text = it["params"]["update"]["content"]["text"].as_str();
            text.is_some_and(|text| text.contains("branch b: 1 commit"))
        })
        .await;
    assert_eq!(editor.turn(&thread, "more").await, "end_turn");
    let spec = session(&service, &continued(&service, &thread).await);
    assert_eq!(spec.workspace, Some(Workspace::Continued {}));
    assert_eq!(transfer.calls().len(), 3);
}

#[tokio::test]
async fn the_end_of_the_connection_waits_for_what_comes_back() {
    let service = memory();
    let transfer = Transfer::default();
    let held = transfer.brought.clone().lock_owned().await;
    let mut editor = Editor::start(with_folders(&service, &transfer)).await;
    let thread = editor.begin().await;
    editor.turn(&thread, "hello").await;
    let end = tokio::spawn(editor.end());
    let mut log = RunHandle::new(Arc::new(service.clone()), &*thread).follow(0);
    while let Some(line) = log.next().await {
        line.unwrap();
    }
    assert!(!end.is_finished());
    drop(held);
    end.await.unwrap();
    assert_eq!(transfer.calls().last().unwrap(), "bring back /w");
}

#[tokio::test]
async fn a_cancel_stops_the_sending_and_the_next_prompt_sends_again() {
    let service = memory();
    let transfer = Transfer::default();
    transfer.is_slow.store(true, Ordering::Relaxed);
    let mut editor = Editor::start(with_folders(&service, &transfer)).await;
    let thread = editor.begin().await;
    let id = editor.prompt(&thread, "hello").await;
    transfer.begun(2).await;
    editor.cancel(&thread).await;
    assert_eq!(editor.stop_reason(id).await, "cancelled");
    assert!(service.spec(&thread).is_none());
    transfer.is_slow.store(false, Ordering::Relaxed);
    assert_eq!(editor.turn(&thread, "hello").await, "end_turn");
    assert_eq!(transfer.calls(), ["check /w", "send /w", "send /w"]);

    // A thread that ends before it has a session needs nothing of what was sent.
    transfer.is_slow.store(true, Ordering::Relaxed);
    let other = editor.begin().await;
    editor.prompt(&other, "hello").await;
    transfer.begun(5).await;
    editor.close(&other).await;
    let calls = transfer.calls();
    assert_eq!(calls[3..], ["check /w", "send /w", "give up it"]);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_waits_has_the_mode_of_its_own_time() {
    let service = memory();
    let transfer = Transfer::default();
    let mut editor = Editor::start(with_folders(&service, &transfer)).await;
    let thread = editor.begin().await;
    editor.set(&thread, "mode", "accept-edits").await;
    editor.turn(&thread, "hello").await;
    let run = RunHandle::new(Arc::new(service.clone()), &*thread);
    run.say("hang").await.unwrap();
    editor.set(&thread, "mode", "default").await;
    let id = editor.prompt(&thread, "mine").await;
    // The clock is paused: it advances when all tasks wait, so that the prompt waits too.
    tokio::time::sleep(Duration::from_mins(1)).await;
    run.cancel(Stopping::Graceful).await.unwrap();
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    let spec = session(&service, &continued(&service, &thread).await);
    assert_eq!(spec.permission, PermissionMode::Default);
}

#[tokio::test]
async fn the_changes_come_back_if_the_next_process_cannot_be_opened() {
    let service = memory();
    let transfer = Transfer::default();
    let mut editor = Editor::start(with_folders(&service, &transfer)).await;
    let thread = editor.begin().await;
    editor.turn(&thread, "hello").await;
    // It needs another process, whose id the service refuses.
    editor.set(&thread, "thought_level", "high").await;
    service.have_owners();
    let id = editor.prompt(&thread, "deeper").await;
    let answer = editor.answer(id).await;
    assert!(answer["error"].is_object(), "{answer}");
    assert_eq!(transfer.calls(), ["check /w", "send /w", "bring back /w"]);
}
