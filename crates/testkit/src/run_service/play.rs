//! A run in memory: its log, its requests, and its task.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use teamster_api::{
    Accepted, Answer, Command, Grants, LifecycleEntry, LiveState, LiveStatus, LogLine,
    PendingRequest, ProblemCode, RefusalCode, Reply, RunEvent, RunInfo, RunKind, RunLogEntry,
    RunSummary, RunView, ServiceError, Spec, TurnStatus, ViewState, Workspace, either, title_of,
};
use teamster_core::sync::lock;
use teamster_core::time::epoch_ms;
use teamster_core::{
    AgentEvent, Decision, Done, ErrorEvent, LogEntry, PermissionEvent, PermissionRequest,
    RunResult, RunStatus, SessionStarted,
};
use tokio::sync::watch;

use super::memory::{Script, Step};

/// A run or session of the service.
pub(super) struct MemoryRun {
    pub(super) info: RunInfo,
    pub(super) spec: Spec,
    /// The answer to its start.
    pub(super) accepted: Accepted,
    script: Arc<Script>,
    pub(super) data: Mutex<Data>,
    /// Notified of each change of this run.
    pub(super) changed: watch::Sender<()>,
    /// Counts the changes of all runs.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
pub(super) struct Data {
    lines: Vec<LogLine>,
    /// The time of the last entry.
    changed_at_ms: u64,
    /// The title that it got after its start.
    pub(super) title: Option<String>,
    session_id: Option<String>,
    requests: Vec<PendingRequest>,
    requested: u64,
    /// Requests that were answered, and requests whose run was stopped.
    settled: Vec<String>,
    answers: BTreeMap<String, Answer>,
    /// The turn or run is to stop.
    is_stopping: bool,
    /// The session is to end with its turn.
    is_cancelled: bool,
    turns: u64,
    turn: Option<TurnStatus>,
    /// Prompts with a key, and the turn that each began.
    keys: BTreeMap<String, (String, Reply)>,
    /// Files that were written, with their text.
    pub(super) files: BTreeMap<String, String>,
    /// They were applied to a working tree.
    pub(super) is_applied: bool,
    /// They were discarded.
    pub(super) is_discarded: bool,
    pub(super) ended: Option<RunResult>,
}

fn refused(code: RefusalCode, message: &str) -> ServiceError {
    (code, message.to_owned()).into()
}

impl MemoryRun {
    /// Returns the answer to a repetition of its start.
    pub(super) fn started(&self, spec: &Spec) -> Result<Accepted, ServiceError> {
        if self.spec == *spec {
            return Ok(self.accepted.clone().again());
        }
        Err(super::memory::exists(&self.info.run_id))
    }

    pub(super) fn new(
        id: &str,
        spec: Spec,
        accepted: Accepted,
        script: Arc<Script>,
        changes: watch::Sender<u64>,
    ) -> Arc<Self> {
        let mut info = RunInfo::new(id, spec.provider());
        either!(&spec, spec => {
            info.title = spec.first_title();
            info.model.clone_from(&spec.model);
            info.directory.clone_from(&spec.working_directory);
        });
        if let Spec::Session(spec) = &spec {
            info.kind = RunKind::Session;
            info.continues.clone_from(&spec.continues);
            let from = spec.workspace.as_ref().and_then(Workspace::submitted_from);
            info.submitted_from = from.map(str::to_owned);
            let mut grants = Grants::default();
            grants.permission = spec.permission;
            grants.allowed_tools.clone_from(&spec.allowed_tools);
            info.grants = Some(grants);
        }
        Arc::new(Self {
            info,
            spec,
            accepted,
            script,
            data: Mutex::default(),
            changed: watch::Sender::new(()),
            changes,
        })
    }

