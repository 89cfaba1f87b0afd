//! The request for a run: parameters, candidates and limits.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use derive_setters::Setters;
use serde::Deserialize;
use teamster_core::{AbortHandle, AgentError, AgentRuntime, ExecuteParams, SharedRuntime};

use crate::{RetryPolicy, RunEvent, RunObserver};

/// A callback that gets every event of a run, in order.
pub type OnEvent = Arc<dyn Fn(&RunEvent) + Send + Sync>;

/// A run to be made.
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
#[derive(Clone, Setters)]
#[setters(strip_option)]
#[non_exhaustive]
pub struct RunRequest {
    /// The run's id; unset, a new UUID (version 7, so that ids sort by time). It must not be that of a
    /// run that is active.
    #[setters(into)]
    pub run_id: Option<String>,
    /// Candidates in order of preference. There is always a first.
    #[setters(skip)]
    pub candidates: Vec<Candidate>,
    /// Reaction to failed attempts.
    pub retry: RetryPolicy,
    /// Budget of all attempts together.
    pub budget: Budget,
    /// For whom the run is, such as a user or a channel: slots go round between those who wait.
    #[setters(into)]
    pub queue: String,
    /// Is called with every event, from the run itself: it must be quick. If it panics, that is
    /// ignored.
    #[setters(skip)]
    pub on_event: Option<OnEvent>,
    /// Keeps account of the run.
    pub observer: Option<Arc<dyn RunObserver>>,
}

impl RunRequest {
    /// A run by this runtime, with the default policy, no fallback and no budget.
    pub fn new(runtime: SharedRuntime, params: ExecuteParams) -> Self {
        Self {
            run_id: None,
            candidates: vec![Candidate::new(runtime, params)],
            retry: RetryPolicy::default(),
            budget: Budget::default(),
            queue: String::new(),
            on_event: None,
            observer: None,
        }
    }

    /// Adds a candidate for when those before it fail.
    #[must_use]
    pub fn fallback(mut self, candidate: Candidate) -> Self {
        self.candidates.push(candidate);
        self
    }

    /// A handle for the run. Cancelling the first candidate's `cancel` aborts it too.
    pub(crate) fn abort_handle(&self) -> AbortHandle {
        let parent = self.candidates.first().map(|first| &first.params.cancel);
        parent.map(AbortHandle::new).unwrap_or_default()
    }

    /// Sets the callback that gets every event.
    #[must_use]
    pub fn on_event(mut self, call: impl Fn(&RunEvent) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(call));
        self
    }

    /// Whether there can be more than one attempt.
    pub(crate) fn may_repeat(&self) -> bool {
        let policy = &self.retry;
        self.candidates.len() > 1 || policy.retries > 0 || policy.may_wait()
    }
}

impl fmt::Debug for RunRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunRequest")
            .field("run_id", &self.run_id)
            .field("candidates", &self.candidates)
            .field("retry", &self.retry)
            .field("budget", &self.budget)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

/// A candidate for a run.
#[derive(Clone, Setters)]
#[setters(strip_option)]
#[non_exhaustive]
pub struct Candidate {
    /// The agent's runtime.
    #[setters(skip)]
    pub runtime: SharedRuntime,
    /// Its parameters, with the model and everything else in the words of its own CLI. Cancelling the first
    /// candidate's `cancel` aborts the run; those of the others have no effect.
    pub params: ExecuteParams,
    /// The group with which it shares limits: candidates of one group are held back together. Default:
    /// the provider's id. For a second account of the same provider, a name of its own.
    #[setters(skip)]
    pub group: Option<String>,
}

impl Candidate {
    /// A candidate with parameters of its own.
    pub fn new(runtime: SharedRuntime, params: ExecuteParams) -> Self {
        Self {
            runtime,
            params,
            group: None,
        }
    }

