//! Turns of a live session as runs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use teamster_api::{RunEvent, RunLogEntry};
use teamster_core::{
    AgentError, AgentEvent, AgentSession, BudgetKind, Capabilities, EventStream, ExecuteParams,
    Image, RunResult, RunStatus, SessionOptions, SessionRuntime,
};
use teamster_orchestrator::{
    Budget, Candidate, RetryPolicy, RunObserver, RunRequest, SessionTurns, SharedHolds,
};

use crate::SessionWriter;
use crate::account_session::{AccountSession, AccountTurn, BringConversation, SessionAccount};
use crate::status::Totals;

/// Candidate for the agent of a session.
#[non_exhaustive]
pub struct SessionCandidate {
    session: Arc<dyn AgentSession>,
    capabilities: Capabilities,
    params: ExecuteParams,
    account: Option<String>,
    /// The session again, if its agent has several accounts.
    accounts: Option<Arc<AccountSession>>,
    budget: Budget,
}

impl SessionCandidate {
    /// Opens a session of this runtime, whose turns together are held to this budget: tools whose cost nothing counts are
    /// denied ([`Budget::prepare`]). No process is started.
    ///
    /// # Errors
    ///
    /// Fails if the runtime does not support an option other than the title, which is that of the turns too, or cannot be held to
    /// the budget. A cost that the agent reports only after each answer is enough: no turn begins once it is spent.
    pub fn open(
        runtime: &dyn SessionRuntime,
        mut options: SessionOptions,
        budget: Budget,
    ) -> Result<Self, AgentError> {
        let capabilities = runtime.capabilities().clone();
        budget.prepare(&capabilities, &mut options.params);
        let params = options.params.clone();
        fit_title(&capabilities, &mut options.params);
        let session = runtime.open(options)?.into();
        Self::of(session, capabilities, params).held_to(budget)
    }

    /// Opens a session with several accounts of its agent, as [`open`](Self::open) does. It begins with the first. When the
    /// limit of the one in use is reached, the next one takes over, after the last one the first; `bring` brings the conversation
    /// there.
    ///
    /// # Errors
    ///
    /// Fails as [`open`](Self::open) does, and without an account.
    pub fn open_with_accounts(
        runtime: Arc<dyn SessionRuntime>,
        mut accounts: Vec<SessionAccount>,
        budget: Budget,
        bring: BringConversation,
    ) -> Result<Self, AgentError> {
        let capabilities = runtime.capabilities().clone();
        let mut title = None;
        for account in &mut accounts {
            let params = &mut account.options.params;
            budget.prepare(&capabilities, params);
            title.clone_from(&params.title);
            fit_title(&capabilities, params);
        }
        let session = Arc::new(AccountSession::open(runtime, accounts, bring)?);
        let mut params = session.account(0).options.params.clone();
        params.title = title;
        let mut candidate = Self::of(session.clone(), capabilities, params);
        candidate.accounts = Some(session);
        candidate.held_to(budget)
    }

    fn held_to(mut self, budget: Budget) -> Result<Self, AgentError> {
        self.check(&budget)?;
        self.budget = budget;
        Ok(self)
    }

    /// Wraps an open session, without a budget. `capabilities` are those of its runtime, `params` those that it was
    /// opened with.
    pub fn of(
        session: Arc<dyn AgentSession>,
        capabilities: Capabilities,
        params: ExecuteParams,
    ) -> Self {
        Self {
            session,
            capabilities,
            params,
            account: None,
            accounts: None,
            budget: Budget::default(),
        }
    }

    /// Sets the account of the agent, by a name ([`Candidate::account`]).
    #[must_use]
    pub fn account(mut self, name: impl Into<String>) -> Self {
        self.account = Some(name.into());
        self
    }

    /// Returns the provider's id.
    pub fn provider(&self) -> &str {
        self.session.provider()
    }

    /// Checks that the agent can be held to this budget.
    fn check(&self, budget: &Budget) -> Result<(), AgentError> {
        let mut capabilities = self.capabilities.clone();
        // A CLI with a limit of its own reports what each answer has cost.
        capabilities.live_cost |= capabilities.max_budget_usd;
        let turns = SessionTurns::new(self.session.clone(), &capabilities);
        budget.check(&Candidate::new(Arc::new(turns), ExecuteParams::new("")))
    }

