//! The request for a run: parameters, candidates and limits.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_core::future::BoxFuture;
use serde::Deserialize;
use teamster_core::{
    AbortHandle, AgentError, AgentEvent, AgentRuntime, Capabilities, ErrorKind, ExecuteParams,
    RunEvent, SharedRuntime, WorkspaceResult,
};

use crate::{RetryPolicy, RunObserver, SharedBudget, SharedHolds};

/// A callback that receives every event of a run, in order.
pub type OnEvent = Arc<dyn Fn(&RunEvent) + Send + Sync>;

/// Work at the end of a run or session, which waits for it without a limit. It is called once.
pub type Closing = Arc<dyn Fn() -> BoxFuture<'static, Closed> + Send + Sync>;

/// Resources closed at the end of a run or session.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Closed {
    /// Result of the workspace; `None` if it had none of its own.
    pub workspace: Option<WorkspaceResult>,
    /// Events for the log before `done`.
    pub events: Vec<AgentEvent>,
}

impl Closed {
    /// Creates what was closed.
    pub fn new(workspace: Option<WorkspaceResult>, events: Vec<AgentEvent>) -> Self {
        Self { workspace, events }
    }
}

/// The request for a run.
///
/// ```
/// use teamster_core::{ExecuteParams, SharedRuntime};
/// use teamster_orchestrator::{Budget, Candidate, RetryPolicy, RunRequest};
///
/// # fn example(claude: SharedRuntime, codex: SharedRuntime) {
/// let prompt = "Which tests are flaky?";
/// let request = RunRequest::new(claude, ExecuteParams::new(prompt))
///     .fallback(Candidate::new(codex, ExecuteParams::new(prompt)))
///     .retry(RetryPolicy::default().retries(1))
///     .budget(Budget::default().usd(0.5));
/// # }
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct RunRequest {
    /// Id of the run. Default: a new UUID of version 7, which sorts by time. It must not be the id of an active run.
    pub id: Option<String>,
    /// Candidates in order of preference, starting with the first choice.
    pub candidates: Vec<Candidate>,
    /// Reaction to failed attempts.
    pub retry: RetryPolicy,
    /// Budget of all attempts together.
    pub budget: Budget,
    /// Name of the queue that the run waits in for a slot, such as a user or a channel. Queues take turns.
    pub queue: String,
    /// Callback for every event. The run calls it synchronously, so it must be quick. Panics are ignored.
    pub on_event: Option<OnEvent>,
    /// Observer that records the run.
    pub observer: Option<Arc<dyn RunObserver>>,
    /// Limits of the candidates' accounts that other processes know.
    pub holds: Option<Arc<dyn SharedHolds>>,
    /// Work after the last attempt, once no process of the run is left: its result is part of the run's.
    pub closing: Option<Closing>,
}

teamster_core::setters! {
    RunRequest {
        some_into id: String,
        set retry: RetryPolicy,
        set budget: Budget,
        into queue: String,
        some observer: Arc<dyn RunObserver>,
        some holds: Arc<dyn SharedHolds>,
    }
}

impl RunRequest {
    /// Creates a request with the default policy, no fallback and no budget.
    pub fn new(runtime: SharedRuntime, params: ExecuteParams) -> Self {
        Self {
            candidates: vec![Candidate::new(runtime, params)],
            ..Self::default()
        }
    }

    /// Adds a candidate that is tried after those before it have failed.
    #[must_use]
    pub fn fallback(mut self, candidate: Candidate) -> Self {
        self.candidates.push(candidate);
        self
    }

    /// Checks that the budget can be enforced for every candidate and that each supports its parameters, as far as possible
    /// without starting anything. A run of a refused request ends at once with the same error, so this is only for callers
    /// that need to know in advance.
    ///
    /// # Errors
    ///
    /// Fails as [`Budget::check`] and [`AgentRuntime::check`] do. Errors of the first candidate that are not of the kind
    /// [`Invalid`](ErrorKind::Invalid) are left to its attempt, after which a fallback may go on.
    pub fn check(&self) -> Result<(), AgentError> {
        self.check_ahead()?;
        let first = self.candidates.first();
        match first.map_or(Ok(()), Candidate::check) {
            Err(error) if error.kind == ErrorKind::Invalid => Err(error),
            _ => Ok(()),
        }
    }

    /// Checks the budget, and the parameters of all fallbacks. Otherwise an invalid fallback would be found only after the
    /// other candidates have failed.
    pub(crate) fn check_ahead(&self) -> Result<(), AgentError> {
        let mut candidates = self.candidates.iter();
        candidates.try_for_each(|candidate| self.budget.check(candidate))?;
        let mut fallbacks = self.candidates.iter().skip(1);
        fallbacks.try_for_each(Candidate::check)
    }

