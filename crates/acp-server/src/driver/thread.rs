//! A thread of the editor and its session, which begins with the first prompt.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use teamster_api::{Command as RunnerCommand, ProblemCode, RunHandle, ServiceError};
use teamster_core::{AgentError, ErrorCode, ErrorKind, PermissionAnswer};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::connection::{ActionResult, Reports, Update};
use super::follow::Follower;
use super::{Shared, open, past};
use crate::{Prompt, Setup, Ticket};

/// Interval between attempts to send a prompt during a turn that the agent began by itself.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Time limit for the end of a session.
pub(super) const END_LIMIT: Duration = Duration::from_secs(30);

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

/// A prompt with the key by which it begins only one turn, however often it is sent.
struct KeyedPrompt {
    prompt: Prompt,
    key: String,
}

impl KeyedPrompt {
    fn new(prompt: Prompt) -> Self {
        Self {
            prompt,
            key: Uuid::now_v7().to_string(),
        }
    }

    fn command(&self, source: &str) -> RunnerCommand {
        RunnerCommand::Send {
            prompt: self.prompt.text.clone(),
            images: self.prompt.images.clone(),
            from: Some(source.to_owned()),
            key: Some(self.key.clone()),
        }
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
    prompt: Option<KeyedPrompt>,
    /// The notices that the editor has got.
    noticed: HashSet<String>,
}

/// A running session.
struct Live {
    run: RunHandle,
    /// The setup, with the settings changed since the start.
    setup: Setup,
    /// The task that reads the log for the editor. It ends with the log.
    follower: JoinHandle<()>,
}

impl Live {
    fn is_over(&self) -> bool {
        self.follower.is_finished()
    }

    /// Ends the session, and waits until its log was shown.
    async fn end(self) {
        let end = async {
            // Fails if it has ended already.
            let _ = self.run.cancel(false).await;
            let _ = self.follower.await;
        };
        // A service that cannot be reached delays nothing for long.
        let _ = timeout(END_LIMIT, end).await;
    }

    /// Ends the session. The editor does not need the rest of the log.
    async fn end_unseen(self) {
        self.follower.abort();
        let end = async {
            let _ = self.run.cancel(false).await;
            let _ = self.run.result().await;
        };
        let _ = timeout(END_LIMIT, end).await;
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
                    Ok(()) => self.send(KeyedPrompt::new(prompt)).await,
                    Err(error) => self.refuse(error),
                },
                Some(Command::Apply(setup)) => self.apply(&setup),
                Some(Command::Interrupt) => self.interrupt().await,
                Some(Command::Answer(request_id, answer)) => {
                    if let Some(live) = &self.live {
                        // Fails if another client has answered.
                        let _ = live.run.answer(request_id, answer.into()).await;
                    }
                }
                Some(Command::Close { ticket, forget }) => {
                    self.close().await;
                    let result = if forget {
                        past::forget(&self.shared, &self.session_id).await
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
            live.end_unseen().await;
        }
    }

    /// Makes the session ready for a turn with this setup. A new process resumes the conversation.
    async fn ready(&mut self, setup: &Setup) -> Result<(), AgentError> {
        if let Some(live) = &mut self.live
            && !live.is_over()
            && change(live, setup).await
        {
            return Ok(());
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
        let run = opened?;
        let folder = self.shared.has_files.then(|| setup.cwd.clone());
        let updates = self.reports.updates.clone();
        let follower = Follower::new(&self.session_id, run.clone(), folder, updates);
        let shared = self.shared.clone();
        self.live = Some(Live {
            run,
            setup: setup.clone(),
            follower: tokio::spawn(async move { follower.work(&shared).await }),
        });
        Ok(())
    }

    /// Sends a prompt. Its events are in the log. A session that has just ended is continued by another one.
    async fn send(&mut self, keyed: KeyedPrompt) {
        let Some(live) = &self.live else {
            return;
        };
        let command = keyed.command(&self.source);
        let mut sent = live.run.send(command.clone()).await;
        let is_over = |error: &ServiceError| {
            let codes = [ProblemCode::RunEnded, ProblemCode::SessionEnding];
            error.code.is_some_and(|code| codes.contains(&code))
        };
        if sent.as_ref().is_err_and(is_over) {
            let mut setup = live.setup.clone();
            setup.resumed = true;
            if let Some(live) = self.live.take() {
                live.end().await;
            }
            if let Err(error) = self.ready(&setup).await {
                return self.refuse(error);
            }
            if let Some(live) = &self.live {
                sent = live.run.send(command).await;
            }
        }
        match sent {
            Ok(_) => {}
            Err(error) if error.code == Some(ProblemCode::SessionBusy) => self.prompt = Some(keyed),
            Err(error) => self.refuse(self.shared.agent_error(error)),
        }
    }

    /// Applies a changed mode at once. Other settings apply to the next prompt.
    fn apply(&mut self, setup: &Setup) {
        if let Some(live) = &self.live
            && live.setup.settings.mode != setup.settings.mode
        {
            let (run, mode) = (live.run.clone(), setup.settings.mode);
            let (id, updates) = (self.session_id.clone(), self.reports.updates.clone());
            // In a task of its own: it may wait for the end of the turn, which must stay interruptible. The next prompt
            // sets the mode again.
            tokio::spawn(async move {
                if let Err(error) = run.set_permission(mode).await {
                    let update = Update::Notice(id, "Mode not changed", error.to_string());
                    // Fails only after the connection has ended.
                    let _ = updates.send(update).await;
                }
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
            // Fails if no turn is in progress.
            let _ = live.run.interrupt(false).await;
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
        if live.run.send(set).await.is_err() {
            return false;
        }
        now.model.clone_from(&target.model);
    }
    if target.mode != now.mode {
        if live.run.set_permission(target.mode).await.is_err() {
            return false;
        }
        now.mode = target.mode;
    }
    true
}
