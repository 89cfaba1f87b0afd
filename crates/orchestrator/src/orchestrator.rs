//! The orchestrator and its run handle.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use serde::Deserialize;
use teamster_core::provider::RunAssembler;
use teamster_core::time::epoch_ms;
use teamster_core::{
    AbortHandle, AgentError, Id, LifecycleEntry, Outcome, RunEvent, RunResult, RunStatus,
};
use teamster_prices::PriceList;
use uuid::Uuid;

use crate::drive::Driver;
use crate::events::{Receiver, channel};
use crate::log::{Part, View};
use crate::registry::Registry;
use crate::{ActiveRun, Held, Limits, RunRequest};

/// Number of events that may wait for a slow consumer before the run waits for it.
///
/// A run that was asked to stop does not wait. The agent never waits: its further events are kept in memory and on
/// disk.
const EVENTS: usize = 256;

/// Returns the time of day, in milliseconds since the Unix epoch.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Settings of an orchestrator.
///
/// They deserialize from camelCase names and times such as `"90s"`. A deserialized configuration uses the system
/// clock.
#[derive(Clone, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct OrchestratorConfig {
    /// Limits of concurrent attempts.
    pub limits: Limits,
    /// Duration of the hold on a provider that throttles and names no delay. Default: 5 s.
    #[serde(with = "humantime_serde")]
    pub rate_limit_hold: Duration,
    /// Duration of the hold on a provider whose quota is used up, if no reset time is known. Default: 5 min.
    #[serde(with = "humantime_serde")]
    pub quota_hold: Duration,
    /// Time that a runtime has to end an aborted run before its stream is dropped. Default: 30 s, which is longer than
    /// the stop ladder of every CLI.
    #[serde(with = "humantime_serde")]
    pub abort_grace: Duration,
    /// Prices for the estimated cost of agents that report tokens and no cost. Default: the table of
    /// [`PriceList`], without a user's file.
    #[serde(skip)]
    pub prices: PriceList,
    /// Clock of the time of day. Default: the system clock.
    #[serde(skip, default = "system_clock")]
    pub clock: Clock,
}

teamster_core::setters! {
    OrchestratorConfig {
        set limits: Limits,
        set rate_limit_hold: Duration,
        set quota_hold: Duration,
        set abort_grace: Duration,
        set prices: PriceList,
        set clock: Clock,
    }
}

fn system_clock() -> Clock {
    Arc::new(epoch_ms)
}

impl Default for OrchestratorConfig {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            rate_limit_hold: Duration::from_secs(5),
            quota_hold: Duration::from_mins(5),
            abort_grace: Duration::from_secs(30),
            prices: PriceList::default(),
            clock: system_clock(),
        }
    }
}

teamster_core::debug_fields!(OrchestratorConfig {
    limits,
    rate_limit_hold,
    quota_hold,
    abort_grace,
});

/// Executes runs and lists those that are active. Clones share their state.
#[derive(Debug, Clone)]
pub struct Orchestrator {
    registry: Registry,
    config: Arc<OrchestratorConfig>,
}

impl Orchestrator {
    /// Creates an orchestrator and spawns its registry task.
    ///
    /// # Errors
    ///
    /// [`InvalidParams`](teamster_core::ErrorCode::InvalidParams) if a limit is 0.
    ///
    /// # Panics
    ///
    /// Panics outside of a Tokio runtime.
    pub fn new(config: OrchestratorConfig) -> Result<Self, AgentError> {
        config.limits.check()?;
        Ok(Self {
            registry: Registry::start(config.limits.clone(), config.clock.clone()),
            config: Arc::new(config),
        })
    }

    /// Starts a run as a task of the Tokio runtime.
    ///
    /// Dropping the returned [`Run`] before its end aborts the run.
    ///
    /// # Panics
    ///
    /// Panics outside of a Tokio runtime.
    pub fn start(&self, request: RunRequest) -> Run {
        let abort = request.abort_handle();
        self.run_stopped_by(request, abort, View::Lifecycle)
    }

    /// Starts a run that `abort` stops.
    pub(crate) fn run_stopped_by(
        &self,
        mut request: RunRequest,
        abort: AbortHandle,
        view: View,
    ) -> Run {
        let id: Id = match request.id.take() {
            Some(id) => id.into(),
            None => Uuid::now_v7().to_string().into(),
        };
        let (sender, events) = channel(EVENTS);
        let driver = Driver::new(
            id.clone(),
            self.registry.clone(),
            self.config.clone(),
            abort.clone(),
            sender,
            &request,
            view,
        );
        let run = driver.drive(request);
        #[cfg(feature = "tracing")]
        let run = tracing::Instrument::instrument(
            run,
            tracing::info_span!(target: "teamster::orchestrator", "orchestrated", run = %id),
        );
        tokio::spawn(run);
        Run {
            id,
            events,
            abort,
            ended: false,
        }
    }

