//! Sessions that wait for a machine of a fleet.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_core::stream::BoxStream;
use teamster_acp_server::{Catalog, EditorServer};
use teamster_api::history::{ForgetRuns, Forgotten};
use teamster_api::{
    Accepted, Change, Command, LogLine, QueueReason, QueueStatus, Reply, RunInfo, RunList,
    RunQuery, RunService, RunView, ServiceError, SessionSpec, Spec, ViewState,
};
use teamster_testkit::run_service::MemoryService;
use tokio::time::{Instant, sleep};

use crate::{Editor, entry, memory, runs_of, session};

const REASON: &str = "all slots of the pool default are in use";

/// A service whose sessions are queued while no machine is free.
#[derive(Clone)]
struct Fleet {
    runs: MemoryService,
    is_free: Arc<AtomicBool>,
    /// What sessions wait for.
    reason: Arc<Mutex<&'static str>>,
    /// No look at a session arrives.
    is_cut: Arc<AtomicBool>,
    /// The session ends before the next prompt arrives, and another gets its slot.
    ends: Arc<AtomicBool>,
    /// The settings and prompts that have arrived.
    commands: Arc<Mutex<Vec<String>>>,
}

impl Fleet {
    fn new() -> Self {
        Self {
            runs: memory(),
            is_free: Arc::default(),
            reason: Arc::new(Mutex::new(REASON)),
            is_cut: Arc::default(),
            ends: Arc::default(),
            commands: Arc::default(),
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

    fn set_free(&self) {
        self.is_free.store(true, Ordering::Relaxed);
    }

    fn note(&self, command: &Command) {
        let command = match command {
            Command::Send { prompt, .. } => format!("prompt {prompt}"),
            Command::SetModel { model } => format!("model {model}"),
            Command::SetPermission { mode } => format!("mode {}", mode.as_str()),
            _ => return,
        };
        self.commands.lock().unwrap().push(command);
    }

    fn commands(&self) -> Vec<String> {
        self.commands.lock().unwrap().clone()
    }

    /// Returns the ids of the sessions of a thread, newest first.
    async fn sessions(&self, thread: &str) -> Vec<String> {
        let runs = runs_of(self, thread).await;
        runs.into_iter().map(|run| run.run_id).collect()
    }
}

/// Sends a prompt to a new thread, which waits for a machine, and returns the thread and the request.
async fn waiting(editor: &mut Editor) -> (String, u64) {
    let thread = editor.begin().await;
    let id = editor.prompt(&thread, "hello").await;
    shown(editor, REASON).await;
    (thread, id)
}

/// Waits until the editor has this reason.
async fn shown(editor: &mut Editor, reason: &str) {
    editor.said(&format!("Queued: {reason}\n")).await;
}

/// Cancels the prompt that waits.
async fn cancel(editor: &mut Editor, thread: &str, id: u64) {
    editor.cancel(thread).await;
    assert_eq!(editor.stop_reason(id).await, "cancelled");
}

#[async_trait::async_trait]
impl RunService for Fleet {
    async fn start(&self, id: &str, spec: Spec) -> Result<Accepted, ServiceError> {
        self.runs.start(id, spec).await
    }

    async fn resolve(&self, prefix: &str) -> Result<RunInfo, ServiceError> {
        self.runs.resolve(prefix).await
    }

    async fn show(&self, id: &str) -> Result<RunView, ServiceError> {
        if self.is_cut.load(Ordering::Relaxed) {
            return Err(ServiceError::unreachable("the connection is broken"));
        }
        let mut view = self.runs.show(id).await?;
        if self.is_queued() && view.summary.state != ViewState::Ended {
            let summary = Arc::make_mut(&mut view.summary);
            summary.state = ViewState::Queued;
            summary.queue = Some(QueueStatus::new(
                QueueReason::NoSlot,
                *self.reason.lock().unwrap(),
            ));
        }
        Ok(view)
    }

    async fn list(&self, query: RunQuery) -> Result<RunList, ServiceError> {
        self.runs.list(query).await
    }

    fn follow(&self, id: &str, after: u64) -> BoxStream<'static, Result<LogLine, ServiceError>> {
        self.runs.follow(id, after)
    }

    fn changes(&self) -> BoxStream<'static, Result<Change, ServiceError>> {
        self.runs.changes()
    }