    /// Begins the run. A session waits for its first prompt.
    pub(super) fn begin(self: &Arc<Self>) {
        match &self.spec {
            Spec::Run(spec) => {
                let (run, prompt) = (self.clone(), spec.prompt.clone());
                tokio::spawn(async move {
                    let result = run.play(&run.info.run_id, &prompt).await;
                    run.end(result);
                });
            }
            Spec::Session(_) => self.notify(),
        }
    }

    pub(super) fn notify(&self) {
        self.changed.send_replace(());
        self.changes.send_modify(|count| *count += 1);
    }

    fn push(&self, data: &mut Data, mut entry: RunLogEntry) {
        let number = data.lines.len() as u64 + 1;
        match &mut entry {
            RunLogEntry::Agent(entry) => (entry.seq, entry.at_ms) = (number, epoch_ms()),
            RunLogEntry::Run(entry) => (entry.seq, entry.at_ms) = (number, epoch_ms()),
            _ => {}
        }
        data.changed_at_ms = epoch_ms();
        let line = LogLine::of_entry(entry, &self.info.run_id);
        data.lines.push(line);
    }

    fn emit(&self, run_id: &str, event: AgentEvent) {
        let mut entry = LogEntry::new(0, 0, event);
        entry.run_id = Some(run_id.into());
        self.push(&mut lock(&self.data), RunLogEntry::Agent(entry));
        self.notify();
    }

    /// Plays what the agent does for a prompt, and returns the result without logging its end.
    async fn play(&self, run_id: &str, prompt: &str) -> RunResult {
        let start = RunEvent::start(run_id.into(), None, self.spec.provider(), None);
        self.push(&mut lock(&self.data), LifecycleEntry::new(start).into());
        // A session that is resumed keeps its id.
        let id = either!(&self.spec, spec => spec.session_id.as_deref());
        let id = id.unwrap_or("session-in-memory");
        lock(&self.data).session_id = Some(id.to_owned());
        let session = SessionStarted::new(id);
        self.emit(run_id, AgentEvent::SessionStarted(Box::new(session)));
        let mut result = RunResult::default().status(RunStatus::Completed);
        result.session_id = Some(id.into());
        for step in (self.script)(prompt) {
            match step {
                Step::Emit(event) => {
                    if let AgentEvent::Text(text) = &event {
                        result.text.push_str(&text.text);
                    }
                    self.emit(run_id, event);
                }
                Step::Ask(request) => self.ask(run_id, request).await,
                Step::Write(path, text) => {
                    lock(&self.data).files.insert(path, text);
                }
                Step::Hang => {
                    self.until(|data| data.is_stopping.then_some(())).await;
                }
                Step::Fail(error) => {
                    let event = ErrorEvent::new(error.clone());
                    self.emit(run_id, AgentEvent::Error(Box::new(event)));
                    result.errors.push(error);
                    return result.status(RunStatus::Failed);
                }
            }
            if lock(&self.data).is_stopping {
                result.aborted = true;
                return result.status(RunStatus::Aborted);
            }
        }
        result
    }

    /// Waits until the state is as wanted.
    async fn until<T>(&self, wanted: impl Fn(&mut Data) -> Option<T>) -> T {
        let mut changed = self.changed.subscribe();
        loop {
            changed.borrow_and_update();
            if let Some(found) = wanted(&mut lock(&self.data)) {
                return found;
            }
            // The sender is in `self`.
            let _ = changed.changed().await;
        }
    }

    async fn ask(&self, run_id: &str, request: PermissionRequest) {
        let tool = request.tool_name.clone();
        let id = {
            let mut data = lock(&self.data);
            data.requested += 1;
            let id = format!("{}/{}", self.info.run_id, data.requested);
            let pending = PendingRequest::new(&*id, &*self.info.run_id, request);
            data.requests.push(pending);
            id
        };
        let event = |decision: Decision| {
            let permission = PermissionEvent::new(&*tool, decision).request_id(&*id);
            AgentEvent::Permission(Box::new(permission))
        };
        self.emit(run_id, event(Decision::Requested));
        let answer = self
            .until(|data| {
                let answer = data.answers.remove(&id);
                answer.map(Some).or(data.is_stopping.then_some(None))
            })
            .await;
        {
            let mut data = lock(&self.data);
            data.requests.retain(|request| request.request_id != id);
            data.settled.push(id.clone());
        }
        self.emit(
            run_id,
            event(match answer {
                Some(Answer::Deny { .. }) | None => Decision::Denied,
                Some(_) => Decision::Allowed,
            }),
        );
    }

