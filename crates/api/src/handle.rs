//! A handle to one run of a service.

use std::future::poll_fn;
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_core::stream::BoxStream;
use teamster_core::text::one_line;
use teamster_core::{AgentEvent, PermissionMode, RunResult, Stopping};

use crate::{
    Accepted, Answer, AppliedChanges, Command, DiffQuery, DiscardedChanges, FileHasher, FileList,
    FileManifest, LiveStatus, LogLine, PendingRequest, ProblemCode, Reply, RunLogEntry, RunService,
    RunView, ServiceError, Spec, ViewState, WorkspaceDiff,
};

/// A run or session of a service.
///
/// It works the same for a run on this machine and on another one: the service decides. Dropping it does not end the
/// run. Errors [name the run](ServiceError::run_id).
///
/// Each method fails as the one of [`RunService`] that it calls: that of its name, or else
/// [`send`](RunService::send).
#[derive(Clone)]
pub struct RunHandle {
    service: Arc<dyn RunService>,
    id: String,
    accepted: Accepted,
}

teamster_core::debug_fields!(RunHandle { id });

impl RunHandle {
    /// Creates a handle to the run with this id, which is not looked for.
    pub fn new(service: Arc<dyn RunService>, id: impl Into<String>) -> Self {
        Self {
            service,
            id: id.into(),
            accepted: Accepted::default(),
        }
    }

    /// Starts a run or session with this id, which the caller makes.
    pub async fn start(
        service: Arc<dyn RunService>,
        id: impl Into<String>,
        spec: impl Into<Spec>,
    ) -> Result<Self, ServiceError> {
        let id = id.into();
        let accepted = service.start(&id, spec.into()).await?;
        Ok(Self {
            service,
            id,
            accepted,
        })
    }

    /// Finds a run by its id or a unique prefix of it.
    pub async fn find(service: Arc<dyn RunService>, id: &str) -> Result<Self, ServiceError> {
        let id = service.resolve(id).await?.run_id;
        Ok(Self::new(service, id))
    }

    /// Returns the id of the run.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the answer to the start, such as its warnings. It is empty unless this handle [started](Self::start) the
    /// run.
    pub fn accepted(&self) -> &Accepted {
        &self.accepted
    }

    /// Returns the run's state.
    pub async fn view(&self) -> Result<RunView, ServiceError> {
        let view = self.service.show(&self.id).await;
        view.map_err(|error| error.about(&self.id))
    }

    /// Returns the run's state without its live status and its result.
    pub async fn outline(&self) -> Result<RunView, ServiceError> {
        let view = self.service.outline(&self.id).await;
        view.map_err(|error| error.about(&self.id))
    }

    /// Gives the run another title.
    pub async fn rename(&self, title: Option<String>) -> Result<(), ServiceError> {
        let renamed = self.service.rename(&self.id, title).await;
        renamed.map_err(|error| error.about(&self.id))
    }

    /// Follows the log after the entry with this number; 0 is the beginning.
    pub fn follow(&self, after: u64) -> LogStream {
        LogStream {
            lines: self.service.follow(&self.id, after),
            run_id: self.id.clone(),
        }
    }

    /// Waits for the end of the run, and returns its result.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be followed to its end.
    pub async fn result(&self) -> Result<Box<RunResult>, ServiceError> {
        let run = self.outline().await?.summary;
        if run.state == ViewState::Ended
            && let Some(result) = self.view().await?.result
        {
            return Ok(result);
        }
        // The last entry may be written already.
        let mut log = self.follow(run.seq.saturating_sub(1));
        let mut last = None;
        while let Some(line) = log.next().await {
            last = line?.result();
        }
        last.ok_or_else(|| {
            let message = format!("the log of run {} has no result", self.id);
            ServiceError::new(ProblemCode::Internal, message)
        })
    }

    /// Waits for the end of the turn with this id of a session, and returns its result.
    ///
    /// # Errors
    ///
    /// Fails if the session ends without such a turn, or its log cannot be followed.
    pub async fn turn_result(&self, turn_id: &str) -> Result<Box<RunResult>, ServiceError> {
        if let Some(result) = self.turn_result_after(0, turn_id).await? {
            return Ok(result);
        }
        let message = format!("the session has ended without a turn {}", one_line(turn_id));
        Err(ServiceError::new(ProblemCode::RunEnded, message))
    }