    /// The same task for another provider: what of `params` means the same for every CLI, which is all
    /// but the model, the effort, the sessions, the allowed tools and the extra arguments. They stay
    /// behind, and so do the CLI's own retries where this provider has none
    /// ([`goes_without`](Self::goes_without)). All can be set on what this gives.
    ///
    /// Denied tools are named in a CLI's own words too, but leaving them behind would allow what was
    /// forbidden; and a resumed session is known to its own CLI only, so that another would not know
    /// what it is about. With either this is an error.
    pub fn for_other_provider(
        runtime: SharedRuntime,
        params: &ExecuteParams,
    ) -> Result<Self, AgentError> {
        if !params.denied_tools.is_empty() {
            let problem = format!(
                "the denied tools are named in the words of another CLI than {}: give this \
                 candidate parameters of its own",
                runtime.id()
            );
            return Err(AgentError::invalid_params(problem).about("denied_tools"));
        }
        if params.session_id.is_some() {
            let problem = format!(
                "{} does not know the session that is to go on: leave this candidate out, or give \
                 it parameters of its own",
                runtime.id()
            );
            return Err(AgentError::invalid_params(problem).about("session_id"));
        }
        let mut params = params.clone();
        params.new_session_id = None;
        params.fork = false;
        params.model = None;
        params.effort = None;
        params.allowed_tools = Vec::new();
        params.extra_args = Vec::new();
        if !runtime.capabilities().cli_retries {
            params.cli_retries = None;
        }
        Ok(Self::new(runtime, params))
    }

    /// The names of the parameters in `params` that this candidate goes without, sessions aside.
    pub fn goes_without(&self, params: &ExecuteParams) -> Vec<&'static str> {
        let own = &self.params;
        let without = [
            ("model", params.model.is_some() && own.model.is_none()),
            ("effort", params.effort.is_some() && own.effort.is_none()),
            (
                "allowed_tools",
                !params.allowed_tools.is_empty() && own.allowed_tools.is_empty(),
            ),
            (
                "cli_retries",
                params.cli_retries.is_some() && own.cli_retries.is_none(),
            ),
            (
                "extra_args",
                !params.extra_args.is_empty() && own.extra_args.is_empty(),
            ),
        ];
        let without = without.into_iter().filter(|(_, without)| *without);
        without.map(|(name, _)| name).collect()
    }

    /// The same with this model.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.params.model = Some(model.into());
        self
    }

    /// The same with the limits of this group, such as a second account of one provider.
    #[must_use]
    pub fn in_group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// The provider's id.
    pub fn provider(&self) -> &str {
        self.runtime.id()
    }

    /// The group with which it shares limits.
    pub fn group(&self) -> &str {
        self.group.as_deref().unwrap_or_else(|| self.runtime.id())
    }
}

impl fmt::Debug for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidate")
            .field("provider", &self.provider())
            .field("group", &self.group())
            .field("params", &self.params)
            .finish_non_exhaustive()
    }
}

/// The budget of a run over all its attempts. A run that uses more ends with an error of the kind
/// `budget`: where the CLI has a limit of its own it is given what is left and ends by itself; else it
/// is stopped, in the way that lets it clean up. So does one that has completed by the time that is
/// known: its answer is in the result, with the error.
///
/// A budget of nothing is refused, and so is one to which a candidate cannot be held within an attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Setters)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[setters(strip_option)]
#[non_exhaustive]
pub struct Budget {
    /// Tokens of every sort together ([`Usage::total_tokens`](teamster_core::Usage::total_tokens)).
    /// Seen as the CLI prints or records them ([`ExecuteParams::usage_updates`]), so at the earliest after
    /// the answer that went over.
    pub tokens: Option<u64>,
    /// USD, as the CLIs report them. A provider that neither reports costs while it runs nor has a limit of
    /// its own is refused.
    pub usd: Option<f64>,
    /// Time from the run's acceptance, waiting included.
    #[serde(with = "humantime_serde")]
    pub time: Option<Duration>,
    /// Answers of the model. Where the CLI has no limit of its own they are separated by the tool
    /// results between them.
    pub turns: Option<u32>,
}

impl Budget {
    /// Whether there is a limit that an agent's event can go over.
    pub(crate) fn is_limited(&self) -> bool {
        self.tokens.is_some() || self.usd.is_some() || self.turns.is_some()
    }

    /// Whether this candidate can be held to it; if not, an error with the reason.
    pub fn check(&self, candidate: &Candidate) -> Result<(), AgentError> {
        let capabilities = candidate.runtime.capabilities();
        let cannot = |what: &str, why: &str| {
            let provider = candidate.provider();
            let problem =
                format!("{provider} {why}, so it cannot be held to a limit; leave it out");
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
        if self.usd.is_some() && !capabilities.live_cost && !capabilities.max_budget_usd {
            return cannot("usd", "does not report costs while it runs");
        }
        if self.tokens.is_some() && !capabilities.live_usage {
            return cannot("tokens", "does not report tokens while it runs");
        }
        Ok(())
    }
}
