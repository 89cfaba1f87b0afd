//! A thread of the editor: the live session behind it, begun with its first prompt.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use teamster::{AgentError, AgentEvent, ErrorCode, ErrorKind, PermissionAnswer};
use teamster_acp_server::{Prompt, Setup, Ticket};
use teamster_core::{ChangeKind, Decision, Id};
use teamster_runner::protocol::{Command as RunnerCommand, Reply};
use teamster_runner::{RefusalCode, Requests, RunFolder, SessionControl, client};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::connection::{Happening, News, Reports};
use super::{Shared, open, past};
use teamster::orchestrator::RunLogEntry;

/// How often a prompt is sent again while the agent works by itself.
const PAUSE: Duration = Duration::from_millis(100);
/// How long the editor is not asked about a call that is not announced yet.
const ANNOUNCEMENT: Duration = Duration::from_millis(300);
/// The largest file whose content is shown after a change, in bytes.
const LARGEST_FILE: u64 = 256 << 10;

/// What is wanted of a thread.
pub(super) enum Command {
    Prompt(Box<Setup>, Prompt),
    Apply(Box<Setup>),
    Interrupt,
    Answer(String, PermissionAnswer),
    Close { ticket: Ticket, forget: bool },
}

/// A thread that runs until this is dropped.
pub(super) struct Handle {
    commands: mpsc::UnboundedSender<Command>,
    task: JoinHandle<()>,
}

impl Handle {
    pub(super) fn send(&self, command: Command) {
        // One that was closed takes no command.
        let _ = self.commands.send(command);
    }

    /// Ends it; to be waited for.
    pub(super) fn end(self) -> JoinHandle<()> {
        drop(self.commands);
        self.task
    }
}

/// Starts the thread of a session.
pub(super) fn start(
    session_id: &str,
    source: String,
    shared: Arc<Shared>,
    reports: Reports,
) -> Handle {
    let (commands, wanted) = mpsc::unbounded_channel();
    let thread = Thread {
        session_id: session_id.to_owned(),
        source,
        shared,
        reports,
        live: None,
        prompt: None,
    };
    Handle {
        commands,
        task: tokio::spawn(thread.work(wanted)),
    }
}

struct Thread {
    session_id: String,
    /// Who speaks, for the log.
    source: String,
    shared: Arc<Shared>,
    reports: Reports,
    live: Option<Live>,
    /// Waits for the end of a turn that the agent has begun by itself.
    prompt: Option<Prompt>,
}

/// A session with its process.
pub(super) struct Live {
    pub(super) control: SessionControl,
    pub(super) requests: Requests,
    pub(super) folder: RunFolder,
    /// What it was begun with, and what was changed since.
    setup: Setup,
    /// Plays the turns, and writes the log.
    pub(super) work: JoinHandle<()>,
    /// Reads the log for the editor.
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

    /// Ends the session and its process, once what is in its log was shown.
    async fn end(self) {
        self.control.end(false);
        let _ = self.work.await;
        if let Some(follower) = self.follower {
            let _ = follower.await;
        }
    }
}

impl Thread {
    async fn work(mut self, mut wanted: mpsc::UnboundedReceiver<Command>) {
        loop {
            let command = tokio::select! {
                command = wanted.recv() => command,
                () = sleep(PAUSE), if self.prompt.is_some() => {
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
                        // Another client may have been faster.
                        let _ = live.requests.answer(&request_id, answer.into());
                    }
                }
                Some(Command::Close { ticket, forget }) => {
                    self.close().await;
                    let result = if forget {
                        past::forget(&self.shared.runs, &self.session_id)
                    } else {
                        Ok(())
                    };
                    let done = Happening::Done(ticket, self.session_id.clone(), result);
                    let _ = self.reports.happenings.send(done);
                    return;
                }
                None => return self.close().await,
            }
        }
    }

    async fn close(&mut self) {
        if let Some(live) = self.live.take() {
            if let Some(follower) = &live.follower {
                // The editor reads no more of it.
                follower.abort();
            }
            live.end().await;
        }
    }

    /// Starts a process with these settings, which resumes the conversation.
    async fn ready(&mut self, setup: &Setup) -> Result<(), AgentError> {
        if let Some(live) = &mut self.live {
            let is_over = live.work.is_finished();
            if !is_over && change(live, setup).await {
                return Ok(());
            }
        }
        let goes_on = setup.goes_on || self.live.is_some();
        if let Some(live) = self.live.take() {
            live.end().await;
        }
        let mut live = open::open(&self.shared, &self.session_id, setup, goes_on).await?;
        live.follower = Some(tokio::spawn(follow(
            self.session_id.clone(),
            live.folder.clone(),
            live.requests.clone(),
            self.reports.news.clone(),
        )));
        self.live = Some(live);
        Ok(())
    }

    /// Sends a prompt; the log has what comes of it.
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
                    RefusalCode::OverBudget => ErrorKind::Budget,
                    _ => ErrorKind::Invalid,
                };
                self.refuse(AgentError::new(ErrorCode::InvalidParams, kind, message));
            }
            other => {
                let problem = format!("the session did not take the prompt: {other:?}");
                self.refuse(AgentError::invalid_params(problem));
            }
        }
    }

    /// Settings that the agent takes over in a turn. The others are those of the next prompt.
    fn apply(&mut self, setup: &Setup) {
        if let Some(live) = &mut self.live
            && live.setup.settings.mode != setup.settings.mode
        {
            let (control, mode) = (live.control.clone(), setup.settings.mode);
            live.setup.settings.mode = mode;
            // It may wait for the end of the turn, which can be interrupted meanwhile.
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
            // Without a turn there is nothing to interrupt.
            live.control.carry_out(interrupt).await;
        }
    }

    fn refuse(&self, error: AgentError) {
        let refused = Happening::Refused(self.session_id.clone(), error);
        let _ = self.reports.happenings.send(refused);
    }
}