    /// Waits for the end of the turn with this id, whose entries come after the one with the number `after`, and returns its
    /// result; `None` if the session ends without such a turn.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be followed.
    pub async fn turn_result_after(
        &self,
        after: u64,
        turn_id: &str,
    ) -> Result<Option<Box<RunResult>>, ServiceError> {
        let mut log = self.follow(after);
        while let Some(line) = log.next().await {
            let line = line?;
            if line.type_name() == "done"
                && let Ok(RunLogEntry::Agent(entry)) = line.entry()
                && entry.run_id.as_deref() == Some(turn_id)
                && let AgentEvent::Done(done) = entry.event
            {
                return Ok(Some(done.result));
            }
        }
        Ok(None)
    }

    /// Returns the changes of the run's workspace.
    pub async fn diff(&self, query: DiffQuery) -> Result<WorkspaceDiff, ServiceError> {
        self.service.diff(&self.id, query).await
    }

    /// Applies the changes of the ended run to the files of its repository, on the service's machine.
    pub async fn apply(&self) -> Result<AppliedChanges, ServiceError> {
        self.service.apply(&self.id).await
    }

    /// Discards the changes of the ended run, with its worktree and its branch.
    pub async fn discard(&self) -> Result<DiscardedChanges, ServiceError> {
        self.service.discard(&self.id).await
    }

    /// Returns the files that the ended run brings back.
    pub async fn files(&self) -> Result<FileList, ServiceError> {
        self.service.files(&self.id).await
    }

    /// Reads a file of the ended run, part by part, each of which is checked by its hash. Returns its manifest.
    ///
    /// # Errors
    ///
    /// Fails as [`RunService::read_part`] does, with [`ProblemCode::FileDamaged`] if the content is not that of the
    /// manifest, and with [`ProblemCode::Internal`] if it cannot be written.
    pub async fn read(
        &self,
        name: &str,
        mut to: impl Write + Send,
    ) -> Result<FileManifest, ServiceError> {
        let manifest = self.service.manifest(&self.id, name).await?;
        manifest.check()?;
        let mut hasher = FileHasher::new(name);
        for number in 0..u32::try_from(manifest.parts.len()).unwrap_or(u32::MAX) {
            let part = self.service.read_part(&self.id, name, number).await?;
            manifest.check_part(number, &part)?;
            hasher.update(&part);
            to.write_all(&part).map_err(|error| not_written(&error))?;
        }
        to.flush().map_err(|error| not_written(&error))?;
        if hasher.finish() != manifest {
            let message = format!("\"{name}\" does not fit its manifest");
            return Err(ServiceError::new(ProblemCode::FileDamaged, message));
        }
        Ok(manifest)
    }

    /// Returns the requests that wait for an answer; none if the run has ended.
    pub async fn requests(&self) -> Result<Vec<PendingRequest>, ServiceError> {
        match self.send(Command::Requests).await {
            Ok(Reply::Requests { requests }) => Ok(requests),
            Err(error) if error.code == Some(ProblemCode::RunEnded) => Ok(Vec::new()),
            Ok(reply) => Err(unexpected(&reply)),
            Err(error) => Err(error),
        }
    }

    /// Returns the live status.
    ///
    /// # Errors
    ///
    /// Fails as [`RunService::send`] does. A runner that does not answer is no error, but a state.
    pub async fn status(&self) -> Result<LiveStatus, ServiceError> {
        match self.send(Command::Status).await? {
            Reply::Status { status } => Ok(*status),
            reply => Err(unexpected(&reply)),
        }
    }

    /// Answers a request.
    pub async fn answer(
        &self,
        request_id: impl Into<String>,
        answer: Answer,
    ) -> Result<(), ServiceError> {
        let request_id = request_id.into();
        self.command(Command::Answer { request_id, answer }).await
    }

    /// Stops the run.
    pub async fn cancel(&self, stopping: Stopping) -> Result<(), ServiceError> {
        let kill = stopping.is_kill();
        self.command(Command::Cancel { kill }).await
    }

    /// Begins a turn of a session. Returns the id of the turn, and the number of the entry with the prompt.
    pub async fn say(&self, prompt: impl Into<String>) -> Result<(String, u64), ServiceError> {
        self.say_from(None, prompt, None).await
    }

