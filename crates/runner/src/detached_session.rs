//! The runner of a live session: turns until it is ended.

use std::sync::Arc;
use std::time::Duration;

use teamster_core::time::millis;
use teamster_core::{
    AgentError, AgentEvent, AgentSession, Capabilities, Done, EventStream, ExecuteParams, Image,
    NoticeLevel, NoticeSource, RunResult, RunStatus, SessionOptions, SessionRuntime,
};
use teamster_orchestrator::{
    Budget, Candidate, Orchestrator, RetryPolicy, RunEvent, RunLogEntry, RunObserver, RunRequest,
    SessionTurns,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::log_task::{BeforeDone, LogTask, Side};
use crate::server::{Control, Listener, serve};
use crate::session_control::{Prompt, SessionControl};
use crate::{Finished, NewRun, Requests, RunFolder, RunLock, SessionWriter};

/// What is to be a detached session.
#[non_exhaustive]
pub struct SessionPlan {
    /// The agent, and those that take its place while nothing has come of the session yet. There is always a first.
    pub candidates: Vec<SessionCandidate>,
    /// What to do when an attempt of a turn fails.
    pub retry: RetryPolicy,
    /// What all turns may use together. Its time is that of the turns, not that between them.
    pub budget: Budget,
    /// Keeps account of the turns, each of which is a run.
    pub observer: Option<Arc<dyn RunObserver>>,
    /// End the session when no turn was played for this long.
    pub idle: Option<Duration>,
    /// Keeps other processes from the first candidate's session. It holds the one that goes on already.
    pub writer: Option<SessionWriter>,
    /// An event for the log before its end.
    pub before_done: Option<BeforeDone>,
}

/// An agent that a session can be with.
#[non_exhaustive]
pub struct SessionCandidate {
    session: Arc<dyn AgentSession>,
    capabilities: Capabilities,
    params: ExecuteParams,
}

impl SessionCandidate {
    /// Opens a session of this runtime. What it cannot honour is an error; nothing is started.
    pub fn open(runtime: &dyn SessionRuntime, options: SessionOptions) -> Result<Self, AgentError> {
        let params = options.params.clone();
        Ok(Self {
            session: runtime.open(options)?.into(),
            capabilities: runtime.capabilities().clone(),
            params,
        })
    }

    /// The provider.
    pub fn provider(&self) -> &str {
        self.session.provider()
    }

    /// Whether it can be held to this budget; if not, an error that says why.
    pub fn check(&self, budget: &Budget) -> Result<(), AgentError> {
        budget.check(&self.turn(ExecuteParams::new(""), None))
    }

    fn turn(&self, params: ExecuteParams, begun: Option<EventStream>) -> Candidate {
        let mut turns = SessionTurns::new(self.session.clone(), &self.capabilities);
        if let Some(begun) = begun {
            turns = turns.begun(begun);
        }
        Candidate::new(Arc::new(turns), params)
    }
}

impl SessionPlan {
    /// A session with this agent: no retry, no fallback, no budget.
    pub fn new(candidate: SessionCandidate) -> Self {
        Self {
            candidates: vec![candidate],
            retry: RetryPolicy::default().retries(0).max_wait(Duration::ZERO),
            budget: Budget::default(),
            observer: None,
            idle: None,
            writer: None,
            before_done: None,
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
    /// ask there.
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
        let sessions = plan.candidates.iter().map(|it| it.session.clone());
        let (control, prompts, notes) =
            SessionControl::new(sessions.collect(), task.status().clone(), plan.budget);
        let turns = Turns {
            id: folder.id().to_owned(),
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
            count: 0,
            settled: false,
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
    /// The session's.
    id: String,
    task: LogTask,
    side: Side,
    orchestrator: Orchestrator,
    plan: SessionPlan,
    control: SessionControl,
    prompts: mpsc::UnboundedReceiver<Prompt>,
    began: Instant,
    /// The number of the newest turn.
    count: u64,
    /// The session stays with this candidate: something has come of it there.
    settled: bool,
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
            match self.next().await {
                Next::Prompt(prompt) => self.turn(Some(prompt), None).await,
                Next::Unasked(begun) => self.turn(None, Some(begun)).await,
                Next::End => return,
            }
        }
    }

    fn session(&self) -> Arc<dyn AgentSession> {
        self.plan.candidates[self.control.current()].session.clone()
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
        self.count += 1;
        let run_id = format!("{}.{}", self.id, self.count);
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
        let Some(request) = self.request(&run_id, &text, &images, begun) else {
            return;
        };
        let mut log = self.orchestrator.log(request);
        self.control.begins(log.abort_handle(), from);
        let (control, plan) = (&self.control, &mut self.plan);
        let status = self.task.status().clone();
        let mut see = |entry: &RunLogEntry| match entry {
            RunLogEntry::Agent(entry) => {
                if let Some(writer) = &mut plan.writer {
                    writer.see(&entry.event);
                }
                if let AgentEvent::Done(done) = &entry.event {
                    // Before it is in the log: whoever sees it can speak.
                    status.add(&done.result);
                    status.idle();
                    control.has_ended();
                }
            }
            RunLogEntry::Run(entry) => {
                if let RunEvent::Fallback { next, .. } = &entry.event {
                    falls_back(plan, control, &next.provider);
                }
            }
            _ => {}
        };
        let result = self.task.record(&mut log, &mut self.side, &mut see).await;
        self.task.set_run(&self.id.clone());
        self.settled |= result.status == RunStatus::Completed || !result.text.is_empty();
        self.cut = result.aborted && self.control.is_ending();
    }

    /// The run of a turn.
    fn request(
        &mut self,
        run_id: &str,
        text: &str,
        images: &[Image],
        mut begun: Option<EventStream>,
    ) -> Option<RunRequest> {
        let by_itself = begun.is_some();
        let candidates = if self.settled || by_itself {
            let current = self.control.current();
            &self.plan.candidates[current..=current]
        } else {
            self.control.set_current(0);
            &self.plan.candidates
        };
        let mut turns = candidates.iter().map(|candidate| {
            let mut params = candidate.params.clone();
            text.clone_into(&mut params.prompt);
            params.images = images.to_vec();
            params.session_id = candidate.session.id().map(|id| id.to_string());
            candidate.turn(params, begun.take())
        });
        let first = turns.next()?;
        let mut request = RunRequest::new(first.runtime, first.params).run_id(run_id);
        for other in turns {
            request = request.fallback(other);
        }
        request.retry = self.plan.retry.clone();
        if by_itself {
            request.retry.retries = 0;
        }
        request.budget = self.budget_left();
        request.observer.clone_from(&self.plan.observer);
        Some(request)
    }

    /// What is left of the budget. Without anything left no turn begins.
    fn budget_left(&self) -> Budget {
        let totals = self.task.status().totals();
        let mut left = self.plan.budget;
        let tokens = totals.usage.and_then(|usage| usage.total_tokens());
        left.tokens = left
            .tokens
            .map(|most| most.saturating_sub(tokens.unwrap_or_default()).max(1));
        left.usd = left
            .usd
            .map(|most| (most - totals.cost_usd.unwrap_or_default()).max(f64::MIN_POSITIVE));
        left.turns = left
            .turns
            .map(|most| most.saturating_sub(totals.answers).max(1));
        let time = Duration::from_millis(totals.duration_ms);
        left.time = left
            .time
            .map(|most| most.saturating_sub(time).max(Duration::from_millis(1)));
        left
    }

    /// Ends the agent's process, and gives the log its last entries.
    async fn end(&mut self) -> RunResult {
        self.control.end(false);
        for candidate in &self.plan.candidates {
            candidate.session.close().await;
        }
        // The process is gone: whoever sees the end can go on with the session.
        self.plan.writer = None;
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

/// The next candidate goes on, in place of the one that failed.
fn falls_back(plan: &mut SessionPlan, control: &SessionControl, provider: &str) {
    let next = control.current() + 1;
    let rest = plan.candidates.iter().enumerate().skip(next);
    if let Some((index, _)) = rest.into_iter().find(|(_, it)| it.provider() == provider) {
        control.set_current(index);
        if let Some(writer) = &mut plan.writer {
            writer.switch(provider);
        }
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
