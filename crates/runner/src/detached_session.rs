//! Runners of live sessions: with a folder for any client, or for the one that has started it.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use teamster_api::{RunLogEntry, title_of};
use teamster_core::time::millis;
use teamster_core::{
    AgentEvent, AgentSession, Done, EventStream, NoticeLevel, NoticeSource, RunResult, RunStatus,
    Stopping,
};
use teamster_orchestrator::{Closing, Orchestrator};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use crate::background::blocking;
use crate::log_sink::{EntryReader, LogSink};
use crate::log_task::{LogTask, SideChannels};
use crate::server::{Control, Listener, serve};
use crate::session_control::{Prompt, SessionControl};
use crate::{AcceptedRun, Finished, RequestChannel, RunFolder, RunLock, SessionRuns};

/// Configuration of a live session.
#[non_exhaustive]
pub struct SessionPlan {
    /// Turns of the session.
    pub runs: SessionRuns,
    /// Time without a turn after which the session ends. Default: none.
    pub idle: Option<Duration>,
    /// Work at the end, once the agent's process has ended. Default: none.
    pub closing: Option<Closing>,
    /// Called with `true` when the agent begins to wait for a prompt, and with `false` when a turn begins.
    /// Default: none.
    pub at_rest: Option<AtRest>,
    /// Gives a session in a folder, if it has no title, the first line of its first prompt as one. Default: no.
    pub titles_of_prompts: bool,
}

/// Callback that learns whether the agent waits for a prompt.
pub type AtRest = Box<dyn Fn(bool) + Send + Sync>;

impl SessionPlan {
    /// Creates a plan without an idle limit and callbacks.
    pub fn new(runs: SessionRuns) -> Self {
        Self {
            runs,
            idle: None,
            closing: None,
            at_rest: None,
            titles_of_prompts: false,
        }
    }
}

/// Live session whose runner is this process: it owns the agent's process, writes the log and serves the
/// clients.
///
/// Each turn is a run of its own with the id `SESSION_ID.NUMBER`. The last entry of the log is the `done` with
/// the session's own id.
#[must_use = "nothing happens before `work` is awaited"]
pub struct DetachedSession {
    folder: RunFolder,
    listener: Listener,
    lock: RunLock,
    turns: Turns,
}

impl DetachedSession {
    /// Creates the runner of this plan. The policies of its candidates use `channel`. The plan's runs
    /// MUST have the id of `run`.
    pub fn new(
        run: AcceptedRun,
        orchestrator: Orchestrator,
        plan: SessionPlan,
        channel: RequestChannel,
    ) -> Self {
        let AcceptedRun {
            folder,
            log,
            listener,
            lock,
            ..
        } = run;
        let task = LogTask::new(LogSink::Log(log), folder.id());
        let titled = plan.titles_of_prompts.then(|| folder.clone());
        let mut turns = Turns::new(task, orchestrator, plan, channel);
        turns.titled = titled;
        Self {
            folder,
            listener,
            lock,
            turns,
        }
    }

    /// Returns the handle that controls the session from this process.
    pub fn control(&self) -> SessionControl {
        self.turns.control.clone()
    }

    /// Runs turns to the end of the session and writes its log to the end.
    pub async fn work(self) -> Finished {
        let server = tokio::spawn(serve(self.listener, self.turns.client_control()));
        let finished = self.turns.work().await;
        server.abort();
        self.folder.close_socket();
        drop(self.lock);
        finished
    }
}

/// Live session of this process without a folder, for one client in this process: it reads the entries, and answers.
///
/// The turns, and what ends the session, are those of a [`DetachedSession`]. Without its reader the session ends.
#[must_use = "nothing happens before `work` is awaited"]
pub struct AttachedSession {
    turns: Turns,
}

/// The client's side of an [`AttachedSession`].
#[derive(Debug)]
#[non_exhaustive]
pub struct AttachedClient {
    /// The entries, with numbers from 1.
    pub entries: EntryReader,
    /// The number of the newest entry while the agent waits for a prompt and has begun no turn by itself; else `None`.
    pub at_rest: watch::Receiver<Option<u64>>,
}

