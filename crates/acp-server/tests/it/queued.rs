//! Sessions that wait for a machine of a fleet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_core::stream::BoxStream;
use serde_json::json;
use teamster_acp_server::{Catalog, EditorServer};
use teamster_api::history::{ForgetRuns, Forgotten};
use teamster_api::{
    Accepted, Change, Command, LogLine, QueueReason, QueueStatus, Reply, RunInfo, RunList,
    RunQuery, RunService, RunView, ServiceError, ServiceFuture, SessionSpec, Spec, ViewState,
};
use teamster_testkit::run_service::MemoryService;
use tokio::time::{Instant, sleep};

use crate::{Editor, entry, memory};

const REASON: &str = "all slots of the pool default are in use";

/// A service whose sessions are queued while no machine is free.
#[derive(Clone)]
struct Fleet {
    runs: MemoryService,
    is_free: Arc<AtomicBool>,
}

impl Fleet {
    fn new() -> Self {
        Self {
            runs: memory(),
            is_free: Arc::default(),
        }
    }

    async fn editor(&self) -> Editor {
        let (runs, session) = (Arc::new(self.clone()), SessionSpec::new("mock"));
        Editor::start(EditorServer::new(
            runs,
            Catalog::one(entry("mock")),
            session,
        ))
        .await
    }

    fn is_queued(&self) -> bool {
        !self.is_free.load(Ordering::Relaxed)
    }
}

impl RunService for Fleet {
    fn start<'a>(&'a self, id: &'a str, spec: Spec) -> ServiceFuture<'a, Accepted> {
        self.runs.start(id, spec)
    }

    fn resolve<'a>(&'a self, prefix: &'a str) -> ServiceFuture<'a, RunInfo> {
        self.runs.resolve(prefix)
    }

    fn show<'a>(&'a self, id: &'a str) -> ServiceFuture<'a, RunView> {
        Box::pin(async move {
            let mut view = self.runs.show(id).await?;
            if self.is_queued() && view.summary.state != ViewState::Ended {
                let summary = Arc::make_mut(&mut view.summary);
                summary.state = ViewState::Queued;
                summary.queue = Some(QueueStatus::new(QueueReason::NoSlot, REASON));
            }
            Ok(view)
        })
    }

    fn list(&self, query: RunQuery) -> ServiceFuture<'_, RunList> {
        self.runs.list(query)
    }

    fn follow(&self, id: &str, after: u64) -> BoxStream<'static, Result<LogLine, ServiceError>> {
        self.runs.follow(id, after)
    }

    fn changes(&self) -> BoxStream<'static, Result<Change, ServiceError>> {
        self.runs.changes()
    }

    fn send<'a>(&'a self, id: &'a str, command: Command) -> ServiceFuture<'a, Reply> {
        let is_cancel = matches!(command, Command::Cancel { .. });
        assert!(is_cancel || !self.is_queued(), "{command:?}");
        self.runs.send(id, command)
    }

    fn forget(&self, request: ForgetRuns) -> ServiceFuture<'_, Forgotten> {
        self.runs.forget(request)
    }
}

#[tokio::test(start_paused = true)]
async fn prompt_waits_for_machine_and_editor_gets_the_reason_once() {
    let fleet = Fleet::new();
    let mut editor = fleet.editor().await;
    let thread = editor.begin().await;
    let id = editor.prompt(&thread, "hello").await;
    let text = |it: &serde_json::Value| it["params"]["update"]["content"]["text"].clone();
    let shown = format!("Queued: {REASON}\n");
    editor.wait("reason", |it| text(it) == shown).await;
    // Longer than any request waits. The clock is paused.
    sleep(Duration::from_mins(5)).await;
    fleet.is_free.store(true, Ordering::Relaxed);
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    assert_eq!(editor.texts("agent_thought_chunk"), [&*shown]);
    assert_eq!(editor.texts("agent_message_chunk"), ["hello"]);
    assert_eq!(editor.turn(&thread, "more").await, "end_turn");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_waits_for_a_machine_is_cancelled_at_once() {
    let fleet = Fleet::new();
    let mut editor = fleet.editor().await;
    let thread = editor.begin().await;
    let id = editor.prompt(&thread, "hello").await;
    editor
        .wait("reason", |it| it["method"] == "session/update")
        .await;
    let began = Instant::now();
    editor
        .notify("session/cancel", &json!({"sessionId": thread}))
        .await;
    assert_eq!(editor.stop_reason(id).await, "cancelled");
    assert!(began.elapsed() < Duration::from_secs(1));
    // The session still waits.
    fleet.is_free.store(true, Ordering::Relaxed);
    assert_eq!(editor.turn(&thread, "again").await, "end_turn");
    assert_eq!(editor.texts("agent_message_chunk"), ["again"]);
}