    async fn send(&self, id: &str, command: Command) -> Result<Reply, ServiceError> {
        let is_cancel = matches!(command, Command::Cancel { .. });
        let is_queued = self.show(id).await?.summary.state == ViewState::Queued;
        assert!(is_cancel || !is_queued, "{command:?}");
        let is_prompt = matches!(command, Command::Send { .. });
        if is_prompt && self.ends.swap(false, Ordering::Relaxed) {
            self.is_free.store(false, Ordering::Relaxed);
            self.runs.send(id, Command::Cancel { kill: false }).await?;
        }
        self.note(&command);
        self.runs.send(id, command).await
    }

    async fn forget(&self, request: ForgetRuns) -> Result<Forgotten, ServiceError> {
        self.runs.forget(request).await
    }
}

#[tokio::test(start_paused = true)]
async fn prompt_waits_for_machine_and_editor_gets_the_reason_once() {
    let fleet = Fleet::new();
    let mut editor = fleet.editor().await;
    let (thread, id) = waiting(&mut editor).await;
    // Longer than any request waits. The clock is paused.
    sleep(Duration::from_mins(5)).await;
    fleet.set_free();
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    let notices = [format!("Queued: {REASON}\n")];
    assert_eq!(editor.texts("agent_thought_chunk"), notices);
    assert_eq!(editor.texts("agent_message_chunk"), ["hello"]);
    assert_eq!(editor.turn(&thread, "more").await, "end_turn");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_waits_for_a_machine_is_cancelled_at_once() {
    let fleet = Fleet::new();
    let mut editor = fleet.editor().await;
    let (thread, id) = waiting(&mut editor).await;
    let began = Instant::now();
    cancel(&mut editor, &thread, id).await;
    assert!(began.elapsed() < Duration::from_secs(1));
    // The session still waits.
    fleet.set_free();
    assert_eq!(editor.turn(&thread, "again").await, "end_turn");
    assert_eq!(editor.texts("agent_message_chunk"), ["again"]);
}

#[tokio::test(start_paused = true)]
async fn settings_of_a_queued_session_wait_for_its_machine() {
    let fleet = Fleet::new();
    let mut editor = fleet.editor().await;
    let (thread, id) = waiting(&mut editor).await;
    cancel(&mut editor, &thread, id).await;
    editor.set(&thread, "model", "deep").await;
    let id = editor.prompt(&thread, "again").await;
    // A mode applies to the prompt that waits, too.
    editor.set(&thread, "mode", "accept-edits").await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(fleet.commands(), [""; 0]);
    let began = Instant::now();
    cancel(&mut editor, &thread, id).await;
    assert!(began.elapsed() < Duration::from_secs(1));

    let id = editor.prompt(&thread, "at last").await;
    sleep(Duration::from_mins(1)).await;
    fleet.set_free();
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    let expected = ["model deep", "mode accept-edits", "prompt at last"];
    assert_eq!(fleet.commands(), expected);
    assert_eq!(fleet.sessions(&thread).await, [&*thread]);
}

#[tokio::test(start_paused = true)]
async fn a_mode_that_changes_while_a_prompt_waits_is_that_of_its_turn() {
    let fleet = Fleet::new();
    let mut editor = fleet.editor().await;
    let (thread, id) = waiting(&mut editor).await;
    editor.set(&thread, "mode", "accept-edits").await;
    // The model is that of the next prompt.
    editor.set(&thread, "model", "deep").await;
    sleep(Duration::from_mins(1)).await;
    fleet.set_free();
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    assert_eq!(fleet.commands(), ["mode accept-edits", "prompt hello"]);
    assert_eq!(editor.turn(&thread, "more").await, "end_turn");
    assert_eq!(fleet.commands()[2..], ["model deep", "prompt more"]);
}

#[tokio::test(start_paused = true)]
async fn a_mode_that_is_set_back_is_set_in_the_session_too() {
    let fleet = Fleet::new();
    fleet.set_free();
    let mut editor = fleet.editor().await;
    let thread = editor.begin().await;
    editor.turn(&thread, "hello").await;
    for mode in ["accept-edits", "default"] {
        editor.set(&thread, "mode", mode).await;
        sleep(Duration::from_mins(1)).await;
    }
    // The agent changes it, and the person changes it back.
    editor.turn(&thread, "take edits").await;
    editor.set(&thread, "mode", "default").await;
    sleep(Duration::from_mins(1)).await;
    editor.turn(&thread, "more").await;
    let expected = [
        "prompt hello",
        "mode accept-edits",
        "mode default",
        "prompt take edits",
        "mode default",
        "prompt more",
    ];
    assert_eq!(fleet.commands(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_setting_of_another_process_keeps_its_turn_in_the_queue() {
    let fleet = Fleet::new();
    let mut editor = fleet.editor().await;
    let (thread, id) = waiting(&mut editor).await;
    cancel(&mut editor, &thread, id).await;
    editor.set(&thread, "thought_level", "high").await;
    let id = editor.prompt(&thread, "again").await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(fleet.sessions(&thread).await, [&*thread]);
    fleet.set_free();
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    assert_eq!(fleet.commands(), ["prompt again"]);
    let sessions = fleet.sessions(&thread).await;
    let efforts: Vec<_> = (sessions.iter())
        .map(|id| session(&fleet.runs, id).effort)
        .collect();
    assert_eq!(efforts, [Some("high".to_owned()), None]);
}

#[tokio::test(start_paused = true)]
async fn a_session_in_place_of_one_that_has_just_ended_is_waited_for() {
    let fleet = Fleet::new();
    fleet.set_free();
    let mut editor = fleet.editor().await;
    let thread = editor.begin().await;
    assert_eq!(editor.turn(&thread, "hello").await, "end_turn");
    fleet.ends.store(true, Ordering::Relaxed);
    let id = editor.prompt(&thread, "more").await;
    shown(&mut editor, REASON).await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(editor.texts("agent_message_chunk"), ["hello"]);
    fleet.set_free();
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    assert_eq!(editor.texts("agent_message_chunk"), ["hello", "more"]);
}

#[tokio::test(start_paused = true)]
async fn a_break_of_the_connection_does_not_end_the_wait() {
    const OTHER: &str = "all machines are paused";
    let fleet = Fleet::new();
    let mut editor = fleet.editor().await;
    let (thread, id) = waiting(&mut editor).await;
    fleet.is_cut.store(true, Ordering::Relaxed);
    sleep(Duration::from_mins(1)).await;
    fleet.is_cut.store(false, Ordering::Relaxed);
    *fleet.reason.lock().unwrap() = OTHER;
    shown(&mut editor, OTHER).await;
    sleep(Duration::from_mins(1)).await;
    fleet.set_free();
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    assert_eq!(fleet.commands(), ["prompt hello"]);
    assert_eq!(fleet.sessions(&thread).await, [&*thread]);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_whose_service_stays_away_is_refused() {
    let fleet = Fleet::new();
    let mut editor = fleet.editor().await;
    let (thread, id) = waiting(&mut editor).await;
    fleet.is_cut.store(true, Ordering::Relaxed);
    sleep(Duration::from_mins(11)).await;
    let refused = editor.answer(id).await;
    let problem = refused["error"]["message"].as_str().unwrap();
    assert!(problem.contains("the connection is broken"), "{problem}");
    // The session is still there.
    fleet.is_cut.store(false, Ordering::Relaxed);
    fleet.set_free();
    assert_eq!(editor.turn(&thread, "again").await, "end_turn");
    assert_eq!(fleet.commands(), ["prompt again"]);
}
