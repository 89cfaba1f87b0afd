//! Ticks as runs, with retries, fallbacks, budget, history and log.

use std::sync::Arc;

use teamster_core::{
    AgentError, AgentRuntime, Capabilities, EventStream, ExecuteParams, SharedRuntime,
};
use teamster_orchestrator::{Budget, Candidate, RetryPolicy, RunObserver, SharedHolds};

use crate::adapter::Adapter;
use crate::settings::Settings;
use crate::tick_log::TickLogs;

/// Options of the runs of ticks.
#[derive(Clone)]
#[non_exhaustive]
pub struct TickOptions {
    /// Retries after a failed attempt. Default: none; the loop continues with the next tick after its sleep.
    pub retry: RetryPolicy,
    /// Limits of all attempts of one tick together. The time is also limited by
    /// [`Settings::turn_limit`](crate::Settings::turn_limit).
    pub budget: Budget,
    /// Fallbacks that run a tick when the agent cannot, in order of preference. A fallback has a session of
    /// its own and gets the full prompt. The next tick is the agent's again.
    pub fallbacks: Vec<Candidate>,
    /// Observer of the ticks, for example the history of runs.
    pub observer: Option<Arc<dyn RunObserver>>,
    /// Limits of the agents' accounts that other processes know.
    pub holds: Option<Arc<dyn SharedHolds>>,
    /// Logs of the ticks. Default: none.
    pub logs: Option<TickLogs>,
}

teamster_core::setters! {
    TickOptions {
        set retry: RetryPolicy,
        set budget: Budget,
        set fallbacks: Vec<Candidate>,
        some observer: Arc<dyn RunObserver>,
        some logs: TickLogs,
    }
}

impl Default for TickOptions {
    fn default() -> Self {
        Self {
            retry: RetryPolicy::default().chosen(0, None),
            budget: Budget::default(),
            fallbacks: Vec::new(),
            observer: None,
            holds: None,
            logs: None,
        }
    }
}

impl TickOptions {
    /// Applies the retries and limits of an agent's settings. Fallbacks need providers, so the caller sets
    /// them.
    #[must_use]
    pub fn with_settings(mut self, settings: &Settings) -> Self {
        if settings.retries > 0 || settings.max_wait.is_some() {
            let retries = match settings.retries {
                0 => self.retry.retries,
                retries => retries,
            };
            self.retry = self.retry.chosen(retries, settings.max_wait);
        }
        let budget = settings.budget;
        self.budget.tokens = budget.tokens.or(self.budget.tokens);
        self.budget.usd = budget.usd.or(self.budget.usd);
        self.budget.turns = budget.turns.or(self.budget.turns);
        self
    }

    /// Checks that the agent and its fallbacks support the budget.
    ///
    /// # Errors
    ///
    /// Fails with the reason if one of them does not.
    pub fn check(&self, settings: &Settings, agent: &dyn Adapter) -> Result<(), AgentError> {
        (self.budget).check_agent(settings.name(), agent.capabilities())?;
        let mut fallbacks = self.fallbacks.iter();
        fallbacks.try_for_each(|candidate| self.budget.check(candidate))
    }
}

/// Runtime of one tick, under the short name of its agent.
pub(crate) struct TickRuntime {
    id: String,
    runtime: SharedRuntime,
}

impl TickRuntime {
    pub(crate) fn new(id: &str, runtime: SharedRuntime) -> Self {
        Self {
            id: id.to_owned(),
            runtime,
        }
    }
}

impl AgentRuntime for TickRuntime {
    fn id(&self) -> &str {
        &self.id
    }

    fn capabilities(&self) -> &Capabilities {
        self.runtime.capabilities()
    }

    fn execute(&self, params: ExecuteParams) -> EventStream {
        self.runtime.execute(params)
    }
}
