//! A thread of the editor and its session, which begins with the first prompt.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use teamster::{AgentError, AgentEvent, ErrorCode, ErrorKind, PermissionAnswer};
use teamster_acp_server::{Prompt, Setup, Ticket};
use teamster_api::{Command as RunnerCommand, RefusalCode, Reply, RunLogEntry};
use teamster_core::{ChangeKind, Decision, Id};
use teamster_runner::{Requests, RunFolder, SessionControl, client};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{sleep, timeout};

use super::connection::{ActionResult, Reports, Update};
use super::{Shared, open, past};

/// Interval between attempts to send a prompt during a turn that the agent began by itself.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Delay of a permission request whose tool call is not announced yet.
const ANNOUNCEMENT_DELAY: Duration = Duration::from_millis(300);
/// Maximum size of an added file whose content is shown, in bytes.
const MAX_FILE: u64 = 256 << 10;

/// Title of a notice about input of the editor that the agent does not take.
const NOT_TAKEN: &str = "Not taken by the agent";

/// A command to a thread.
pub(super) enum Command {
    Prompt(Box<Setup>, Prompt),
    Apply(Box<Setup>),
    Interrupt,
    Answer(String, PermissionAnswer),
    Close { ticket: Ticket, forget: bool },
}

/// Handle of a thread. The thread ends when it is dropped.
pub(super) struct Handle {
    commands: mpsc::UnboundedSender<Command>,
    task: JoinHandle<()>,
}

impl Handle {
    pub(super) fn send(&self, command: Command) {
        // Fails only if the thread has been closed.
        let _ = self.commands.send(command);
    }

    /// Ends the thread. The returned task completes when it has ended.
    pub(super) fn end(self) -> JoinHandle<()> {
        drop(self.commands);
        self.task
    }
}

/// Starts a thread for a session. `source` identifies the editor in the log.
pub(super) fn start(
    session_id: &str,
    source: String,
    shared: Arc<Shared>,
    reports: Reports,
) -> Handle {
    let (commands, receiver) = mpsc::unbounded_channel();
    let thread = Thread {
        session_id: session_id.to_owned(),
        source,
        shared,
        reports,
        live: None,
        prompt: None,
        noticed: HashSet::new(),
    };
    Handle {
        commands,
        task: tokio::spawn(thread.work(receiver)),
    }
}

struct Thread {
    session_id: String,
    /// Name of the editor, for the log.
    source: String,
    shared: Arc<Shared>,
    reports: Reports,
    live: Option<Live>,
    /// A prompt that waits for the end of a turn that the agent began by itself.
    prompt: Option<Prompt>,
    /// The notices that the editor has got.
    noticed: HashSet<String>,
}

/// A running session.
pub(super) struct Live {
    pub(super) control: SessionControl,
    pub(super) requests: Requests,
    pub(super) folder: RunFolder,
    /// The setup, with the settings changed since the start.
    setup: Setup,
    /// The task that runs turns and writes the log.
    pub(super) work: JoinHandle<()>,
    /// The task that reads the log for the editor.
    follower: Option<JoinHandle<()>>,
}

impl Live {
    pub(super) fn new(
        control: SessionControl,
        requests: Requests,
        folder: RunFolder,
        setup: &Setup,
        work: JoinHandle<()>,
    ) -> Self {
        Self {
            control,
            requests,
            folder,
            setup: setup.clone(),
            work,
            follower: None,
        }
    }

    /// Ends the session and its process, and waits until the log was shown.
    async fn end(self) {
        self.control.end(false);
        let _ = self.work.await;
        if let Some(follower) = self.follower {
            let _ = follower.await;
        }
    }
}

