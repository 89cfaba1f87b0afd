//! A live session of scripted agents, whose turns a test sends.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use teamster_api::{Command, Reply, RunInfo, RunKind};
use teamster_core::{
    AbortHandle, AgentError, AgentEvent, AgentSession, Capabilities, Done, ErrorCode, ErrorKind,
    EventStream, ExecuteParams, Id, PermissionMode, RunResult, RunStatus, SessionCapabilities,
    Stopping, Text, Turn, Usage,
};
use teamster_orchestrator::{Orchestrator, OrchestratorConfig};
use teamster_runner::client::{self, Follow};
use teamster_runner::{
    DetachedSession, Finished, LogLimits, RequestChannel, RunFolder, Runs, RunsError,
    SessionCandidate, SessionControl, SessionPlan, SessionRuns,
};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Session that plays scripted turns and records its calls. A turn without a `done` runs until it is
/// interrupted.
#[derive(Clone)]
pub(crate) struct Scripted {
    provider: &'static str,
    capabilities: SessionCapabilities,
    turns: Arc<Mutex<VecDeque<Vec<AgentEvent>>>>,
    /// Turns that it begins by itself.
    unasked: Arc<Mutex<VecDeque<Vec<AgentEvent>>>>,
    has_unasked: Arc<Notify>,
    calls: Arc<Mutex<Vec<String>>>,
    id: Option<Id>,
    /// The number of events that were read.
    read: Arc<AtomicUsize>,
}

impl Scripted {
    pub(crate) fn new(
        provider: &'static str,
        turns: impl IntoIterator<Item = Vec<AgentEvent>>,
    ) -> Self {
        Self {
            provider,
            capabilities: SessionCapabilities::none(),
            turns: Arc::new(Mutex::new(turns.into_iter().collect())),
            unasked: Arc::default(),
            has_unasked: Arc::default(),
            calls: Arc::default(),
            id: None,
            read: Arc::default(),
        }
    }

    pub(crate) fn id(mut self, id: &str) -> Self {
        self.id = Some(id.into());
        self
    }

    fn record(&self, what: impl Into<String>) {
        self.calls.lock().unwrap().push(what.into());
    }

    pub(crate) fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }

    /// Begins a turn by itself.
    pub(crate) fn begin(&self, turn: Vec<AgentEvent>) {
        self.unasked.lock().unwrap().push_back(turn);
        self.has_unasked.notify_one();
    }

    fn play(&self, events: Vec<AgentEvent>, abort: AbortHandle) -> EventStream {
        let (stop, read) = (abort.clone(), self.read.clone());
        let stream = async_stream::stream! {
            let mut has_end = false;
            for event in events {
                has_end = matches!(event, AgentEvent::Done(_));
                read.fetch_add(1, Ordering::Relaxed);
                yield event;
            }
            if !has_end {
                stop.aborted().await;
                let result = RunResult::default().status(RunStatus::Aborted).aborted(true);
                yield AgentEvent::Done(Done::new(Box::new(result)));
            }
        };
        EventStream::new(stream, abort)
    }

    /// Returns the number of events of its turns that were read.
    pub(crate) fn read(&self) -> usize {
        self.read.load(Ordering::Relaxed)
    }
}

#[async_trait::async_trait]
impl AgentSession for Scripted {
    fn provider(&self) -> &str {
        self.provider
    }

    fn id(&self) -> Option<Id> {
        self.id.clone()
    }

    fn capabilities(&self) -> &SessionCapabilities {
        &self.capabilities
    }

    fn send(&self, turn: Turn) -> EventStream {
        self.record(turn.prompt);
        let events = self.turns.lock().unwrap().pop_front().unwrap();
        self.play(events, AbortHandle::new(&turn.cancel))
    }

    fn interrupt(&self) {}

    async fn steer(&self, text: String) -> Result<(), AgentError> {
        self.record(format!("[steer {text}]"));
        Ok(())
    }

    async fn clear(&self) -> Result<(), AgentError> {
        self.record("[clear]");
        Ok(())
    }

    async fn set_model(&self, model: String) -> Result<(), AgentError> {
        self.record(format!("[model {model}]"));
        Ok(())
    }

    async fn set_permission(&self, _: PermissionMode) -> Result<(), AgentError> {
        self.record("[permission]");
        Ok(())
    }

    fn unasked(&self) -> Option<EventStream> {
        let events = self.unasked.lock().unwrap().pop_front()?;
        Some(self.play(events, AbortHandle::default()))
    }

    async fn unasked_ready(&self) {
        self.has_unasked.notified().await;
    }

    async fn close(&self) {
        self.record("[close]");
    }