    fn end(&self, mut result: RunResult) {
        result.workspace = self.left();
        let mut entry = LogEntry::new(0, 0, AgentEvent::Done(Done::new(Box::new(result.clone()))));
        entry.run_id = Some((&*self.info.run_id).into());
        let mut data = lock(&self.data);
        self.push(&mut data, RunLogEntry::Agent(entry));
        data.ended = Some(result);
        drop(data);
        self.notify();
    }

    pub(super) fn has_ended(&self) -> bool {
        lock(&self.data).ended.is_some()
    }

    /// Returns the entries after the one with this number, and whether these are all that there will be.
    pub(super) fn lines_after(&self, seq: u64) -> (Vec<LogLine>, bool) {
        let data = lock(&self.data);
        let from = usize::try_from(seq)
            .unwrap_or(usize::MAX)
            .min(data.lines.len());
        (data.lines[from..].to_vec(), data.ended.is_some())
    }

    pub(super) fn summary(&self, live: bool) -> RunSummary {
        let data = lock(&self.data);
        let state = match (&data.ended, data.requests.is_empty()) {
            (Some(_), _) => ViewState::Ended,
            (None, true) => ViewState::Running,
            (None, false) => ViewState::Waiting,
        };
        let mut summary = RunSummary::new(self.info.clone(), state);
        summary.info.title = data.title.clone().or(summary.info.title);
        summary.seq = data.lines.len() as u64;
        summary.changed_at_ms = data.lines.last().map(|_| data.changed_at_ms);
        summary.session_id.clone_from(&data.session_id);
        summary.requests.clone_from(&data.requests);
        if let Some(result) = &data.ended {
            summary.status = Some(result.status);
            summary.duration_ms = Some(result.duration_ms);
            summary.error = result.failure();
            summary.workspace.clone_from(&result.workspace);
        } else if live {
            summary.live = Some(self.status(&data));
        }
        summary
    }

    pub(super) fn view(&self) -> RunView {
        let summary = self.summary(true);
        let result = lock(&self.data).ended.clone().map(Box::new);
        let mut view = RunView::new(Arc::new(summary), result);
        view.prompt = self.prompt();
        view
    }

    fn status(&self, data: &Data) -> LiveStatus {
        let state = match (&self.spec, &data.turn) {
            _ if !data.requests.is_empty() => LiveState::Waiting,
            _ if data.is_stopping => LiveState::Ending,
            (Spec::Session(_), None) => LiveState::Idle,
            _ => LiveState::Running,
        };
        let mut status = LiveStatus::new(state, self.info.accepted_at_ms);
        status.turns = data.turns;
        status.turn.clone_from(&data.turn);
        status
    }