impl AttachedSession {
    /// Creates the session of this plan, as [`DetachedSession::new`] does.
    pub fn new(
        orchestrator: Orchestrator,
        plan: SessionPlan,
        channel: RequestChannel,
    ) -> (Self, AttachedClient) {
        let (sink, entries) = LogSink::to_reader();
        let task = LogTask::new(sink, plan.runs.id());
        let turns = Turns::new(task, orchestrator, plan, channel);
        let at_rest = turns.at_rest.subscribe();
        (Self { turns }, AttachedClient { entries, at_rest })
    }

    /// Returns what clients use, and the handle that controls the session.
    pub fn control(&self) -> (Control, SessionControl) {
        (self.turns.client_control(), self.turns.control.clone())
    }

    /// Runs turns to the end of the session, and passes all entries to the reader.
    pub async fn work(self) -> Finished {
        self.turns.work().await
    }
}

/// State of a session's turns.
struct Turns {
    task: LogTask,
    side: SideChannels,
    orchestrator: Orchestrator,
    plan: SessionPlan,
    control: SessionControl,
    prompts: mpsc::UnboundedReceiver<Prompt>,
    began: Instant,
    /// The last turn was aborted by the end of the session.
    cut: bool,
    /// The folder that gets a title of a prompt.
    titled: Option<RunFolder>,
    /// The number of the newest entry while the agent waits for a prompt.
    at_rest: watch::Sender<Option<u64>>,
}

/// Next step of a session.
enum Next {
    Prompt(Prompt),
    /// The CLI began a turn by itself.
    Unasked(EventStream),
    End,
}

impl Turns {
    fn new(
        task: LogTask,
        orchestrator: Orchestrator,
        plan: SessionPlan,
        channel: RequestChannel,
    ) -> Self {
        let sessions = plan.runs.sessions().cloned().collect();
        let (control, prompts, notes) =
            SessionControl::new(sessions, task.status().clone(), plan.runs.budget().clone());
        task.status().idle();
        Self {
            task,
            side: SideChannels { channel, notes },
            orchestrator,
            plan,
            control,
            prompts,
            began: Instant::now(),
            cut: false,
            titled: None,
            at_rest: watch::channel(None).0,
        }
    }

    /// Returns what clients use.
    fn client_control(&self) -> Control {
        let (position, requests) = (self.task.position(), self.side.channel.requests.clone());
        let control = Control::of_session(position, self.control.clone(), requests);
        control.status(self.task.status().clone())
    }

    async fn work(mut self) -> Finished {
        self.run_turns().await;
        let mut result = self.end().await;
        let log = self.task.end(&mut result).await;
        Finished { result, log }
    }

    async fn run_turns(&mut self) {
        while !self.task.is_lost() {
            self.notify_at_rest(true);
            let next = self.next().await;
            self.notify_at_rest(false);
            self.at_rest.send_replace(None);
            match next {
                Next::Prompt(prompt) => self.turn(Some(prompt), None).await,
                Next::Unasked(begun) => self.turn(None, Some(begun)).await,
                Next::End => return,
            }
        }
    }

    fn notify_at_rest(&self, is_at_rest: bool) {
        if let Some(at_rest) = &self.plan.at_rest {
            at_rest(is_at_rest);
        }
    }

    fn session(&self) -> Arc<dyn AgentSession> {
        self.plan.runs.session().clone()
    }

    /// Waits for a prompt, an unasked turn or the end.
    async fn next(&mut self) -> Next {
        let session = self.session();
        let idle = self.plan.idle;
        let idle_end = idle.and_then(|idle| Instant::now().checked_add(idle));
        let mut is_settled = false;
        loop {
            tokio::select! {
                biased;
                () = self.control.ended() => return Next::End,
                // Before the prompt that follows it: it is no part of that turn.
                Some(note) = self.side.notes.recv() => self.task.push_note(note),
                Some(prompt) = self.prompts.recv() => return Next::Prompt(prompt),
                Some(event) = self.side.channel.events.recv() => self.task.push_event(event),
                begun = unasked(&*session, &self.control) => return Next::Unasked(begun),
                // Nothing above is ready.
                () = ready(()), if !is_settled => {
                    self.at_rest.send_replace(Some(self.task.written()));
                    is_settled = true;
                    continue;
                }
                () = self.task.due() => {}
                () = until(idle_end) => {
                    let idle = idle.unwrap_or_default();
                    self.task.push_event(AgentEvent::notice(
                        NoticeLevel::Info,
                        NoticeSource::Runtime,
                        format!("the session is ended: it had no turn for {idle:?}"),
                    ));
                    return Next::End;
                }
            }
            is_settled = false;
            if self.task.write() {
                return Next::End;
            }
        }
    }