impl Thread {
    async fn work(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        loop {
            let command = tokio::select! {
                command = commands.recv() => command,
                () = sleep(RETRY_INTERVAL), if self.prompt.is_some() => {
                    if let Some(prompt) = self.prompt.take() {
                        self.send(prompt).await;
                    }
                    continue;
                }
            };
            match command {
                Some(Command::Prompt(setup, prompt)) => match self.ready(&setup).await {
                    Ok(()) => self.send(prompt).await,
                    Err(error) => self.refuse(error),
                },
                Some(Command::Apply(setup)) => self.apply(&setup),
                Some(Command::Interrupt) => self.interrupt().await,
                Some(Command::Answer(request_id, answer)) => {
                    if let Some(live) = &self.live {
                        // Fails if another client has answered.
                        let _ = live.requests.answer(&request_id, answer.into());
                    }
                }
                Some(Command::Close { ticket, forget }) => {
                    self.close().await;
                    let result = if forget {
                        let (runs, id) = (self.shared.runs.clone(), self.session_id.clone());
                        let forgotten = spawn_blocking(move || past::forget(&runs, &id)).await;
                        forgotten.unwrap_or_else(|error| {
                            let (code, kind) = (ErrorCode::Io, ErrorKind::Internal);
                            Err(AgentError::new(code, kind, error.to_string()))
                        })
                    } else {
                        Ok(())
                    };
                    let done = ActionResult::Done(ticket, self.session_id.clone(), result);
                    let _ = self.reports.results.send(done);
                    return;
                }
                None => return self.close().await,
            }
        }
    }

    async fn close(&mut self) {
        if let Some(live) = self.live.take() {
            if let Some(follower) = &live.follower {
                // The editor does not need the rest of the log.
                follower.abort();
            }
            live.end().await;
        }
    }

    /// Makes the session ready for a turn with this setup. A new process resumes the conversation.
    async fn ready(&mut self, setup: &Setup) -> Result<(), AgentError> {
        if let Some(live) = &mut self.live {
            let is_over = live.work.is_finished();
            if !is_over && change(live, setup).await {
                return Ok(());
            }
        }
        let resumed = setup.resumed || self.live.is_some();
        if let Some(live) = self.live.take() {
            live.end().await;
        }
        let mut notices = Vec::new();
        let opened = open::open(&self.shared, &self.session_id, setup, resumed, &mut notices).await;
        for notice in notices {
            // Each process of the thread leaves the same out.
            if self.noticed.insert(notice.clone()) {
                let update = Update::Notice(self.session_id.clone(), NOT_TAKEN, notice);
                let _ = self.reports.updates.send(update).await;
            }
        }
        let mut live = opened?;
        live.follower = Some(tokio::spawn(follow(
            self.session_id.clone(),
            live.folder.clone(),
            live.requests.clone(),
            self.reports.updates.clone(),
        )));
        self.live = Some(live);
        Ok(())
    }

    /// Sends a prompt. Its events are in the log.
    async fn send(&mut self, prompt: Prompt) {
        let Some(live) = &self.live else {
            return;
        };
        let command = RunnerCommand::Send {
            prompt: prompt.text.clone(),
            images: prompt.images.clone(),
            from: Some(self.source.clone()),
            key: None,
        };
        match live.control.carry_out(command).await {
            Reply::Turn { .. } => {}
            Reply::Refused {
                code: RefusalCode::Busy,
                ..
            } => self.prompt = Some(prompt),
            Reply::Refused { code, message } => {
                let kind = match code {
                    RefusalCode::OverBudget | RefusalCode::OutOfTime => ErrorKind::Budget,
                    _ => ErrorKind::Invalid,
                };
                self.refuse(AgentError::new(ErrorCode::InvalidParams, kind, message));
            }
            other => {
                let problem = format!("the session did not accept the prompt: {other:?}");
                self.refuse(AgentError::invalid_params(problem));
            }
        }
    }

    /// Applies a changed mode at once. Other settings apply to the next prompt.
    fn apply(&mut self, setup: &Setup) {
        if let Some(live) = &mut self.live
            && live.setup.settings.mode != setup.settings.mode
        {
            let (control, mode) = (live.control.clone(), setup.settings.mode);
            live.setup.settings.mode = mode;
            // In a task of its own: it may wait for the end of the turn, which must stay interruptible.
            tokio::spawn(async move {
                control
                    .carry_out(RunnerCommand::SetPermission { mode })
                    .await
            });
        }
    }

    async fn interrupt(&mut self) {
        if self.prompt.take().is_some() {
            let problem = "the prompt was cancelled";
            let error = AgentError::new(ErrorCode::Aborted, ErrorKind::Aborted, problem);
            return self.refuse(error);
        }
        if let Some(live) = &self.live {
            let interrupt = RunnerCommand::Interrupt { kill: false };
            // Fails if no turn is in progress.
            live.control.carry_out(interrupt).await;
        }
    }

    fn refuse(&self, error: AgentError) {
        let refused = ActionResult::Refused(self.session_id.clone(), error);
        let _ = self.reports.results.send(refused);
    }
}