    pub(super) fn send(self: &Arc<Self>, command: Command) -> Result<Reply, ServiceError> {
        let mut data = lock(&self.data);
        if let Command::Answer { request_id, .. } = &command
            && data.settled.contains(request_id)
        {
            return Err(refused(
                RefusalCode::AlreadyAnswered,
                &format!("request {request_id} is already settled"),
            ));
        }
        if data.ended.is_some() {
            let message = format!("run {} has ended", self.info.run_id);
            return Err(ServiceError::new(ProblemCode::RunEnded, message));
        }
        let is_session = matches!(self.spec, Spec::Session(_));
        match command {
            Command::Requests => {
                let requests = data.requests.clone();
                return Ok(Reply::Requests { requests });
            }
            Command::Status => {
                let status = Box::new(self.status(&data));
                return Ok(Reply::Status { status });
            }
            Command::Answer { request_id, answer } => {
                if !data.requests.iter().any(|it| it.request_id == request_id) {
                    let message = format!("no pending request {request_id}");
                    return Err(refused(RefusalCode::UnknownRequest, &message));
                }
                data.requests.retain(|it| it.request_id != request_id);
                data.settled.push(request_id.clone());
                data.answers.insert(request_id, answer);
            }
            Command::Cancel { .. } => {
                data.is_stopping = true;
                data.is_cancelled = true;
                if is_session && data.turn.is_none() {
                    drop(data);
                    self.end(RunResult::default().status(RunStatus::Completed));
                    return Ok(Reply::Done);
                }
            }
            _ if !is_session => {
                return Err(refused(
                    RefusalCode::Unsupported,
                    "only a session takes this command",
                ));
            }
            Command::Send {
                prompt, from, key, ..
            } => return self.begin_turn(data, prompt, from, key),
            Command::Steer { text, from } => {
                let turn = in_progress(&data)?;
                let event = RunEvent::user_message((&*turn.run_id).into(), text, from, true);
                self.push(&mut data, LifecycleEntry::new(event).into());
            }
            Command::Interrupt { .. } => {
                in_progress(&data)?;
                data.is_stopping = true;
            }
            Command::Clear | Command::SetModel { .. } | Command::SetPermission { .. } => {}
            _ => return Err(refused(RefusalCode::Unsupported, "unknown command")),
        }
        drop(data);
        self.notify();
        Ok(Reply::Done)
    }

    fn begin_turn(
        self: &Arc<Self>,
        mut data: std::sync::MutexGuard<'_, Data>,
        prompt: String,
        from: Option<String>,
        key: Option<String>,
    ) -> Result<Reply, ServiceError> {
        if let Some((known, reply)) = key.as_ref().and_then(|key| data.keys.get(key)) {
            return match (known == &prompt, reply.clone()) {
                (true, Reply::Turn { run_id, seq, .. }) => Ok(Reply::Turn {
                    run_id,
                    seq,
                    known: true,
                }),
                _ => Err(refused(
                    RefusalCode::KeyReused,
                    "this key was used with another prompt",
                )),
            };
        }
        if data.turn.is_some() {
            return Err(refused(RefusalCode::Busy, "a turn is in progress"));
        }
        data.turns += 1;
        if self.info.title.is_none() && data.title.is_none() {
            data.title = title_of(&prompt);
        }
        let turn = format!("{}.{}", self.info.run_id, data.turns);
        let event = RunEvent::user_message((&*turn).into(), &*prompt, from, false);
        self.push(&mut data, LifecycleEntry::new(event).into());
        let reply = Reply::Turn {
            run_id: turn.clone(),
            seq: data.lines.len() as u64,
            known: false,
        };
        if let Some(key) = key {
            data.keys.insert(key, (prompt.clone(), reply.clone()));
        }
        data.turn = Some(TurnStatus::new(&*turn, epoch_ms()));
        drop(data);
        self.notify();
        let run = self.clone();
        tokio::spawn(async move {
            let result = run.play(&turn, &prompt).await;
            run.emit(&turn, AgentEvent::Done(Done::new(Box::new(result.clone()))));
            let mut data = lock(&run.data);
            data.turn = None;
            let ends = data.is_cancelled;
            data.is_stopping = false;
            drop(data);
            if ends {
                run.end(RunResult::default().status(RunStatus::Aborted));
            } else {
                run.notify();
            }
        });
        Ok(reply)
    }
}

fn in_progress(data: &Data) -> Result<TurnStatus, ServiceError> {
    let turn = data.turn.clone();
    turn.ok_or_else(|| refused(RefusalCode::NoTurn, "no turn is in progress"))
}