    /// Returns a handle for the run. Cancelling the first candidate's `cancel` aborts it too.
    pub(crate) fn abort_handle(&self) -> AbortHandle {
        let parent = self.candidates.first().map(|first| &first.params.cancel);
        parent.map(AbortHandle::new).unwrap_or_default()
    }

    /// Sets the callback for every event.
    #[must_use]
    pub fn on_event(mut self, call: impl Fn(&RunEvent) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(call));
        self
    }

    /// Returns whether more than one attempt is possible.
    pub(crate) fn may_repeat(&self) -> bool {
        let policy = &self.retry;
        self.candidates.len() > 1 || policy.retries > 0 || policy.may_wait()
    }
}

teamster_core::debug_fields!(RunRequest {
    id,
    candidates,
    retry,
    budget,
    queue
});

/// A candidate for a run.
#[derive(Clone)]
#[non_exhaustive]
pub struct Candidate {
    /// The agent's runtime.
    pub runtime: SharedRuntime,
    /// Parameters, including the model, in the terms of the agent's own CLI. Cancelling the first candidate's `cancel`
    /// aborts the run. The `cancel` of other candidates has no effect.
    pub params: ExecuteParams,
    /// Group that shares limits and holds. Default: the provider's id. Use a distinct name for a second account of the
    /// same provider.
    pub group: Option<String>,
    /// The account of the agent, by a name. The log and the history have it.
    pub account: Option<String>,
    /// True if it can resume the sessions of other candidates of its provider for which this is true too, such as those of
    /// another account. Default: it can resume those of its group.
    pub shares_sessions: bool,
}

teamster_core::setters! {
    Candidate {
        set params: ExecuteParams,
        set shares_sessions: bool,
    }
}

impl Candidate {
    /// Creates a candidate with its own parameters.
    pub fn new(runtime: SharedRuntime, params: ExecuteParams) -> Self {
        Self {
            runtime,
            params,
            group: None,
            account: None,
            shares_sessions: false,
        }
    }

    /// Creates a candidate for the same task with another provider.
    ///
    /// It takes the parameters that mean the same for every CLI ([`ExecuteParams::for_other_provider`]). Others can be set
    /// on the returned candidate.
    ///
    /// # Errors
    ///
    /// Fails if `params` has denied tools or resumes a session. Names of denied tools are specific to a CLI, and
    /// leaving them out would allow what was forbidden. Another CLI does not know a resumed session.
    pub fn for_other_provider(
        runtime: SharedRuntime,
        params: &ExecuteParams,
    ) -> Result<Self, AgentError> {
        if !params.denied_tools.is_empty() {
            let problem = format!(
                "`denied_tools` has the tool names of another CLI than {}: give this candidate its own \
                 parameters",
                runtime.id()
            );
            return Err(AgentError::invalid_params(problem).about("denied_tools"));
        }
        if params.session_id.is_some() {
            let problem = format!(
                "{} does not know the session to resume: leave this candidate out, or give it its own \
                 parameters",
                runtime.id()
            );
            return Err(AgentError::invalid_params(problem).about("session_id"));
        }
        let params = params.for_other_provider(runtime.capabilities());
        Ok(Self::new(runtime, params))
    }

    /// Checks the parameters. A runtime that panics has no objection: its attempt reports that.
    fn check(&self) -> Result<(), AgentError> {
        let check = || self.runtime.check(&self.for_agent());
        catch_unwind(AssertUnwindSafe(check)).unwrap_or(Ok(()))
    }

    /// Returns the parameters for the agent: without the title, which is the run's, if its CLI has no place for one.
    pub(crate) fn for_agent(&self) -> ExecuteParams {
        let mut params = self.params.clone();
        if !self.runtime.capabilities().title {
            params.title = None;
        }
        params
    }

    /// Sets the model.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.params.model = Some(model.into());
        self
    }

    /// Sets the account, by a name. It has limits and holds of its own.
    #[must_use]
    pub fn account(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.group = Some(format!("{}@{name}", self.provider()));
        self.account = Some(name);
        self
    }

    /// Returns the provider's id.
    pub fn provider(&self) -> &str {
        self.runtime.id()
    }

    /// Returns the group that shares limits and holds.
    pub fn group(&self) -> &str {
        self.group.as_deref().unwrap_or_else(|| self.runtime.id())
    }
}

teamster_core::debug_fields!(Candidate |it| {
    provider: it.provider(),
    group: it.group(),
    params: it.params,
});