    fn is_live(&self) -> bool {
        true
    }
}

/// Returns a turn with this text and a usage of 10 tokens.
pub(crate) fn answers(text: &str) -> Vec<AgentEvent> {
    let usage = Usage::default().input_tokens(8).output_tokens(2);
    let mut result = RunResult::default()
        .status(RunStatus::Completed)
        .usage(usage);
    text.clone_into(&mut result.text);
    vec![
        AgentEvent::Text(Text::new(text)),
        AgentEvent::Done(Done::new(Box::new(result))),
    ]
}

/// Returns a turn that fails before any text.
pub(crate) fn fails(kind: ErrorKind) -> Vec<AgentEvent> {
    let error = AgentError::new(ErrorCode::CliError, kind, "no");
    let result = RunResult::default()
        .status(RunStatus::Failed)
        .errors(vec![error.clone()]);
    vec![
        AgentEvent::error(error),
        AgentEvent::Done(Done::new(Box::new(result))),
    ]
}

/// Returns a turn that runs until it is interrupted.
pub(crate) fn waits() -> Vec<AgentEvent> {
    vec![AgentEvent::Text(Text::new("waiting"))]
}

pub(crate) struct Live {
    pub(crate) folder: RunFolder,
    pub(crate) control: SessionControl,
    pub(crate) work: JoinHandle<Finished>,
    _dir: tempfile::TempDir,
}

impl Live {
    pub(crate) fn start(agents: &[&Scripted], set: impl FnOnce(&mut SessionRuns)) -> Self {
        let candidate = |agent: &&Scripted| {
            let agent = Arc::new((*agent).clone());
            SessionCandidate::of(agent, Capabilities::none(), ExecuteParams::new(""))
        };
        Self::start_with(agents.iter().map(candidate), set)
    }

    pub(crate) fn start_with(
        candidates: impl IntoIterator<Item = SessionCandidate>,
        set: impl FnOnce(&mut SessionRuns),
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut candidates = candidates.into_iter();
        let first = candidates.next().unwrap();
        let mut info = RunInfo::new("s", first.provider());
        info.kind = RunKind::Session;
        let run = (Runs::at(dir.path()).accept(&info, LogLimits::default())).unwrap();
        let folder = run.folder.clone();
        let mut runs = SessionRuns::new("s", first);
        for candidate in candidates {
            runs.add_fallback(candidate).unwrap();
        }
        set(&mut runs);
        let channel = RequestChannel::new("s");
        let orchestrator = Orchestrator::new(OrchestratorConfig::default()).unwrap();
        let plan = SessionPlan::new(runs);
        let session = DetachedSession::new(run, orchestrator, plan, channel);
        Self {
            folder,
            control: session.control(),
            work: tokio::spawn(session.work()),
            _dir: dir,
        }
    }

    /// Begins a turn. Returns the number of its prompt's entry.
    pub(crate) async fn begin(&self, prompt: &str) -> u64 {
        let Reply::Turn { seq, .. } = self.command(send(prompt)).await.unwrap() else {
            panic!("no turn");
        };
        seq
    }

    /// Sends a command as its clients do.
    pub(crate) async fn command(&self, command: Command) -> Result<Reply, RunsError> {
        client::command(&self.folder, &command).await
    }

    /// Plays a turn and returns its entries.
    pub(crate) async fn turn(&self, prompt: &str) -> Vec<Value> {
        let from = self.begin(prompt).await;
        self.rest_of_turn(from).await
    }

    pub(crate) async fn rest_of_turn(&self, from: u64) -> Vec<Value> {
        self.until(from, |entry| entry["type"] == "done").await
    }

    pub(crate) async fn until(&self, from: u64, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut follow = Follow::new(self.folder.clone(), from).unwrap();
        let mut entries = Vec::new();
        while let Some(line) = follow.next().await.unwrap() {
            let entry = serde_json::to_value(line.entry().unwrap()).unwrap();
            let last = is_last(&entry);
            entries.push(entry);
            if last {
                break;
            }
        }
        entries
    }

    pub(crate) async fn end(self) -> RunResult {
        client::cancel(&self.folder, Stopping::Graceful)
            .await
            .unwrap();
        self.work.await.unwrap().result
    }
}

/// The command that sends a prompt.
pub(crate) fn send(prompt: impl Into<String>) -> Command {
    Command::Send {
        prompt: prompt.into(),
        images: Vec::new(),
        from: Some("test".to_owned()),
        key: None,
        trace: None,
    }
}

pub(crate) fn status(entries: &[Value]) -> &str {
    entries.last().unwrap()["result"]["status"]
        .as_str()
        .unwrap()
}