    async fn turn(&mut self, prompt: Option<Prompt>, begun: Option<EventStream>) {
        let run_id = self.plan.runs.next_id();
        self.task.set_run(&run_id);
        let from = prompt.as_ref().and_then(|prompt| prompt.from.clone());
        self.task.status().turn(&run_id, from.clone());
        let (mut text, mut images, mut trace) = Default::default();
        if let Some(prompt) = prompt {
            (text, images, trace) = (prompt.text, prompt.images, prompt.trace);
            if let Some(folder) = &self.titled
                && let Some(title) = title_of(&text)
            {
                let folder = folder.clone();
                let set = move || {
                    folder.set_first_title(&title);
                    Ok(())
                };
                // It never fails.
                let _ = blocking(set).await;
            }
            self.task
                .push_message(text.clone(), prompt.from, prompt.key, false);
            // After another error the log is written later.
            if self.task.write() {
                // The client learns that the session ends.
                return self.task.set_run(self.plan.runs.id());
            }
            // The client may be gone. The turn runs anyway.
            let _ = prompt.accepted.send((run_id.clone(), self.task.written()));
        }
        let runs = &mut self.plan.runs;
        if let Some(model) = self.control.take_model() {
            runs.model_changed(model);
        }
        // A limit that only this session has met delays retries, not prompts.
        self.orchestrator.release(&runs.group()).await;
        let mut request = runs.request(&run_id, &text, &images, begun);
        if let Some(trace) = trace {
            // The process of the session keeps its own: these are for the observer of the turn.
            for candidate in &mut request.candidates {
                candidate.params.env.extend(trace.variables());
            }
        }
        let control = &self.control;
        control.set_current(runs.current());
        let mut log = self.orchestrator.start_log(request);
        control.turn_began(log.abort_handle(), from);
        let status = self.task.status().clone();
        let mut see = |entry: &RunLogEntry| {
            runs.observe(entry);
            control.set_current(runs.current());
            if let RunLogEntry::Agent(entry) = entry
                && let AgentEvent::Done(_) = &entry.event
            {
                // Before the entry is in the log, so that a client that sees it can send a prompt.
                status.turn_ended(runs.totals());
                status.idle();
                control.turn_ended();
            }
        };
        let result = self.task.record(&mut log, &mut self.side, &mut see).await;
        self.task.set_run(self.plan.runs.id());
        self.cut = result.aborted && self.control.is_ending();
    }

    /// Ends the agent's process and writes the last entries of the log.
    async fn end(&mut self) -> RunResult {
        self.control.end(Stopping::Graceful);
        self.plan.runs.close().await;
        let status = if self.cut {
            RunStatus::Aborted
        } else {
            RunStatus::Completed
        };
        let mut result = RunResult::default().status(status).aborted(self.cut);
        self.task.status().totals().write_to(&mut result);
        result.duration_ms = millis(self.began.elapsed());
        // The process of a session that was stopped during its turn is gone with its id, which the log has.
        let known = self.session().id();
        result.session_id = known.or_else(|| self.task.status().session_id());
        if let Some(close) = self.plan.closing.take() {
            let closed = close().await;
            result.workspace = closed.workspace;
            for event in closed.events {
                self.task.push_event(event);
            }
        }
        let done = Done::new(Box::new(result.clone()));
        self.task.push_event(AgentEvent::Done(done));
        result
    }
}

/// Waits for a turn that the CLI began by itself. Cancel-safe.
async fn unasked(session: &dyn AgentSession, control: &SessionControl) -> EventStream {
    loop {
        // A pending prompt takes precedence.
        if let Some(begun) = control.take_unasked(session) {
            return begun;
        }
        session.unasked_ready().await;
    }
}

/// Waits until the deadline. Without one, waits forever.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