/// Applies a setup to a running session. Returns `false` if it needs a new process.
async fn change(live: &mut Live, setup: &Setup) -> bool {
    let begun = &live.setup;
    let is_there = begun.cwd == setup.cwd
        && begun.add_dirs == setup.add_dirs
        && begun.mcp_servers == setup.mcp_servers;
    let target = &setup.settings;
    if !is_there || target.effort != begun.settings.effort {
        return false;
    }
    let now = &mut live.setup.settings;
    if target.model != now.model {
        let Some(model) = target.model.clone() else {
            return false;
        };
        let set = RunnerCommand::SetModel { model };
        if !matches!(live.control.carry_out(set).await, Reply::Done) {
            return false;
        }
        now.model.clone_from(&target.model);
    }
    if target.mode != now.mode {
        let set = RunnerCommand::SetPermission { mode: target.mode };
        if !matches!(live.control.carry_out(set).await, Reply::Done) {
            return false;
        }
        now.mode = target.mode;
    }
    true
}

/// Reads a log to its end and reports its entries.
async fn follow(
    session_id: String,
    folder: RunFolder,
    requests: Requests,
    updates: mpsc::Sender<Update>,
) {
    // Without a readable log there is nothing to report.
    let Ok(mut log) = client::Follow::new(folder, 0) else {
        return;
    };
    let mut announced = HashSet::new();
    // Requests whose tool call is not announced yet. Usually it is the next entry.
    let mut early: Vec<EarlyRequest> = Vec::new();
    loop {
        let next = if early.is_empty() {
            Ok(log.next().await)
        } else {
            timeout(ANNOUNCEMENT_DELAY, log.next()).await
        };
        let line = match next {
            Ok(Ok(Some(line))) if !line.is_end() => line,
            Ok(_) => return,
            Err(_) => {
                for early in early.drain(..) {
                    if forward_request(&session_id, early.request_id, &requests, &updates)
                        .await
                        .is_err()
                    {
                        return;
                    }
                }
                continue;
            }
        };
        let Ok(entry) = line.entry() else {
            continue;
        };
        let mut request = None;
        let mut content = None;
        if let RunLogEntry::Agent(entry) = &entry {
            match &entry.event {
                AgentEvent::Permission(permission)
                    if permission.decision == Decision::Requested =>
                {
                    let tool_id = permission.tool_id.clone();
                    let request_id = permission.request_id.clone();
                    request = request_id.map(|request_id| EarlyRequest {
                        request_id,
                        tool_id,
                    });
                }
                AgentEvent::ToolUse(tool) => {
                    announced.insert(tool.tool_id.clone());
                }
                AgentEvent::FileChange(change) if change.change == ChangeKind::Add => {
                    let file = log.run().info().directory.clone().unwrap_or_default();
                    content = read_file(&file.join(&change.path)).await;
                }
                _ => {}
            }
        }
        let entry = Update::Entry(session_id.clone(), Box::new(entry), content);
        if updates.send(entry).await.is_err() {
            return;
        }
        early.extend(request);
        let is_known = |early: &mut EarlyRequest| {
            (early.tool_id.as_ref()).is_none_or(|id| announced.contains(id))
        };
        let known: Vec<_> = early.extract_if(.., is_known).collect();
        for early in known {
            if forward_request(&session_id, early.request_id, &requests, &updates)
                .await
                .is_err()
            {
                return;
            }
        }
    }
}

/// A permission request and its tool call.
struct EarlyRequest {
    request_id: String,
    tool_id: Option<Id>,
}

/// Forwards a pending request to the editor. Returns an error if the editor has disconnected.
async fn forward_request(
    session_id: &str,
    request_id: String,
    requests: &Requests,
    updates: &mpsc::Sender<Update>,
) -> Result<(), ()> {
    let mut pending = requests.pending().into_iter();
    let Some(pending) = pending.find(|it| it.request_id == request_id) else {
        return Ok(());
    };
    let update = Update::Request(session_id.to_owned(), request_id, Box::new(pending.into()));
    updates.send(update).await.map_err(drop)
}

/// Returns the text of a file; `None` if it is too large, not a regular file or not readable.
async fn read_file(path: &std::path::Path) -> Option<String> {
    let about = tokio::fs::metadata(path).await.ok()?;
    if !about.is_file() || about.len() > MAX_FILE {
        return None;
    }
    tokio::fs::read_to_string(path).await.ok()
}