    /// Returns the candidates of a turn: one for each account, from the one in use on. A conversation that exists
    /// MUST go on with each.
    fn turns(
        &self,
        params: &ExecuteParams,
        mut begun: Option<EventStream>,
        must_continue: bool,
    ) -> Vec<Candidate> {
        let mut turns = || {
            let turns = SessionTurns::new(self.session.clone(), &self.capabilities);
            match begun.take() {
                Some(begun) => turns.begun(begun),
                None => turns,
            }
        };
        let Some(session) = &self.accounts else {
            let candidate = Candidate::new(Arc::new(turns()), params.clone());
            return vec![match &self.account {
                Some(name) => candidate.account(name),
                None => candidate,
            }];
        };
        let of_account = |index| {
            let account = session.account(index);
            let mut params = params.clone();
            params.env.clone_from(&account.options.params.env);
            let turn = AccountTurn::new(session.clone(), index, must_continue, turns());
            let candidate = Candidate::new(Arc::new(turn), params).account(&*account.name);
            candidate.shares_sessions(true)
        };
        session.order().map(of_account).collect()
    }
}

/// Keeps the title from a session whose CLI has no place for it: its turns have it all the same.
fn fit_title(can: &Capabilities, params: &mut ExecuteParams) {
    if !can.title {
        params.title = None;
    }
}

/// Candidate of a turn, as the log names it.
struct PlannedTurn {
    /// Index of the session's candidate.
    candidate: usize,
    provider: String,
    account: Option<String>,
}

/// Turns of a live session, each of which is a run: candidates, retries, fallbacks and budget.
///
/// The session begins with the first candidate. A fallback can replace it until a turn has completed or
/// produced text. Then the candidate is fixed, because another agent would not know the conversation. Its accounts still
/// take over from each other.
#[non_exhaustive]
pub struct SessionRuns {
    id: String,
    /// The agent and its fallbacks. Never empty.
    candidates: Vec<SessionCandidate>,
    /// Retries after a failed attempt of a turn.
    pub retry: RetryPolicy,
    /// Limits of all turns together. The time between turns does not count.
    budget: Budget,
    /// Observer of the turns.
    pub observer: Option<Arc<dyn RunObserver>>,
    /// Limits of the agents' accounts that other processes know.
    pub holds: Option<Arc<dyn SharedHolds>>,
    /// Lock that keeps other processes from the session in use. It MUST already hold a resumed session.
    pub writer: Option<SessionWriter>,
    current: usize,
    /// The candidates of the newest turn, in their order, and the position of the last one that took over.
    planned: Vec<PlannedTurn>,
    position: usize,
    /// The candidate is fixed: a turn has completed or produced text.
    settled: bool,
    /// Number of the newest turn.
    count: u64,
    totals: Totals,
    /// The provider of the last turn, and the model that it has reported.
    model: Option<(String, String)>,
}

impl SessionRuns {
    /// Creates the turns of a session with this id and agent, without retries and fallbacks. Their budget is that of the
    /// candidate.
    pub fn new(id: impl Into<String>, candidate: SessionCandidate) -> Self {
        Self {
            id: id.into(),
            budget: candidate.budget.clone(),
            candidates: vec![candidate],
            retry: RetryPolicy::default().chosen(0, None),
            observer: None,
            holds: None,
            writer: None,
            current: 0,
            planned: Vec::new(),
            position: 0,
            settled: false,
            count: 0,
            totals: Totals::default(),
            model: None,
        }
    }

    /// Adds a fallback, used when the earlier candidates fail before the candidate is fixed.
    ///
    /// # Errors
    ///
    /// Fails if the fallback was opened with another budget than the first candidate: it might not be held to it.
    pub fn add_fallback(&mut self, candidate: SessionCandidate) -> Result<(), AgentError> {
        if candidate.budget != self.budget {
            return Err(AgentError::refused(
                "budget",
                "a fallback has the budget of its session: open it with the same",
            ));
        }
        self.candidates.push(candidate);
        Ok(())
    }

