//! Ticks as runs: retry, fallback, budget, history and log as those of any other run.

use std::sync::Arc;
use std::time::Duration;

use derive_setters::Setters;
use teamster_core::provider::RunAssembler;
use teamster_core::{
    AbortHandle, AgentError, AgentRuntime, Capabilities, ErrorCode, ErrorKind, EventStream,
    ExecuteParams, LogEntry,
};
use teamster_orchestrator::{Action, Budget, Candidate, RetryPolicy, RunObserver};
use tokio::sync::{mpsc, oneshot};

use crate::adapter::Adapter;
use crate::settings::Settings;
use crate::tick_log::TickLogs;

/// How the ticks of a loop are run.
#[derive(Clone, Setters)]
#[setters(strip_option)]
#[non_exhaustive]
pub struct TickOptions {
    /// What to do when an attempt of a tick fails. Unset, the tick fails: the loop continues with the next one
    /// after its sleep.
    pub retry: RetryPolicy,
    /// What all attempts of one tick may use together. Its time is that of a turn too
    /// ([`Settings::turn_limit`](crate::Settings::turn_limit)), whichever is less.
    pub budget: Budget,
    /// Who plays a tick when the agent cannot, in order of preference. Each plays it in a session of its own
    /// and with the full prompt; the next tick is the agent's again.
    pub fallbacks: Vec<Candidate>,
    /// Keeps account of the ticks, for example in the history of runs.
    #[setters(skip)]
    pub observer: Option<Arc<dyn RunObserver>>,
    /// Where the ticks have their logs. Unset, they have none.
    pub logs: Option<TickLogs>,
}

impl Default for TickOptions {
    fn default() -> Self {
        Self {
            retry: RetryPolicy::default().retries(0).max_wait(Duration::ZERO),
            budget: Budget::default(),
            fallbacks: Vec::new(),
            observer: None,
            logs: None,
        }
    }
}

impl TickOptions {
    /// The same with what the settings of an agent say of retries and limits. Fallbacks need providers, and are the
    /// caller's.
    #[must_use]
    pub fn with_settings(mut self, settings: &Settings) -> Self {
        if settings.retries > 0 {
            self.retry.retries = settings.retries;
            self.retry.max_wait = RetryPolicy::default().max_wait;
        }
        if let Some(longest) = settings.max_wait {
            self.retry.max_wait = longest;
            if settings.retries == 0 {
                // To wait for a limit is no retry; the other kinds of limits are waited for anyhow.
                let wait = (ErrorKind::RateLimit, Action::Wait);
                self.retry.actions.extend([wait]);
            }
        }
        let budget = settings.budget;
        self.budget.tokens = budget.tokens.or(self.budget.tokens);
        self.budget.usd = budget.usd.or(self.budget.usd);
        self.budget.turns = budget.turns.or(self.budget.turns);
        self
    }

    /// Whether the agent and its fallbacks can be held to the budget; if not, an error with the reason.
    pub fn check(&self, settings: &Settings, agent: &dyn Adapter) -> Result<(), AgentError> {
        let (turns, _) = Turns::new(settings.name(), agent.capabilities().clone());
        let own = Candidate::new(Arc::new(turns), ExecuteParams::new(""));
        let mut candidates = std::iter::once(&own).chain(&self.fallbacks);
        candidates.try_for_each(|candidate| self.budget.check(candidate))
    }

    /// Sets who keeps account of the ticks.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn RunObserver>) -> Self {
        self.observer = Some(observer);
        self
    }
}

/// An attempt of a tick that wants to begin.
pub(crate) struct AttemptRequest {
    pub(crate) params: ExecuteParams,
    pub(crate) reply: oneshot::Sender<Result<EventStream, AgentError>>,
}

/// The loop's agent as a runtime, for one tick: every attempt is a turn that the loop begins.
pub(crate) struct Turns {
    id: String,
    capabilities: Capabilities,
    attempts: mpsc::UnboundedSender<AttemptRequest>,
}

impl Turns {
    /// The runtime, and the attempts that it wants to begin.
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

impl AgentRuntime for Turns {
    fn id(&self) -> &str {
        &self.id
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn execute(&self, params: ExecuteParams) -> EventStream {
        let abort = AbortHandle::new(&params.cancel);
        let (reply, begun) = oneshot::channel();
        // Without a receiver the reply is dropped, which is what the stream then sees.
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
