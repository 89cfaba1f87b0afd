//! Ticks as runs, with retries, fallbacks, budget, history and log.

use std::sync::Arc;

use derive_setters::Setters;
use teamster_core::provider::RunAssembler;
use teamster_core::{
    AbortHandle, AgentError, AgentRuntime, Capabilities, ErrorCode, ErrorKind, EventStream,
    ExecuteParams, LogEntry,
};
use teamster_orchestrator::{Budget, Candidate, RetryPolicy, RunObserver};
use tokio::sync::{mpsc, oneshot};

use crate::adapter::Adapter;
use crate::settings::Settings;
use crate::tick_log::TickLogs;

/// Options of the runs of ticks.
#[derive(Clone, Setters)]
#[setters(strip_option)]
#[non_exhaustive]
pub struct TickOptions {
    /// Retries after a failed attempt. Default: none; the loop continues with the next tick after its sleep.
    pub retry: RetryPolicy,
    /// Limits of all attempts of one tick together. The time is also limited by
    /// [`Settings::turn_limit`](crate::Settings::turn_limit).
    pub budget: Budget,
    /// Fallbacks that play a tick when the agent cannot, in order of preference. A fallback has a session of
    /// its own and gets the full prompt. The next tick is the agent's again.
    pub fallbacks: Vec<Candidate>,
    /// Observer of the ticks, for example the history of runs.
    #[setters(skip)]
    pub observer: Option<Arc<dyn RunObserver>>,
    /// Logs of the ticks. Default: none.
    pub logs: Option<TickLogs>,
}

impl Default for TickOptions {
    fn default() -> Self {
        Self {
            retry: RetryPolicy::default().chosen(0, None),
            budget: Budget::default(),
            fallbacks: Vec::new(),
            observer: None,
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
        let (turns, _) = TickRuntime::new(settings.name(), agent.capabilities().clone());
        let own = Candidate::new(Arc::new(turns), ExecuteParams::new(""));
        let mut candidates = std::iter::once(&own).chain(&self.fallbacks);
        candidates.try_for_each(|candidate| self.budget.check(candidate))
    }

    /// Sets the observer of the ticks.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn RunObserver>) -> Self {
        self.observer = Some(observer);
        self
    }
}

/// Request of the orchestrator to begin an attempt.
pub(crate) struct AttemptRequest {
    pub(crate) params: ExecuteParams,
    pub(crate) reply: oneshot::Sender<Result<EventStream, AgentError>>,
}

/// Runtime of one tick: the loop begins each attempt as a turn of its agent.
pub(crate) struct TickRuntime {
    id: String,
    capabilities: Capabilities,
    attempts: mpsc::UnboundedSender<AttemptRequest>,
}

impl TickRuntime {
    /// Creates the runtime and the receiver of its attempts.
    pub(crate) fn new(
        id: &str,
        capabilities: Capabilities,
    ) -> (Self, mpsc::UnboundedReceiver<AttemptRequest>) {
        let (attempts, requests) = mpsc::unbounded_channel();
        let turns = Self {
            id: id.to_owned(),
            capabilities,
            attempts,
        };
        (turns, requests)
    }
}

impl AgentRuntime for TickRuntime {
    fn id(&self) -> &str {
        &self.id
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn execute(&self, params: ExecuteParams) -> EventStream {
        let abort = AbortHandle::new(&params.cancel);
        let (reply, begun) = oneshot::channel();
        // Without a receiver the reply is dropped, and the stream ends with an error.
        let _ = self.attempts.send(AttemptRequest { params, reply });
        let stop = abort.clone();
        let batches = async_stream::stream! {
            let begun = tokio::select! {
                biased;
                () = stop.aborted() => Err(RunAssembler::aborted_error()),
                begun = begun => begun.unwrap_or_else(|_| Err(not_begun())),
            };
            let mut events = match begun {
                Ok(events) => events,
                Err(error) => {
                    yield RunAssembler::refuse(error).map(LogEntry::from).to_vec();
                    return;
                }
            };
            let handle = events.abort_handle();
            let (mut aborted, mut killed) = (false, false);
            loop {
                let batch = tokio::select! {
                    biased;
                    () = stop.killed(), if !killed => {
                        killed = true;
                        handle.kill();
                        continue;
                    }
                    () = stop.aborted(), if !aborted => {
                        aborted = true;
                        handle.abort();
                        continue;
                    }
                    batch = events.next_batch() => batch,
                };
                if batch.is_empty() {
                    break;
                }
                yield batch;
            }
        };
        EventStream::of_batches(batches, abort)
    }
}

fn not_begun() -> AgentError {
    AgentError::new(
        ErrorCode::StreamEndedEarly,
        ErrorKind::Internal,
        "the loop has ended",
    )
}