    /// Returns the limits of all turns together.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Returns the session's own id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the sessions of all candidates, in order of preference.
    pub fn sessions(&self) -> impl Iterator<Item = &Arc<dyn AgentSession>> {
        self.candidates.iter().map(|candidate| &candidate.session)
    }

    /// Returns the index of the session in use.
    pub fn current(&self) -> usize {
        self.current
    }

    /// Returns the group of the agent in use, which shares limits and holds.
    pub(crate) fn group(&self) -> String {
        let current = &self.candidates[self.current];
        let turns = current.turns(&ExecuteParams::new(""), None, false);
        turns.first().map_or("", Candidate::group).to_owned()
    }

    /// Returns the session in use.
    pub fn session(&self) -> &Arc<dyn AgentSession> {
        &self.candidates[self.current].session
    }

    /// Advances to the next turn and returns its id: `SESSION_ID.NUMBER`.
    pub fn next_id(&mut self) -> String {
        self.count += 1;
        format!("{}.{}", self.id, self.count)
    }

    /// Returns the run of a turn with this prompt, or of a turn that the CLI began by itself (`begun`).
    ///
    /// The caller MUST pass the entries of the run to [`observe`](Self::observe).
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
        let must_continue = self.settled;
        let mut turns = |candidate: &SessionCandidate| {
            let mut params = candidate.params.clone();
            text.clone_into(&mut params.prompt);
            params.images = images.to_vec();
            params.session_id = candidate.session.id().map(|id| id.to_string());
            // Not every agent names its model in each turn, and its price depends on it.
            let known = self
                .model
                .as_ref()
                .filter(|(by, _)| by == candidate.provider());
            params.model = params.model.or_else(|| Some(known?.1.clone()));
            candidate.turns(&params, begun.take(), must_continue)
        };
        let last = if self.settled || by_itself {
            self.current
        } else {
            self.candidates.len() - 1
        };
        let mut request = RunRequest::default().id(run_id);
        self.planned.clear();
        self.position = 0;
        for index in self.current..=last {
            for turn in turns(&self.candidates[index]) {
                self.planned.push(PlannedTurn {
                    candidate: index,
                    provider: turn.provider().to_owned(),
                    account: turn.account.clone(),
                });
                request.candidates.push(turn);
            }
        }
        if by_itself {
            request.candidates.truncate(1);
        }
        request.retry = self.retry.clone();
        if by_itself {
            request.retry.retries = 0;
        } else {
            // A turn that the CLI has begun would be stopped.
            request.holds.clone_from(&self.holds);
        }
        request.budget = remaining(self.budget.clone(), &self.totals);
        let is_reported_late =
            |it: &SessionCandidate| it.capabilities.cost && !it.capabilities.live_cost;
        if self.candidates.iter().any(is_reported_late) {
            // Checked between two turns only.
            request.budget.usd = None;
        }
        request.observer.clone_from(&self.observer);
        request
    }

    /// Updates the state from an entry of a turn.
    pub fn observe(&mut self, entry: &RunLogEntry) {
        match entry {
            RunLogEntry::Agent(entry) => {
                if let Some(writer) = &mut self.writer {
                    writer.see(&entry.event);
                }
                match &entry.event {
                    AgentEvent::SessionStarted(session) => {
                        let provider = self.session().provider().to_owned();
                        let model = session.model.clone();
                        self.model = model.map(|model| (provider, model)).or(self.model.take());
                    }
                    AgentEvent::Done(done) => self.turn_ended(&done.result),
                    _ => {}
                }
            }
            RunLogEntry::Run(entry) => {
                if let RunEvent::Fallback { next, .. } = &entry.event {
                    self.switch_to(&next.provider, next.account.as_deref());
                }
            }
            _ => {}
        }
    }

    /// Reports that the session in use has another model from the next turn on. Until the agent names its model, the
    /// price is that of `model`.
    pub fn model_changed(&mut self, model: impl Into<String>) {
        self.candidates[self.current].params.model = Some(model.into());
        self.model = None;
    }

    /// Returns the sums over all turns.
    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    fn turn_ended(&mut self, result: &RunResult) {
        self.totals.add(result);
        let used = result.usage.and_then(|usage| usage.total_tokens());
        self.totals.unpriced |= !self.candidates[self.current].capabilities.cost
            && result.total_cost_usd.is_none()
            && used.is_some_and(|tokens| tokens > 0);
        self.settled |= result.status == RunStatus::Completed || !result.text.is_empty();
    }

    /// Switches to the candidate of this provider and account after the current one.
    fn switch_to(&mut self, provider: &str, account: Option<&str>) {
        let rest = self.planned.iter().enumerate().skip(self.position + 1);
        let is_next =
            |it: &PlannedTurn| it.provider == provider && it.account.as_deref() == account;
        let Some((position, next)) = rest.into_iter().find(|(_, it)| is_next(it)) else {
            return;
        };
        self.position = position;
        if self.current != next.candidate {
            self.current = next.candidate;
            if let Some(writer) = &mut self.writer {
                writer.switch(provider);
            }
        }
    }

    /// Returns the budget that is spent, if one is: then no turn can begin.
    pub fn spent(&self) -> Option<SpentBudget> {
        spent(&self.budget, &self.totals)
    }

    /// Ends the agents' processes and releases the lock of the session.
    pub async fn close(&mut self) {
        for candidate in &self.candidates {
            candidate.session.close().await;
        }
        self.writer = None;
    }
}

