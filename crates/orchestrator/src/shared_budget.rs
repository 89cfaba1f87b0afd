//! A budget that many runs share.

use std::sync::{Arc, Mutex};

use teamster_core::sync::lock;
use teamster_core::{
    AgentError, BudgetKind, CancellationToken, Capabilities, ErrorCode, ErrorDetail, ErrorKind,
};

use crate::account::Spent;

/// A budget that many runs and sessions of this process share. Clones are the same budget.
///
/// It is a part of each run's [`Budget`](crate::Budget), and counts what all of their attempts use. Once it is spent,
/// the runs in progress are stopped together, and those that wait or come later end before they begin, with
/// [`ErrorCode::BudgetExceeded`]. A run that has completed by then stays completed.
///
/// An agent that reports its figures only at its end is counted then, so its runs in progress can exceed the budget. If
/// its CLI has a limit in USD of its own, each attempt gets what is left of the budget when it begins.
///
/// ```
/// use teamster_core::{ErrorCode, ExecuteParams};
/// use teamster_orchestrator::{
///     Budget, Orchestrator, OrchestratorConfig, RunRequest, SharedBudget,
/// };
/// # use std::sync::Arc;
/// # use teamster_core::{AgentError, Usage};
/// # use teamster_testkit::mock_runtime::{MockRuntime, Script};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let used = Script::new().text("Done.").result_usage(Usage::default().input_tokens(1000)).completed();
/// # let claude = Arc::new(MockRuntime::new("claude").run(used));
/// let orchestrator = Orchestrator::new(OrchestratorConfig::default())?;
/// let of_all = SharedBudget::tokens(1000);
/// let start = |prompt: &str| {
///     let request = RunRequest::new(claude.clone(), ExecuteParams::new(prompt));
///     orchestrator.start(request.budget(Budget::default().shared(of_all.clone())))
/// };
///
/// assert!(start("Fix the failing test").await.is_success());
/// assert!(of_all.is_spent());
/// let refused = start("And the next one").await;
/// assert_eq!(refused.error().map(|error| error.code), Some(ErrorCode::BudgetExceeded));
/// # Ok::<(), AgentError>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct SharedBudget(Arc<Shared>);

struct Shared {
    limit: Limit,
    used: Mutex<f64>,
    /// Cancelled once the limit is reached.
    spent: CancellationToken,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Limit {
    Tokens(u64),
    Usd(f64),
}

impl Limit {
    fn kind(self) -> BudgetKind {
        match self {
            Self::Tokens(_) => BudgetKind::Tokens,
            Self::Usd(_) => BudgetKind::Usd,
        }
    }

    fn figure(self) -> f64 {
        match self {
            Self::Tokens(tokens) => figure(tokens),
            Self::Usd(usd) => usd,
        }
    }
}

impl SharedBudget {
    /// Creates a budget of tokens of all kinds together. See [`Budget::tokens`](crate::Budget::tokens).
    pub fn tokens(tokens: u64) -> Self {
        Self::new(Limit::Tokens(tokens))
    }

    /// Creates a budget in USD, reported or estimated. See [`Budget::usd`](crate::Budget::usd).
    pub fn usd(usd: f64) -> Self {
        Self::new(Limit::Usd(usd))
    }

    fn new(limit: Limit) -> Self {
        Self(Arc::new(Shared {
            limit,
            used: Mutex::default(),
            spent: CancellationToken::new(),
        }))
    }

    /// Returns what the runs have used until now, in tokens or in USD.
    pub fn used(&self) -> f64 {
        *lock(&self.0.used)
    }

    /// Returns whether the budget is spent: then no run begins.
    pub fn is_spent(&self) -> bool {
        self.0.spent.is_cancelled()
    }

    pub(crate) fn usd_left(&self) -> Option<f64> {
        match self.0.limit {
            Limit::Usd(usd) => Some((usd - self.used()).max(0.0)),
            Limit::Tokens(_) => None,
        }
    }

    pub(crate) fn usd_limit(&self) -> Option<f64> {
        match self.0.limit {
            Limit::Usd(usd) => Some(usd),
            Limit::Tokens(_) => None,
        }
    }

    pub(crate) fn token_limit(&self) -> Option<u64> {
        match self.0.limit {
            Limit::Tokens(tokens) => Some(tokens),
            Limit::Usd(_) => None,
        }
    }

    /// Checks that the budget can count such an agent.
    pub(crate) fn check(
        &self,
        provider: &str,
        capabilities: &Capabilities,
    ) -> Result<(), AgentError> {
        let refused = |problem: String| Err(AgentError::refused("budget.shared", problem));
        let most = self.0.limit.figure();
        if !most.is_finite() || most <= 0.0 {
            return refused("it must be more than 0; leave it out for no limit".to_owned());
        }
        let has_tokens = capabilities.usage || capabilities.live_usage;
        let has_cost = capabilities.cost || capabilities.live_cost;
        match self.0.limit {
            Limit::Tokens(_) if !has_tokens => refused(format!(
                "{provider} does not report tokens, so they cannot be counted; leave it out for this agent"
            )),
            Limit::Usd(_) if !has_tokens && !has_cost => refused(format!(
                "{provider} reports neither costs nor tokens to estimate them from, so they cannot be counted; leave \
                 it out for this agent"
            )),
            _ => Ok(()),
        }
    }

    /// Waits until the budget is spent.
    pub(crate) async fn spent(&self) {
        self.0.spent.cancelled().await;
    }

    /// Creates the error of a run that the spent budget has ended.
    pub(crate) fn error(&self) -> AgentError {
        let kind = self.0.limit.kind();
        let limit = match self.0.limit {
            Limit::Tokens(tokens) => format!("{tokens} tokens"),
            Limit::Usd(usd) => format!("{usd} USD"),
        };
        AgentError::new(
            ErrorCode::BudgetExceeded,
            ErrorKind::Budget,
            format!("the budget of {limit} that several runs share is spent"),
        )
        .detail(ErrorDetail::budget(kind, Some(self.0.limit.figure())))
    }

    fn add(&self, used: f64) {
        let mut total = lock(&self.0.used);
        *total += used;
        if *total >= self.0.limit.figure() {
            self.0.spent.cancel();
        }
    }
}

teamster_core::debug_fields!(SharedBudget |it| { limit: it.0.limit, used: it.used() });

/// Budgets are equal if they are the same one.
impl PartialEq for SharedBudget {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What one run has used of a shared budget.
pub(crate) struct Share {
    pub(crate) budget: SharedBudget,
    counted: f64,
}

impl Share {
    pub(crate) fn new(budget: SharedBudget) -> Self {
        Self {
            budget,
            counted: 0.0,
        }
    }

    /// Counts what the run has used until now.
    pub(crate) fn count(&mut self, spent: &Spent) {
        let used = match self.budget.0.limit {
            Limit::Tokens(_) => spent.tokens().map(figure),
            Limit::Usd(_) => spent.used.cost_usd,
        };
        let used = used.unwrap_or_default();
        self.budget.add(used - self.counted);
        self.counted = used;
    }
}

/// Converts a token count. Above 2^53 the result is rounded.
#[expect(clippy::cast_precision_loss, reason = "no run has so many tokens")]
pub(crate) fn figure(tokens: u64) -> f64 {
    tokens as f64
}