/// Brings the session to these settings, where that needs no other process.
async fn change(live: &mut Live, setup: &Setup) -> bool {
    let begun = &live.setup;
    let is_there = begun.cwd == setup.cwd
        && begun.add_dirs == setup.add_dirs
        && begun.mcp_servers == setup.mcp_servers;
    let wanted = &setup.settings;
    if !is_there || wanted.effort != begun.settings.effort {
        return false;
    }
    let now = &mut live.setup.settings;
    if wanted.model != now.model {
        let Some(model) = wanted.model.clone() else {
            return false;
        };
        let set = RunnerCommand::SetModel { model };
        if !matches!(live.control.carry_out(set).await, Reply::Done) {
            return false;
        }
        now.model.clone_from(&wanted.model);
    }
    if wanted.mode != now.mode {
        let set = RunnerCommand::SetPermission { mode: wanted.mode };
        if !matches!(live.control.carry_out(set).await, Reply::Done) {
            return false;
        }
        now.mode = wanted.mode;
    }
    true
}

/// Reads the log to its end, for the editor.
async fn follow(
    session_id: String,
    folder: RunFolder,
    requests: Requests,
    news: mpsc::Sender<News>,
) {
    // A log that cannot be read has nothing for the editor; the turn then ends by the log's end.
    let Ok(mut log) = client::Follow::new(folder, 0) else {
        return;
    };
    let mut announced = HashSet::new();
    // Requests whose call is not announced yet: it comes next, as a rule.
    let mut early: Vec<Early> = Vec::new();
    loop {
        let next = if early.is_empty() {
            Ok(log.next().await)
        } else {
            timeout(ANNOUNCEMENT, log.next()).await
        };
        let line = match next {
            Ok(Ok(Some(line))) if !line.is_end() => line,
            Ok(_) => return,
            Err(_) => {
                for early in early.drain(..) {
                    if ask(&session_id, early.request_id, &requests, &news)
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
        let mut asked = None;
        let mut content = None;
        if let RunLogEntry::Agent(entry) = &entry {
            match &entry.event {
                AgentEvent::Permission(permission)
                    if permission.decision == Decision::Requested =>
                {
                    let tool_id = permission.tool_id.clone();
                    let request = permission.request_id.clone();
                    asked = request.map(|request_id| Early {
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
        let entry = News::Entry(session_id.clone(), Box::new(entry), content);
        if news.send(entry).await.is_err() {
            return;
        }
        early.extend(asked);
        let is_known =
            |early: &mut Early| (early.tool_id.as_ref()).is_none_or(|id| announced.contains(id));
        let known: Vec<_> = early.extract_if(.., is_known).collect();
        for early in known {
            if ask(&session_id, early.request_id, &requests, &news)
                .await
                .is_err()
            {
                return;
            }
        }
    }
}

/// A request of the agent, and the call that it is about.
struct Early {
    request_id: String,
    tool_id: Option<Id>,
}

/// Has the editor asked, unless the request was answered already. An error if the editor has left.
async fn ask(
    session_id: &str,
    request_id: String,
    requests: &Requests,
    news: &mpsc::Sender<News>,
) -> Result<(), ()> {
    let mut pending = requests.pending().into_iter();
    let Some(pending) = pending.find(|it| it.request_id == request_id) else {
        return Ok(());
    };
    let asked = News::Asked(session_id.to_owned(), request_id, Box::new(pending.into()));
    news.send(asked).await.map_err(drop)
}

/// The text of a file that is not too large.
async fn read_file(path: &std::path::Path) -> Option<String> {
    let about = tokio::fs::metadata(path).await.ok()?;
    if !about.is_file() || about.len() > LARGEST_FILE {
        return None;
    }
    tokio::fs::read_to_string(path).await.ok()
}