/// Returns the remaining budget of a session. Each limit stays above zero: a spent budget is checked before a
/// turn.
fn remaining(budget: Budget, totals: &Totals) -> Budget {
    let mut remaining = budget;
    let tokens = totals.used.usage.and_then(|usage| usage.total_tokens());
    remaining.tokens =
        (remaining.tokens).map(|most| most.saturating_sub(tokens.unwrap_or_default()).max(1));
    remaining.usd = (remaining.usd)
        .map(|most| (most - totals.used.cost_usd.unwrap_or_default()).max(f64::MIN_POSITIVE));
    remaining.turns = (remaining.turns).map(|most| most.saturating_sub(totals.answers).max(1));
    let time = Duration::from_millis(totals.duration_ms);
    remaining.time =
        (remaining.time).map(|most| most.saturating_sub(time).max(Duration::from_millis(1)));
    remaining
}

/// A spent budget of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpentBudget {
    /// The kind of budget.
    pub kind: BudgetKind,
    /// True if it is unknown what was spent: tokens were used of a model without a price.
    pub unpriced: bool,
}

impl fmt::Display for SpentBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.unpriced {
            return f.write_str(
                "this session's budget in USD cannot be enforced: there is no price for its model; add one to a file \
                 of prices (`TEAMSTER_PRICES`), or begin a session with another model or a limit of tokens",
            );
        }
        let kind = match self.kind {
            BudgetKind::Usd => "USD",
            BudgetKind::Tokens => "tokens",
            BudgetKind::Turns => "turns",
            _ => "time",
        };
        write!(
            f,
            "the budget of this session is spent ({kind}): no turn can begin"
        )
    }
}

/// Returns the part of this budget that is spent, or that cannot be enforced any more.
pub(crate) fn spent(budget: &Budget, totals: &Totals) -> Option<SpentBudget> {
    let tokens = totals.used.usage.and_then(|usage| usage.total_tokens());
    let time = Duration::from_millis(totals.duration_ms);
    let is_unpriced = budget.usd.is_some() && totals.unpriced;
    let kind = match () {
        () if budget
            .usd
            .is_some_and(|most| totals.used.cost_usd >= Some(most)) =>
        {
            BudgetKind::Usd
        }
        () if budget.tokens.is_some_and(|most| tokens >= Some(most)) => BudgetKind::Tokens,
        () if budget.turns.is_some_and(|most| totals.answers >= most) => BudgetKind::Turns,
        () if budget.time.is_some_and(|most| time >= most) => BudgetKind::Time,
        () if is_unpriced => BudgetKind::Usd,
        () => return None,
    };
    Some(SpentBudget {
        kind,
        unpriced: is_unpriced && kind == BudgetKind::Usd,
    })
}
