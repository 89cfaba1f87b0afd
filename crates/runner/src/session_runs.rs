//! The turns of a live session as runs.

use std::sync::Arc;
use std::time::Duration;

use teamster_core::{
    AgentError, AgentEvent, AgentSession, Capabilities, EventStream, ExecuteParams, Image,
    RunResult, RunStatus, SessionOptions, SessionRuntime,
};
use teamster_orchestrator::{
    Budget, Candidate, RetryPolicy, RunEvent, RunLogEntry, RunObserver, RunRequest, SessionTurns,
};

use crate::SessionWriter;
use crate::status::Totals;

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
        let session = runtime.open(options)?.into();
        Ok(Self::of(session, runtime.capabilities().clone(), params))
    }

    /// An open session with the capabilities of its runtime and the parameters that it was opened with.
    pub fn of(
        session: Arc<dyn AgentSession>,
        capabilities: Capabilities,
        params: ExecuteParams,
    ) -> Self {
        Self {
            session,
            capabilities,
            params,
        }
    }

    /// The provider.
    pub fn provider(&self) -> &str {
        self.session.provider()
    }

    /// Whether it can be held to this budget; if not, an error with the reason.
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

/// The turns of a live session, each of which is a run: who plays them, and what is left of their budget.
///
/// The session is with the first candidate. A fallback takes its place while nothing has come of the session yet;
/// then it stays, because another agent would not know the conversation.
#[non_exhaustive]
pub struct SessionRuns {
    id: String,
    /// The agent, and those that take its place while nothing has come of the session yet. There is always a first.
    candidates: Vec<SessionCandidate>,
    /// What to do when an attempt of a turn fails.
    pub retry: RetryPolicy,
    /// What all turns may use together. Its time is that of the turns, not that between them.
    pub budget: Budget,
    /// Keeps account of the turns.
    pub observer: Option<Arc<dyn RunObserver>>,
    /// Keeps other processes from the first candidate's session. It holds the continued one already.
    pub writer: Option<SessionWriter>,
    current: usize,
    /// The session stays with this candidate: something has come of it there.
    settled: bool,
    /// The number of the newest turn.
    count: u64,
    totals: Totals,
}

impl SessionRuns {
    /// The turns of a session with this id and this agent: no retry, no fallback, no budget.
    pub fn new(id: impl Into<String>, candidate: SessionCandidate) -> Self {
        Self {
            id: id.into(),
            candidates: vec![candidate],
            retry: RetryPolicy::default().retries(0).max_wait(Duration::ZERO),
            budget: Budget::default(),
            observer: None,
            writer: None,
            current: 0,
            settled: false,
            count: 0,
            totals: Totals::default(),
        }
    }

    /// Adds an agent that takes over if those before it fail in the first turn.
    pub fn add_fallback(&mut self, candidate: SessionCandidate) {
        self.candidates.push(candidate);
    }

    /// The session's own id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The sessions of all candidates, in order of preference.
    pub fn sessions(&self) -> impl Iterator<Item = &Arc<dyn AgentSession>> {
        self.candidates.iter().map(|candidate| &candidate.session)
    }

    /// Which of them works.
    pub fn current(&self) -> usize {
        self.current
    }

    /// The session that works.
    pub fn session(&self) -> &Arc<dyn AgentSession> {
        &self.candidates[self.current].session
    }

    /// The id of the next turn: the session's, `.` and a number.
    pub fn next_id(&mut self) -> String {
        self.count += 1;
        format!("{}.{}", self.id, self.count)
    }

