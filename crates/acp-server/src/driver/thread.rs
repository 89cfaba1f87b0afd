//! A thread of the editor and its session, which begins with the first prompt.

use std::collections::{HashSet, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use teamster_api::{Command as RunnerCommand, ProblemCode, ServiceError};
use teamster_core::{AgentError, ErrorCode, ErrorKind, PermissionAnswer, Stopping};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use uuid::Uuid;

use super::change::Mode;
use super::connection::{ActionResult, Reports, Update};
use super::follow::Follower;
use super::live::{END_LIMIT, Live};
use super::repeat::{is_break, repeated};
use super::{SentFolder, Shared, change, open, past, queue};
use crate::server::NOT_TAKEN;
use crate::{Prompt, Setup, Ticket};

/// Time limit for what a session brings back at its end.
pub(super) const BRING_BACK_LIMIT: Duration = Duration::from_mins(2);
/// Time limit for a notice. Its reader may be gone.
const NOTICE_LIMIT: Duration = Duration::from_secs(1);

/// Title of a notice about a folder that went along.
const FOLDER: &str = "Folder";

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
        sent: None,
        is_sent_in_vain: false,
        begun: None,
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
            trace: None,
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
    /// The folder that was sent for the session that is to be opened.
    sent: Option<SentFolder>,
    /// Some of the folder may have been sent, and no session was opened with it.
    is_sent_in_vain: bool,
    /// The setup of the last session that was opened, with the settings of the last prompt.
    begun: Option<Setup>,
    /// A prompt that waits for a machine, or for the end of a turn that the agent began by itself.
    prompt: Option<KeyedPrompt>,
    /// The notices that the editor has got.
    noticed: HashSet<String>,
}

