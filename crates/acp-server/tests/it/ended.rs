//! Commands at a bad moment: the session ends, another turn is in progress, the connection breaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use teamster_acp_server::{Catalog, EditorServer};
use teamster_api::{Command, RunHandle, SessionSpec};
use teamster_core::Stopping;
use teamster_testkit::run_service::MemoryService;
use tokio::time::sleep;

use crate::watched::{Course, Watched};
use crate::{Editor, entry, memory, runs_of, session};

/// A server over this service, whose commands take this course.
fn server(
    service: &MemoryService,
    course: impl Fn(&Command) -> Course + Send + Sync + 'static,
) -> EditorServer {
    let runs = service.clone();
    let catalog = Catalog::one(entry("mock"));
    EditorServer::new(
        Arc::new(Watched { runs, course }),
        catalog,
        SessionSpec::new("mock"),
    )
}

#[tokio::test]
async fn the_prompt_goes_to_a_session_that_continues_it() {
    let service = memory();
    let prompts = AtomicUsize::new(0);
    let server = server(&service, move |command| {
        let is_second =
            matches!(command, Command::Send { .. }) && prompts.fetch_add(1, Ordering::Relaxed) == 1;
        if is_second {
            Course::ComesLate
        } else {
            Course::Arrives
        }
    });
    let mut editor = Editor::start(server).await;
    let thread = editor.begin().await;
    assert_eq!(editor.turn(&thread, "hello").await, "end_turn");
    assert_eq!(editor.turn(&thread, "more").await, "end_turn");
    assert_eq!(editor.texts("agent_message_chunk"), ["hello", "more"]);
    let runs = runs_of(&service, &thread).await;
    let spec = session(&service, &runs[0].run_id);
    assert_eq!(spec.session_id.as_deref(), Some("session-in-memory"));
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_waits_is_sent_again_after_the_turn_only() {
    let service = memory();
    let sent = Arc::new(AtomicUsize::new(0));
    let seen = sent.clone();
    let server = server(&service, move |command| {
        seen.fetch_add(
            usize::from(matches!(command, Command::Send { .. })),
            Ordering::Relaxed,
        );
        Course::Arrives
    });
    let mut editor = Editor::start(server).await;
    let thread = editor.begin().await;
    editor.turn(&thread, "hello").await;
    let run = RunHandle::new(Arc::new(service.clone()), &*thread);
    run.say("hang").await.unwrap();
    let id = editor.prompt(&thread, "mine").await;
    // The clock is paused: it advances when all tasks wait.
    sleep(Duration::from_mins(1)).await;
    assert_eq!(sent.load(Ordering::Relaxed), 2);
    run.interrupt(Stopping::Graceful).await.unwrap();
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    assert_eq!(editor.texts("agent_message_chunk").last(), Some(&"mine"));
    assert_eq!(sent.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn a_change_whose_connection_breaks_stays_one_of_this_session() {
    let service = memory();
    let changes = AtomicUsize::new(0);
    let server = server(&service, move |command| match command {
        Command::SetPermission { .. } if changes.fetch_add(1, Ordering::Relaxed) < 2 => {
            Course::Breaks { after: false }
        }
        _ => Course::Arrives,
    });
    let mut editor = Editor::start(server).await;
    let thread = editor.begin().await;
    editor.turn(&thread, "hello").await;
    // One break is that of the change at once, the other that of the next prompt.
    editor.set(&thread, "mode", "accept-edits").await;
    let id = editor.prompt(&thread, "lost").await;
    let refused = editor.answer(id).await;
    let problem = refused["error"]["message"].as_str().unwrap();
    assert!(problem.contains("the connection is broken"), "{problem}");
    assert_eq!(editor.turn(&thread, "more").await, "end_turn");
    assert_eq!(runs_of(&service, &thread).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn requests_and_answers_go_on_after_a_break_of_the_connection() {
    let service = memory();
    let commands = AtomicUsize::new(0);
    // Each is lost on its way first, and so is its answer after that.
    let server = server(&service, move |command| {
        if !matches!(command, Command::Requests | Command::Answer { .. }) {
            return Course::Arrives;
        }
        match commands.fetch_add(1, Ordering::Relaxed) % 3 {
            0 => Course::Breaks { after: false },
            1 => Course::Breaks { after: true },
            _ => Course::Arrives,
        }
    });
    let mut editor = Editor::start(server).await;
    let thread = editor.begin().await;
    let id = editor.prompt(&thread, "ask").await;
    let request = editor.request().await;
    editor.choose(&request, "allow").await;
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    assert_eq!(editor.texts("agent_message_chunk").last(), Some(&"asked"));
}