    /// Begins a turn as [`say`](Self::say) does, with the name of the sender for the log and other clients. Repeating a
    /// call with the same key is safe.
    pub async fn say_from(
        &self,
        sender: Option<String>,
        prompt: impl Into<String>,
        key: Option<String>,
    ) -> Result<(String, u64), ServiceError> {
        self.turn(Command::Send {
            prompt: prompt.into(),
            images: Vec::new(),
            from: sender,
            key,
            trace: None,
        })
        .await
    }

    /// Begins a turn by a [`Command::Send`]. Returns the id of the turn, and the number of the entry with the prompt.
    pub async fn turn(&self, command: Command) -> Result<(String, u64), ServiceError> {
        match self.send(command).await? {
            Reply::Turn { run_id, seq, .. } => Ok((run_id, seq)),
            reply => Err(unexpected(&reply)),
        }
    }

    /// Begins a turn as [`turn`](Self::turn) does, as soon as no other turn is in progress. Of several prompts that wait, any
    /// may be next.
    ///
    /// # Errors
    ///
    /// Fails as [`RunService::send`] does, and as [`idle`](Self::idle) does.
    pub async fn queue(&self, command: Command) -> Result<(String, u64), ServiceError> {
        loop {
            match self.turn(command.clone()).await {
                Err(error) if error.code == Some(ProblemCode::SessionBusy) => self.idle().await?,
                begun => return begun,
            }
        }
    }

    /// Sends text to the agent during the turn in progress of a session.
    pub async fn steer(&self, text: impl Into<String>) -> Result<(), ServiceError> {
        let text = text.into();
        self.command(Command::Steer { text, from: None }).await
    }

    /// Interrupts the turn in progress of a session.
    pub async fn interrupt(&self, stopping: Stopping) -> Result<(), ServiceError> {
        let kill = stopping.is_kill();
        self.command(Command::Interrupt { kill }).await
    }

    /// Sets the permission mode of a session from the next turn on.
    pub async fn set_permission(&self, mode: PermissionMode) -> Result<(), ServiceError> {
        self.command(Command::SetPermission { mode }).await
    }

    /// Sends any command and returns its reply, which is no refusal.
    pub async fn send(&self, command: Command) -> Result<Reply, ServiceError> {
        let reply = self.service.send(&self.id, command).await;
        reply.map_err(|error| error.about(&self.id))
    }

    /// Waits until no turn of a session is in progress: then a prompt that was refused with
    /// [`ProblemCode::SessionBusy`] can be sent again. Another sender may be first.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be found, or its log cannot be followed.
    pub async fn idle(&self) -> Result<(), ServiceError> {
        // Before the status, so that the end of the turn that it has is behind it.
        let newest = self.outline().await?.summary.seq;
        let live = self.view().await?.summary.live.clone();
        if live.is_none_or(|live| live.turn.is_none()) {
            return Ok(());
        }
        let mut log = self.follow(newest);
        while let Some(line) = log.next().await {
            if line?.type_name() == "done" {
                break;
            }
        }
        Ok(())
    }

    async fn command(&self, command: Command) -> Result<(), ServiceError> {
        self.send(command).await.map(drop)
    }
}

fn unexpected(reply: &Reply) -> ServiceError {
    ServiceError::new(
        ProblemCode::Internal,
        format!("the service sent another reply: {reply:?}"),
    )
}

/// The log of a run, as it is written.
#[must_use = "nothing is read before the stream is polled"]
pub struct LogStream {
    lines: BoxStream<'static, Result<LogLine, ServiceError>>,
    run_id: String,
}

teamster_core::debug_fields!(LogStream { run_id });

impl LogStream {
    /// Returns the next entry; `None` after the last. Cancel-safe.
    pub async fn next(&mut self) -> Option<Result<LogLine, ServiceError>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Stream for LogStream {
    type Item = Result<LogLine, ServiceError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.lines.as_mut().poll_next(cx);
        next.map_err(|error| error.about(&self.run_id))
    }
}

fn not_written(error: &io::Error) -> ServiceError {
    let message = format!("what was read cannot be written: {error}");
    ServiceError::new(ProblemCode::Internal, message)
}
