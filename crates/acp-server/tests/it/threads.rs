//! Threads: prompts, cancel, permissions, settings, and the end of the connection.

use serde_json::json;
use teamster_acp_server::Disconnect;
use teamster_api::{
    Answer, Command, ProblemCode, RunEvent, RunHandle, RunLogEntry, RunQuery, RunService,
    SessionSpec, ViewState,
};
use teamster_core::{McpServer, PermissionMode, Stopping};
use teamster_testkit::run_service::MemoryService;

use crate::{Editor, memory, runs_of, server, server_of, session};

async fn count(service: &MemoryService) -> usize {
    service.list(RunQuery::default()).await.unwrap().runs.len()
}

/// The senders of the prompts in the log of a session that has ended.
async fn senders(service: &MemoryService, id: &str) -> Vec<Option<String>> {
    let run = RunHandle::new(std::sync::Arc::new(service.clone()), id);
    let mut log = run.follow(0);
    let mut senders = Vec::new();
    while let Some(line) = log.next().await {
        if let RunLogEntry::Run(entry) = line.unwrap().entry().unwrap()
            && let RunEvent::UserMessage { from, .. } = entry.event
        {
            senders.push(from);
        }
    }
    senders
}

#[tokio::test]
async fn a_thread_is_one_session_of_the_service() {
    let service = memory();
    let mut template = SessionSpec::new("mock");
    template.retries = 2;
    let mut editor = Editor::start(server_of(&service, template)).await;
    let thread = editor.begin().await;
    // Nothing is started before the first prompt.
    assert_eq!(count(&service).await, 0);
    assert_eq!(editor.turn(&thread, "hello").await, "end_turn");
    assert_eq!(editor.turn(&thread, "more").await, "end_turn");
    assert_eq!(editor.texts("agent_message_chunk"), ["hello", "more"]);
    assert_eq!(editor.texts("user_message_chunk"), [""; 0]);
    assert_eq!(count(&service).await, 1);
    let spec = session(&service, &thread);
    assert_eq!(
        spec.working_directory.as_deref().unwrap().to_str(),
        Some("/w")
    );
    assert_eq!((spec.retries, spec.continues), (2, None));
    assert_eq!(editor.end().await, Disconnect::EndOfInput);
    // The end of the connection ends the session.
    let view = service.outline(&thread).await.unwrap();
    assert_eq!(view.summary.state, ViewState::Ended);
    let test = Some("test".to_owned());
    assert_eq!(senders(&service, &thread).await, [test.clone(), test]);
}

#[tokio::test]
async fn a_stop_ends_the_sessions_in_the_middle_of_a_turn() {
    let service = memory();
    let mut editor = Editor::start(server(&service)).await;
    let thread = editor.begin().await;
    editor.prompt(&thread, "hang").await;
    editor.said("working").await;
    assert_eq!(editor.stop().await, Disconnect::Stopped);
    let view = service.outline(&thread).await.unwrap();
    assert_eq!(view.summary.state, ViewState::Ended);
}

#[tokio::test]
async fn a_turn_is_cancelled_and_the_session_continues() {
    let service = memory();
    let mut editor = Editor::start(server(&service)).await;
    let thread = editor.begin().await;
    for way in ["session/cancel", "$/cancel_request"] {
        let id = editor.prompt(&thread, "hang").await;
        editor.said("working").await;
        let params = json!({"sessionId": thread, "requestId": id});
        editor.notify(way, &params).await;
        assert_eq!(editor.stop_reason(id).await, "cancelled", "{way}");
    }
    assert_eq!(editor.turn(&thread, "again").await, "end_turn");
    assert_eq!(count(&service).await, 1);
}

#[tokio::test]
async fn permission_is_asked_in_the_editor() {
    let service = memory();
    let mut editor = Editor::start(server(&service)).await;
    let thread = editor.begin().await;
    // Also one whose call is not announced.
    for (prompt, option) in [("ask", "allow"), ("ask", "reject"), ("ask early", "allow")] {
        let id = editor.prompt(&thread, prompt).await;
        let request = editor.request().await;
        let input = &request["params"]["toolCall"]["rawInput"];
        assert_eq!(input["command"], "touch x", "{request}");
        editor.choose(&request, option).await;
        assert_eq!(
            editor.stop_reason(id).await,
            "end_turn",
            "{prompt} {option}"
        );
    }
    // After the answer of another client, the request to the editor is withdrawn.
    let id = editor.prompt(&thread, "ask").await;
    let request = editor.request().await;
    let request_id = format!("{thread}/4");
    let answer = Answer::Allow;
    let answered = service.send(&thread, Command::Answer { request_id, answer });
    answered.await.unwrap();
    let withdrawn = editor
        .wait("withdrawal", |it| it["method"] == "$/cancel_request")
        .await;
    assert_eq!(withdrawn["params"]["requestId"], request["id"]);
    assert_eq!(editor.stop_reason(id).await, "end_turn");
}