/// The budget of a run over all its attempts.
///
/// A run that exceeds it ends with an error of the kind `budget`. A CLI with a limit of its own gets the remaining
/// budget and ends by itself. Any other CLI is stopped so that it can clean up. A run that has completed before the
/// excess is known also ends with the error, and its result has the answer.
///
/// A limit of 0 is refused, and so is a limit that cannot be enforced for a candidate within an attempt.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Budget {
    /// Tokens of all kinds together ([`Usage::total_tokens`](teamster_core::Usage::total_tokens)). They are counted
    /// when the CLI prints or records them ([`ExecuteParams::usage_updates`]), so an excess is found at the earliest
    /// after the answer that caused it.
    pub tokens: Option<u64>,
    /// USD, as reported by the CLIs, else as estimated from tokens ([`OrchestratorConfig::prices`]). An excess is found
    /// when the figures come: during an attempt, or for a provider that has them only at its end, before the next one.
    /// A run that uses tokens without a price ends. Refused for a provider without figures and without a limit of its
    /// own.
    ///
    /// [`OrchestratorConfig::prices`]: crate::OrchestratorConfig::prices
    pub usd: Option<f64>,
    /// Time since the run's acceptance, waiting included.
    #[serde(with = "humantime_serde")]
    pub time: Option<Duration>,
    /// Answers of the model. For a CLI without a limit of its own, tool results separate the answers.
    pub turns: Option<u32>,
    /// Budget of this run and others together.
    #[serde(skip)]
    pub shared: Option<SharedBudget>,
}

teamster_core::setters! {
    Budget {
        some tokens: u64,
        some usd: f64,
        some time: Duration,
        some turns: u32,
        some shared: SharedBudget,
    }
}

/// Returns whether the cost of such an agent is known while it runs: reported, or estimated from the tokens of an agent
/// that reports none.
fn has_live_cost(can: &Capabilities) -> bool {
    can.live_cost || (!can.cost && can.live_usage)
}

impl Budget {
    /// Returns whether an agent's event can exceed a limit.
    pub(crate) fn is_limited(&self) -> bool {
        self.counts_tokens() || self.counts_usd() || self.turns.is_some()
    }

    fn counts_tokens(&self) -> bool {
        let shared = self.shared.as_ref().and_then(SharedBudget::token_limit);
        self.tokens.is_some() || shared.is_some()
    }

    fn counts_usd(&self) -> bool {
        let shared = self.shared.as_ref().and_then(SharedBudget::usd_limit);
        self.usd.is_some() || shared.is_some()
    }

    /// Changes the parameters of an agent so that the budget can be enforced: the agent reports its usage while it works,
    /// and tools whose cost nothing counts ([`Capabilities::uncounted_tools`]) are denied unless they are allowed by name.
    pub fn prepare(&self, capabilities: &Capabilities, params: &mut ExecuteParams) {
        let estimates = self.counts_usd() && !capabilities.cost && capabilities.live_usage;
        params.usage_updates |= self.counts_tokens() || estimates;
        if self.counts_tokens() || self.counts_usd() {
            for tool in capabilities.uncounted_tools {
                if !params.allowed_tools.iter().any(|allowed| allowed == tool) {
                    params.denied_tools.push((*tool).to_owned());
                }
            }
        }
    }

    /// Checks that the budget can be enforced for this candidate.
    ///
    /// # Errors
    ///
    /// Fails if a limit is 0 or not finite, or if the provider does not report the figures while it runs.
    pub fn check(&self, candidate: &Candidate) -> Result<(), AgentError> {
        self.check_agent(candidate.provider(), candidate.runtime.capabilities())
    }

    /// Checks that the budget can be enforced for a provider with these capabilities. See [`check`](Self::check).
    ///
    /// # Errors
    ///
    /// Fails as [`check`](Self::check) does.
    pub fn check_agent(
        &self,
        provider: &str,
        capabilities: &Capabilities,
    ) -> Result<(), AgentError> {
        let cannot = |what: &str, why: &str| {
            let problem = format!("{provider} {why}, so a limit cannot be enforced; leave it out");
            Err(AgentError::refused(format!("budget.{what}"), problem))
        };
        let nothing = |what: &str| {
            let problem = "it must be more than 0; leave it out for no limit";
            Err(AgentError::refused(format!("budget.{what}"), problem))
        };
        if self.usd.is_some_and(|usd| !usd.is_finite() || usd <= 0.0) {
            return nothing("usd");
        }
        if self.tokens == Some(0) {
            return nothing("tokens");
        }
        if self.time == Some(Duration::ZERO) {
            return nothing("time");
        }
        if self.turns == Some(0) {
            return nothing("turns");
        }
        let has_figures = has_live_cost(capabilities) || (!capabilities.cost && capabilities.usage);
        if self.usd.is_some() && !has_figures && !capabilities.max_budget_usd {
            return cannot(
                "usd",
                "does not report costs while it runs, nor tokens to estimate them from",
            );
        }
        if self.tokens.is_some() && !capabilities.live_usage {
            return cannot("tokens", "does not report tokens while it runs");
        }
        match &self.shared {
            Some(shared) => shared.check(provider, capabilities),
            None => Ok(()),
        }
    }
}