impl Thread {
    async fn work(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        // Commands that came while the folder was sent.
        let mut waiting = VecDeque::new();
        loop {
            let run = self.live.as_ref().map(|live| live.run.clone());
            let has_prompt = self.prompt.is_some();
            let command = match waiting.pop_front() {
                Some(command) => Some(command),
                None => tokio::select! {
                    command = commands.recv() => command,
                    idle = Live::idle(run.as_ref()), if has_prompt => {
                        match (self.prompt.take(), idle) {
                            (Some(prompt), Ok(())) => self.send(prompt).await,
                            (Some(_), Err(error)) => self.refuse(self.shared.agent_error(error)),
                            (None, _) => {}
                        }
                        continue;
                    }
                    () = Live::ended_by_itself(self.live.as_mut()) => {
                        if let Some(live) = self.live.take() {
                            self.bring_back(&live).await;
                        }
                        continue;
                    }
                },
            };
            match command {
                Some(Command::Prompt(setup, prompt)) => {
                    let sent = self.send_folder(&setup, &mut commands, &mut waiting).await;
                    let ready = match sent {
                        Ok(()) => self.ready(&setup).await,
                        Err(error) => Err(error),
                    };
                    match ready {
                        Ok(()) => self.send(KeyedPrompt::new(prompt)).await,
                        Err(error) => self.refuse(error),
                    }
                }
                Some(Command::Apply(setup)) => self.apply(&setup),
                Some(Command::Interrupt) => self.interrupt().await,
                Some(Command::Answer(request_id, answer)) => self.answer(request_id, answer),
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
            self.bring_back(&live).await;
        } else if self.is_sent_in_vain
            && let Some(folders) = &self.shared.folders
        {
            let _ = timeout(END_LIMIT, folders.give_up(&self.session_id)).await;
        }
    }

    /// Sends the editor's folder, if it goes along, before the session is opened. Other commands wait meanwhile; a cancel
    /// and the end of the thread stop it.
    async fn send_folder(
        &mut self,
        setup: &Setup,
        commands: &mut mpsc::UnboundedReceiver<Command>,
        waiting: &mut VecDeque<Command>,
    ) -> Result<(), AgentError> {
        let Some(folders) = self.shared.folders.clone() else {
            return Ok(());
        };
        if self.begun.is_some() || self.sent.is_some() {
            return Ok(());
        }
        // An earlier prompt may have been refused before there was a session.
        if setup.resumed
            && past::thread(&self.shared, &self.session_id)
                .await?
                .is_some()
        {
            return Ok(());
        }
        self.is_sent_in_vain = true;
        let mut sending = pin!(folders.send(&self.session_id, &setup.cwd));
        let sent = loop {
            tokio::select! {
                // It has begun before a command stops it.
                biased;
                sent = &mut sending => break sent,
                command = commands.recv() => match command {
                    Some(Command::Interrupt) | None => return Err(cancelled()),
                    Some(close @ Command::Close { .. }) => {
                        waiting.push_back(close);
                        return Err(cancelled());
                    }
                    Some(command) => waiting.push_back(command),
                },
            }
        };
        let sent = sent.map_err(|error| self.shared.agent_error(error))?;
        for warning in &sent.warnings {
            self.notify(FOLDER, warning.clone()).await;
        }
        self.sent = Some(sent);
        Ok(())
    }

    /// Brings back what a session has left in the folder that went along with it.
    async fn bring_back(&self, live: &Live) {
        let (Some(folders), Some(folder)) = (&self.shared.folders, &live.folder) else {
            return;
        };
        let brought = timeout(BRING_BACK_LIMIT, folders.bring_back(&live.run, folder)).await;
        let report = match brought {
            Ok(Ok(report)) => report,
            Ok(Err(error)) => Some(error.message),
            Err(_) => {
                Some("the changes did not come back in time; they are still there".to_owned())
            }
        };
        if let Some(report) = report {
            self.notify(FOLDER, report).await;
        }
    }

    async fn notify(&self, title: &'static str, text: String) {
        let update = Update::Notice(self.session_id.clone(), title, text);
        let _ = self
            .reports
            .updates
            .send_timeout(update, NOTICE_LIMIT)
            .await;
    }

    /// Makes the session ready for a turn with this setup. A new process resumes the conversation.
    async fn ready(&mut self, setup: &Setup) -> Result<(), AgentError> {
        if let Some(live) = &mut self.live
            && !live.is_over()
        {
            if live.is_queued().await {
                // A command would wait for a machine. The settings are applied once one has the session.
                self.begun = Some(setup.clone());
                return Ok(());
            }
            let changed = change::apply(live, setup).await;
            if changed.map_err(|error| self.shared.agent_error(error))? {
                // A prompt that waits may be the first one of the next process.
                self.begun = Some(setup.clone());
                return Ok(());
            }
        }
        let resumed = setup.resumed || self.begun.is_some();
        let mut ended = self.live.take();
        if let Some(live) = &mut ended {
            live.end().await;
        }
        let mut notices = Vec::new();
        let sent = self.sent.as_ref();
        let opened = open::open(
            &self.shared,
            &self.session_id,
            setup,
            sent,
            resumed,
            &mut notices,
        )
        .await;
        for notice in notices {
            // Each process of the thread leaves the same out.
            if self.noticed.insert(notice.clone()) {
                let update = Update::Notice(self.session_id.clone(), NOT_TAKEN, notice);
                let _ = self.reports.updates.send(update).await;
            }
        }
        let run = match opened {
            Ok(run) => run,
            Err(error) => {
                // Nothing follows the session that has ended.
                if let Some(ended) = &ended {
                    self.bring_back(ended).await;
                }
                return Err(error);
            }
        };
        let folder = self.shared.has_files.then(|| setup.cwd.clone());
        let updates = self.reports.updates.clone();
        let mode = Mode::new(setup.settings.mode);
        let follower = Follower::new(&self.session_id, run.clone(), folder, updates, mode.clone());
        let shared = self.shared.clone();
        let may_be_queued = queue::is_queued(&run).await;
        if may_be_queued {
            let updates = self.reports.updates.clone();
            tokio::spawn(queue::report(self.session_id.clone(), run.clone(), updates));
        }
        self.live = Some(Live {
            may_be_queued,
            run,
            setup: setup.clone(),
            mode,
            follower: tokio::spawn(async move { follower.work(&shared).await }),
            folder: (self.shared.folders.as_ref()).map(|_| setup.cwd.clone()),
        });
        self.sent = None;
        self.begun = Some(setup.clone());
        self.is_sent_in_vain = false;
        Ok(())
    }

    /// Returns whether a prompt can be sent, after the changes that came while the session was queued. Until a machine has
    /// it, a prompt waits here, where it can be cancelled.
    async fn is_taken(&mut self) -> Result<bool, AgentError> {
        let is_due = match &mut self.live {
            Some(live) if live.may_be_queued => !live.is_queued().await,
            // It ended while the prompt waited.
            live => live.is_none(),
        };
        if is_due && let Some(setup) = self.begun.clone() {
            self.ready(&setup).await?;
        }
        let live = self.live.as_ref().ok_or_else(cancelled)?;
        Ok(!live.may_be_queued)
    }

    /// Sends a prompt. Its events are in the log. A session that has just ended is continued by another one.
    async fn send(&mut self, keyed: KeyedPrompt) {
        match self.is_taken().await {
            Ok(true) => {}
            Ok(false) => {
                self.prompt = Some(keyed);
                return;
            }
            Err(error) => return self.refuse(error),
        }
        let Some(live) = &self.live else {
            return self.refuse(cancelled());
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
            if let Some(mut live) = self.live.take() {
                live.end().await;
                self.bring_back(&live).await;
            }
            if let Err(error) = self.ready(&setup).await {
                return self.refuse(error);
            }
            if let Some(live) = &self.live {
                if live.may_be_queued {
                    self.prompt = Some(keyed);
                    return;
                }
                sent = live.run.send(command).await;
            }
        }
        match sent {
            Ok(_) => {}
            Err(error) if error.code == Some(ProblemCode::SessionBusy) => self.prompt = Some(keyed),
            Err(error) => self.refuse(self.shared.agent_error(error)),
        }
    }

    /// Applies a changed mode at once, or once a machine has the session. Other settings apply to the next prompt.
    fn apply(&mut self, setup: &Setup) {
        let is_queued = self.live.as_ref().is_some_and(|live| live.may_be_queued);
        if is_queued && let Some(begun) = &mut self.begun {
            begun.settings.mode = setup.settings.mode;
            return;
        }
        if let Some(live) = &self.live
            && !live.mode.is(setup.settings.mode)
        {
            let (run, mode) = (live.run.clone(), setup.settings.mode);
            let (known, before) = (live.mode.clone(), live.mode.set(None));
            let (id, updates) = (self.session_id.clone(), self.reports.updates.clone());
            // In a task of its own: it may wait for the end of the turn, which must stay interruptible. The next prompt
            // sets the mode again if it is not known.
            tokio::spawn(async move {
                let Err(error) = run.set_permission(mode).await else {
                    known.set(Some(mode));
                    return;
                };
                known.set(before.filter(|_| !is_break(&error)));
                // A session that has refused it is continued by another process, which begins in that mode.
                let title = if is_break(&error) {
                    "Mode not changed"
                } else {
                    "Mode from the next prompt on"
                };
                let update = Update::Notice(id, title, error.to_string());
                // Fails only after the connection has ended.
                let _ = updates.send(update).await;
            });
        }
    }

    /// Cancels the prompt that waits, and interrupts the turn in progress, for whose end it may wait.
    async fn interrupt(&mut self) {
        let waits = self.prompt.take().is_some();
        if waits {
            self.refuse(cancelled());
        }
        // A command would wait for a machine, too.
        if let Some(live) = &self.live
            && !(waits && live.may_be_queued)
        {
            // Fails if no turn is in progress.
            let _ = live.run.interrupt(Stopping::Graceful).await;
        }
    }

    /// Answers a request. A turn waits for it, so it is repeated after a break of the connection: of two answers, the first
    /// one counts.
    fn answer(&self, request_id: String, answer: PermissionAnswer) {
        if let Some(live) = &self.live {
            let run = live.run.clone();
            let answer = teamster_api::Answer::from(answer);
            // In a task of its own, so that the turn can be cancelled meanwhile.
            tokio::spawn(async move {
                // Fails if another client has answered, or if this answer has arrived before.
                let _ = repeated(|| run.answer(request_id.clone(), answer.clone())).await;
            });
        }
    }

    fn refuse(&self, error: AgentError) {
        let refused = ActionResult::Refused(self.session_id.clone(), error);
        let _ = self.reports.results.send(refused);
    }
}

fn cancelled() -> AgentError {
    let problem = "the prompt was cancelled";
    AgentError::new(ErrorCode::Aborted, ErrorKind::Aborted, problem)
}
