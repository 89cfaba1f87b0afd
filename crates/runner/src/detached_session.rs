//! Runner of a live session.

use std::sync::Arc;
use std::time::Duration;

use teamster_api::RunLogEntry;
use teamster_core::time::millis;
use teamster_core::{
    AgentEvent, AgentSession, Done, EventStream, NoticeLevel, NoticeSource, RunResult, RunStatus,
};
use teamster_orchestrator::{Closing, Orchestrator};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::log_task::{LogTask, SideChannels};
use crate::server::{Control, Listener, serve};
use crate::session_control::{Prompt, SessionControl};
use crate::{Finished, NewRun, Requests, RunFolder, RunLock, SessionRuns};

/// Configuration of a detached session.
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
    /// Creates the runner of this plan. `requests` and `request_events` come from [`Requests::of`], and the
    /// policies of the candidates use the same `requests`. The plan's runs MUST have the id of `run`.
    pub fn new(
        run: NewRun,
        orchestrator: Orchestrator,
        plan: SessionPlan,
        requests: Requests,
        request_events: mpsc::UnboundedReceiver<AgentEvent>,
    ) -> Self {
        let NewRun {
            folder,
            log,
            listener,
            lock,
            ..
        } = run;
        let task = LogTask::new(log, folder.id());
        let sessions = plan.runs.sessions().cloned().collect();
        let (control, prompts, notes) =
            SessionControl::new(sessions, task.status().clone(), *plan.runs.budget());
        let turns = Turns {
            task,
            side: SideChannels {
                requests,
                request_events,
                notes,
            },
            orchestrator,
            plan,
            control,
            prompts,
            began: Instant::now(),
            cut: false,
        };
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

    /// Plays turns to the end of the session and writes its log to the end.
    pub async fn work(self) -> Finished {
        let mut turns = self.turns;
        let control = Control::of_session(
            turns.task.position(),
            turns.control.clone(),
            turns.side.requests.clone(),
        )
        .status(turns.task.status().clone());
        turns.task.status().idle();
        let server = tokio::spawn(serve(self.listener, control));
        turns.play_all().await;
        let mut result = turns.end().await;
        let log = turns.task.end(&mut result).await;
        server.abort();
        self.folder.close_socket();
        drop(self.lock);
        Finished { result, log }
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
}

/// Next step of a session.
enum Next {
    Prompt(Prompt),
    /// The CLI began a turn by itself.
    Unasked(EventStream),
    End,
}

impl Turns {
    async fn play_all(&mut self) {
        while !self.task.is_lost() {
            self.notify_at_rest(true);
            let next = self.next().await;
            self.notify_at_rest(false);
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
        loop {
            tokio::select! {
                biased;
                () = self.control.ended() => return Next::End,
                Some(prompt) = self.prompts.recv() => return Next::Prompt(prompt),
                Some(event) = self.side.request_events.recv() => self.task.push_event(event),
                Some(note) = self.side.notes.recv() => self.task.push_note(note),
                begun = unasked(&*session, &self.control) => return Next::Unasked(begun),
                () = self.task.due() => {}
                () = until(idle_end) => {
                    let idle = idle.unwrap_or_default();
                    self.task.push_event(AgentEvent::notice(
                        NoticeLevel::Info,
                        NoticeSource::Runtime,
                        format!("the session is ended: no turn was played for {idle:?}"),
                    ));
                    return Next::End;
                }
            }
            if self.task.write() {
                return Next::End;
            }
        }
    }

    /// Plays a turn.
    async fn turn(&mut self, prompt: Option<Prompt>, begun: Option<EventStream>) {
        let run_id = self.plan.runs.next_id();
        self.task.set_run(&run_id);
        let from = prompt.as_ref().and_then(|prompt| prompt.from.clone());
        self.task.status().turn(&run_id, from.clone());
        let (mut text, mut images) = Default::default();
        if let Some(prompt) = prompt {
            (text, images) = (prompt.text, prompt.images);
            self.task
                .push_message(text.clone(), prompt.from, prompt.key, false);
            // After an error the log is written later.
            self.task.write();
            // The client may be gone. The turn is played anyway.
            let _ = prompt.accepted.send((run_id.clone(), self.task.written()));
        }
        let runs = &mut self.plan.runs;
        if let Some(model) = self.control.take_model() {
            runs.model_changed(model);
        }
        // A limit of the service delays retries, not prompts.
        self.orchestrator.release(runs.session().provider()).await;
        let request = runs.request(&run_id, &text, &images, begun);
        let control = &self.control;
        control.set_current(runs.current());
        let mut log = self.orchestrator.log(request);
        control.turn_began(log.abort_handle(), from);
        let status = self.task.status().clone();
        let mut see = |entry: &RunLogEntry| {
            runs.see(entry);
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
        self.control.end(false);
        self.plan.runs.close().await;
        let status = if self.cut {
            RunStatus::Aborted
        } else {
            RunStatus::Completed
        };
        let mut result = RunResult::default().status(status).aborted(self.cut);
        self.task.status().totals().write_to(&mut result);
        result.duration_ms = millis(self.began.elapsed());
        result.session_id = self.session().id();
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