    /// The run of a turn with this prompt, or of one that the CLI has begun by itself.
    ///
    /// Its entries must be passed to [`see`](Self::see).
    pub fn request(
        &mut self,
        run_id: &str,
        text: &str,
        images: &[Image],
        mut begun: Option<EventStream>,
    ) -> RunRequest {
        let by_itself = begun.is_some();
        if !(self.settled || by_itself) {
            self.current = 0;
        }
        let mut turn = |candidate: &SessionCandidate| {
            let mut params = candidate.params.clone();
            text.clone_into(&mut params.prompt);
            params.images = images.to_vec();
            params.session_id = candidate.session.id().map(|id| id.to_string());
            candidate.turn(params, begun.take())
        };
        let first = turn(&self.candidates[self.current]);
        let mut request = RunRequest::new(first.runtime, first.params).run_id(run_id);
        if !(self.settled || by_itself) {
            for other in &self.candidates[1..] {
                request = request.fallback(turn(other));
            }
        }
        request.retry = self.retry.clone();
        if by_itself {
            request.retry.retries = 0;
        }
        request.budget = left(self.budget, &self.totals);
        request.observer.clone_from(&self.observer);
        request
    }

    /// Takes note of an entry of a turn.
    pub fn see(&mut self, entry: &RunLogEntry) {
        match entry {
            RunLogEntry::Agent(entry) => {
                if let Some(writer) = &mut self.writer {
                    writer.see(&entry.event);
                }
                if let AgentEvent::Done(done) = &entry.event {
                    self.has_ended(&done.result);
                }
            }
            RunLogEntry::Run(entry) => {
                if let RunEvent::Fallback { next, .. } = &entry.event {
                    self.falls_back(&next.provider);
                }
            }
            _ => {}
        }
    }

    fn has_ended(&mut self, result: &RunResult) {
        self.totals.add(result);
        self.settled |= result.status == RunStatus::Completed || !result.text.is_empty();
    }

    /// The next candidate continues, in place of the one that failed.
    fn falls_back(&mut self, provider: &str) {
        let rest = self.candidates.iter().enumerate().skip(self.current + 1);
        if let Some((index, _)) = rest.into_iter().find(|(_, it)| it.provider() == provider) {
            self.current = index;
            if let Some(writer) = &mut self.writer {
                writer.switch(provider);
            }
        }
    }

    /// Why no turn can begin: nothing is left of the budget.
    pub fn spent(&self) -> Option<String> {
        spent(&self.budget, &self.totals)
    }

    /// Ends the agents' processes. After this other processes can work with the session.
    pub async fn close(&mut self) {
        for candidate in &self.candidates {
            candidate.session.close().await;
        }
        self.writer = None;
    }
}

/// What is left of the budget of a session. Without anything left no turn begins.
fn left(budget: Budget, totals: &Totals) -> Budget {
    let mut left = budget;
    let tokens = totals.usage.and_then(|usage| usage.total_tokens());
    left.tokens = (left.tokens).map(|most| most.saturating_sub(tokens.unwrap_or_default()).max(1));
    left.usd =
        (left.usd).map(|most| (most - totals.cost_usd.unwrap_or_default()).max(f64::MIN_POSITIVE));
    left.turns = (left.turns).map(|most| most.saturating_sub(totals.answers).max(1));
    let time = Duration::from_millis(totals.duration_ms);
    left.time = (left.time).map(|most| most.saturating_sub(time).max(Duration::from_millis(1)));
    left
}

/// Why no turn can begin: nothing is left of this budget.
pub(crate) fn spent(budget: &Budget, totals: &Totals) -> Option<String> {
    let tokens = totals.usage.and_then(|usage| usage.total_tokens());
    let time = Duration::from_millis(totals.duration_ms);
    let what = match () {
        () if budget.usd.is_some_and(|most| totals.cost_usd >= Some(most)) => "USD",
        () if budget.tokens.is_some_and(|most| tokens >= Some(most)) => "tokens",
        () if budget.turns.is_some_and(|most| totals.answers >= most) => "turns",
        () if budget.time.is_some_and(|most| time >= most) => "time",
        () => return None,
    };
    Some(format!(
        "the budget of this session is spent ({what}): no turn can begin"
    ))
}