#[tokio::test]
async fn settings_are_changed_in_the_session_or_by_another_one() {
    let service = memory();
    let mut editor = Editor::start(server(&service)).await;
    let thread = editor.begin().await;
    editor.set(&thread, "model", "opus").await;
    editor.set(&thread, "mode", "accept-edits").await;
    editor.turn(&thread, "hello").await;
    let first = session(&service, &thread);
    assert_eq!(first.model.as_deref(), Some("opus"));
    assert_eq!(first.permission, PermissionMode::AcceptEdits);
    editor.set(&thread, "model", "haiku").await;
    editor.turn(&thread, "hello").await;
    assert_eq!(count(&service).await, 1);
    // The effort is part of the start, so another session resumes the agent's.
    editor.set(&thread, "thought_level", "high").await;
    assert_eq!(editor.turn(&thread, "hello").await, "end_turn");
    let runs = service.list(RunQuery::default()).await.unwrap().runs;
    let newest = session(&service, &runs[0].info.run_id);
    assert_eq!(newest.effort.as_deref(), Some("high"));
    assert_eq!(newest.model.as_deref(), Some("haiku"));
    assert_eq!(newest.continues.as_deref(), Some(&*thread));
    assert_eq!(newest.session_id.as_deref(), Some("session-in-memory"));
    assert_eq!(runs[1].state, ViewState::Ended);
}

#[tokio::test]
async fn session_ended_elsewhere_is_continued_by_another_one() {
    let service = memory();
    let mut editor = Editor::start(server(&service)).await;
    let thread = editor.begin().await;
    editor.turn(&thread, "hello").await;
    let cancel = Command::Cancel { kill: false };
    service.send(&thread, cancel).await.unwrap();
    assert_eq!(editor.turn(&thread, "more").await, "end_turn");
    let runs = runs_of(&service, &thread).await;
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0].continues.as_deref(), Some(&*thread));
}

#[tokio::test]
async fn a_prompt_waits_for_the_turn_of_another_client() {
    let service = memory();
    let mut editor = Editor::start(server(&service)).await;
    let thread = editor.begin().await;
    editor.turn(&thread, "hello").await;
    let run = RunHandle::new(std::sync::Arc::new(service.clone()), &*thread);
    run.say("hang").await.unwrap();
    let id = editor.prompt(&thread, "mine").await;
    editor.said("working").await;
    assert_eq!(editor.texts("user_message_chunk"), ["hang"]);
    let busy = run.say("refused").await.unwrap_err();
    assert_eq!(busy.code, Some(ProblemCode::SessionBusy));
    run.interrupt(Stopping::Graceful).await.unwrap();
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    assert_eq!(editor.texts("agent_message_chunk").last(), Some(&"mine"));
    // While it waits, it can be cancelled, and with it the turn for whose end it waits.
    run.say("hang").await.unwrap();
    let id = editor.prompt(&thread, "late").await;
    editor.cancel(&thread).await;
    assert_eq!(editor.stop_reason(id).await, "cancelled");
    assert_eq!(editor.turn(&thread, "after").await, "end_turn");
}

#[tokio::test]
async fn a_refusal_of_the_service_is_an_error_with_the_next_step() {
    let service = memory();
    let server = server_of(&service, SessionSpec::new("none"));
    let server = server
        .with_hints(|code| (code == ProblemCode::InvalidParams).then_some("; install it there"));
    let mut editor = Editor::start(server).await;
    let params = json!({"cwd": "/w", "mcpServers": []});
    let refused = editor.call("session/new", &params).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let problem = refused["error"]["message"].as_str().unwrap();
    assert!(problem.contains("unknown agent \"none\""), "{problem}");
    assert!(problem.ends_with("; install it there"), "{problem}");
    assert_eq!(refused["error"]["data"]["teamster"]["kind"], "invalid");
}

#[tokio::test]
async fn the_editor_s_servers_replace_those_of_the_same_name() {
    let service = memory();
    let mut template = SessionSpec::new("mock");
    template.trusted.mcp_servers = vec![
        McpServer::http("files", "https://example.com"),
        McpServer::http("own", "https://example.com"),
    ];
    template.trusted.add_dirs = vec!["/own".into()];
    let mut editor = Editor::start(server_of(&service, template)).await;
    let server = json!({"name": "files", "command": "/bin/true", "args": [], "env": []});
    let thread = editor
        .begin_with(&json!({
            "cwd": "/w", "mcpServers": [server], "additionalDirectories": ["/other"],
        }))
        .await;
    editor.turn(&thread, "hello").await;
    let trusted = session(&service, &thread).trusted;
    let names: Vec<_> = trusted.mcp_servers.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["own", "files"]);
    assert_eq!(trusted.add_dirs.len(), 2);
}
