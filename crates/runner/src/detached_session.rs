//! The runner of a live session: turns until it is ended.

use std::sync::Arc;
use std::time::Duration;

use teamster_core::time::millis;
use teamster_core::{
    AgentEvent, AgentSession, Done, EventStream, NoticeLevel, NoticeSource, RunResult, RunStatus,
};
use teamster_orchestrator::{Orchestrator, RunLogEntry};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::log_task::{BeforeDone, LogTask, Side};
use crate::server::{Control, Listener, serve};
use crate::session_control::{Prompt, SessionControl};
use crate::{Finished, NewRun, Requests, RunFolder, RunLock, SessionRuns};

/// What is to be a detached session.
#[non_exhaustive]
pub struct SessionPlan {
    /// Its turns.
    pub runs: SessionRuns,
    /// End the session when no turn was played for this long.
    pub idle: Option<Duration>,
    /// An event for the log before its end.
    pub before_done: Option<BeforeDone>,
    /// Called with `true` when the agent begins to wait for a prompt, and with `false` when a turn begins.
    pub at_rest: Option<AtRest>,
}

/// Gets to know whether the agent waits for a prompt.
pub type AtRest = Box<dyn Fn(bool) + Send + Sync>;

impl SessionPlan {
    /// A session with these turns, until it is ended.
    pub fn new(runs: SessionRuns) -> Self {
        Self {
            runs,
            idle: None,
            before_done: None,
            at_rest: None,
        }
    }
}

/// A live session of which this process is the runner: it owns the agent's process, writes the log and serves the
/// clients.
///
/// Each turn is a run of its own, with the session's id, `.` and its number for an id; the log's last entry is the
/// `done` with the session's own id.
#[must_use = "nothing happens before `work` is awaited"]
pub struct DetachedSession {
    folder: RunFolder,
    listener: Listener,
    lock: RunLock,
    turns: Turns,
}

impl DetachedSession {
    /// A session of this plan. `requests` and `asked` are those of [`Requests::of`]; the policies of the candidates
    /// ask there. The id of the plan's runs is that of `run`.
    pub fn new(
        run: NewRun,
        orchestrator: Orchestrator,
        plan: SessionPlan,
        requests: Requests,
        asked: mpsc::UnboundedReceiver<AgentEvent>,
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
            SessionControl::new(sessions, task.status().clone(), plan.runs.budget);
        let turns = Turns {
            task,
            side: Side {
                requests,
                asked,
                notes,
                before_done: None,
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

    /// What ends the session from elsewhere in this process.
    pub fn control(&self) -> SessionControl {
        self.turns.control.clone()
    }

    /// Plays turns to the end of the session, and writes the log to its end.
    pub async fn work(self) -> Finished {
        let mut turns = self.turns;
        let control = Control::of_session(
            turns.task.position(),
            turns.control.clone(),
            turns.side.requests.clone(),
        )
        .status(turns.task.status().clone());
        turns.task.status().idle();
        let door = tokio::spawn(serve(self.listener, control));
        turns.play_all().await;
        let mut result = turns.end().await;
        let log = turns.task.end(&mut result).await;
        door.abort();
        self.folder.close_socket();
        drop(self.lock);
        Finished { result, log }
    }
}

/// The turns of a session.
struct Turns {
    task: LogTask,
    side: Side,
    orchestrator: Orchestrator,
    plan: SessionPlan,
    control: SessionControl,
    prompts: mpsc::UnboundedReceiver<Prompt>,
    began: Instant,
    /// The last turn was cut off by the end of the session.
    cut: bool,
}

/// What a session does next.
enum Next {
    Prompt(Prompt),
    /// The CLI has begun a turn by itself.
    Unasked(EventStream),
    End,
}

impl Turns {
    async fn play_all(&mut self) {
        while !self.task.is_lost() {
            self.rests(true);
            let next = self.next().await;
            self.rests(false);
            match next {
                Next::Prompt(prompt) => self.turn(Some(prompt), None).await,
                Next::Unasked(begun) => self.turn(None, Some(begun)).await,
                Next::End => return,
            }
        }
    }

    fn rests(&self, rests: bool) {
        if let Some(at_rest) = &self.plan.at_rest {
            at_rest(rests);
        }
    }

    fn session(&self) -> Arc<dyn AgentSession> {
        self.plan.runs.session().clone()
    }

    /// Waits for what comes next.
    async fn next(&mut self) -> Next {
        let session = self.session();
        let idle = self.plan.idle;
        let idle_end = idle.and_then(|idle| Instant::now().checked_add(idle));
        loop {
            tokio::select! {
                biased;
                () = self.control.ended() => return Next::End,
                Some(prompt) = self.prompts.recv() => return Next::Prompt(prompt),
                Some(event) = self.side.asked.recv() => self.task.push_event(event),
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
            // A log that cannot be written now is written later.
            self.task.write();
            // Without its client the turn is played all the same.
            let _ = prompt.accepted.send((run_id.clone(), self.task.written()));
        }
        let runs = &mut self.plan.runs;
        // A limit of the service holds up retries; a prompt is sent all the same.
        self.orchestrator.release(runs.session().provider()).await;
        let request = runs.request(&run_id, &text, &images, begun);
        let control = &self.control;
        control.set_current(runs.current());
        let mut log = self.orchestrator.log(request);
        control.begins(log.abort_handle(), from);
        let status = self.task.status().clone();
        let mut see = |entry: &RunLogEntry| {
            runs.see(entry);
            control.set_current(runs.current());
            if let RunLogEntry::Agent(entry) = entry
                && let AgentEvent::Done(done) = &entry.event
            {
                // Before it is in the log: a client that sees it can speak.
                status.add(&done.result);
                status.idle();
                control.has_ended();
            }
        };
        let result = self.task.record(&mut log, &mut self.side, &mut see).await;
        self.task.set_run(self.plan.runs.id());
        self.cut = result.aborted && self.control.is_ending();
    }

    /// Ends the agent's process, and gives the log its last entries.
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
        if let Some(before) = self.plan.before_done.take() {
            self.task.push_event(before());
        }
        let done = Done::new(Box::new(result.clone()));
        self.task.push_event(AgentEvent::Done(done));
        result
    }
}

/// Waits for a turn that the CLI has begun by itself. Cancel-safe.
async fn unasked(session: &dyn AgentSession, control: &SessionControl) -> EventStream {
    loop {
        // A prompt that is on its way comes first.
        if let Some(begun) = control.take_unasked(session) {
            return begun;
        }
        session.unasked_ready().await;
    }
}

/// Waits until then; without a time, forever.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