    /// Stops a run so that its CLI can clean up. Returns whether a run with this id was active.
    pub async fn abort(&self, run_id: &str) -> bool {
        self.registry.abort(run_id).await
    }

    /// Stops all runs without waiting for their ends. Returns the number of active runs.
    pub async fn abort_all(&self) -> usize {
        self.registry.abort_all().await
    }

    /// Returns whether a run with this id is active: accepted and not ended.
    pub async fn is_run_active(&self, run_id: &str) -> bool {
        self.registry.is_active(run_id).await
    }

    /// Returns the active runs, in order of acceptance.
    pub async fn active_runs(&self) -> Vec<ActiveRun> {
        self.registry.active().await
    }

    /// Returns the providers that are on hold.
    pub async fn holds(&self) -> Vec<Held> {
        self.registry.holds().await
    }

    /// Ends the hold on a provider (or a group of candidates) early, for example because the account was topped up.
    /// Returns whether it was on hold.
    pub async fn release(&self, provider: &str) -> bool {
        self.registry.release(provider).await
    }
}

/// A run and the stream of its events. Dropping it before the end aborts the run.
#[must_use = "dropping it stops the run"]
#[derive(Debug)]
pub struct Run {
    id: Id,
    events: Receiver,
    abort: AbortHandle,
    ended: bool,
}

impl Run {
    /// Returns the run's id.
    pub fn id(&self) -> &Id {
        &self.id
    }

    /// Returns the next event, or `None` after [`RunEvent::End`]. Cancel-safe.
    pub async fn next(&mut self) -> Option<RunEvent> {
        self.next_entry().await.map(|entry| entry.event)
    }

    /// Returns the next event with its number in the run's log and its time ([`LifecycleEntry`]). Cancel-safe.
    pub async fn next_entry(&mut self) -> Option<LifecycleEntry> {
        std::future::poll_fn(|cx| self.poll_entry(cx)).await
    }

    fn poll_entry(&mut self, cx: &mut Context<'_>) -> Poll<Option<LifecycleEntry>> {
        loop {
            let part = ready!(self.events.poll(cx));
            self.ended |= part.as_ref().is_none_or(Part::is_end);
            match part {
                Some(Part::Run(entry)) => return Poll::Ready(Some(entry)),
                Some(Part::Agents(_)) => {}
                None => return Poll::Ready(None),
            }
        }
    }

    /// Returns the next parts of the run's log, or `None` at its end. Cancel-safe.
    pub(crate) async fn next_parts(&mut self) -> Option<Vec<Part>> {
        let parts = std::future::poll_fn(|cx| self.events.poll_batch(cx)).await;
        self.ended |= (parts.as_ref()).is_none_or(|parts| parts.iter().any(Part::is_end));
        parts
    }

    /// Asks the run to report its start without the agent's first event.
    pub(crate) fn report_start(&self) {
        self.events.want_start();
    }

    /// Stops the run so that its CLI can clean up. Its events still end with [`RunEvent::End`].
    ///
    /// Aborting twice, or after the end, has no effect.
    pub fn abort(&self) {
        self.abort.abort();
    }

    /// Returns a handle that can stop the run.
    pub fn abort_handle(&self) -> AbortHandle {
        self.abort.clone()
    }

    /// Reads the remaining events and returns the outcome of the run.
    pub async fn outcome(mut self) -> Outcome {
        while let Some(event) = self.next().await {
            if let RunEvent::End(outcome) = event {
                return *outcome;
            }
        }
        // Reached only if `next` has already returned the end, or if the Tokio runtime shuts down.
        let aborted = RunResult::default()
            .status(RunStatus::Aborted)
            .aborted(true)
            .errors(vec![RunAssembler::aborted_error()]);
        Outcome::new(self.id.clone(), "", aborted)
    }
}

/// Reads the rest of the events, as [`outcome`](Run::outcome) does.
///
/// ```
/// # use teamster_orchestrator::{Orchestrator, Outcome, RunRequest};
/// async fn run(orchestrator: &Orchestrator, request: RunRequest) -> Outcome {
///     orchestrator.start(request).await
/// }
/// ```
impl IntoFuture for Run {
    type Output = Outcome;
    type IntoFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.outcome())
    }
}

impl Stream for Run {
    type Item = RunEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        (self.poll_entry(cx)).map(|entry| entry.map(|entry| entry.event))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.ended {
            self.abort.abort();
        }
    }
}
