//! The orchestrator, and a run as its caller sees it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use derive_setters::Setters;
use futures_core::Stream;
use serde::Deserialize;
use teamster_core::provider::RunAssembler;
use teamster_core::time::epoch_ms;
use teamster_core::{AbortHandle, AgentError, Id, RunResult, RunStatus};
use uuid::Uuid;

use crate::drive::Driver;
use crate::events::{Receiver, channel};
use crate::log::{LifecycleEntry, Part, View};
use crate::registry::Registry;
use crate::{ActiveRun, Held, Limits, Outcome, RunEvent, RunRequest};

/// How many events may wait for a slow consumer before the run waits for it, unless it was asked to
/// stop. The agent itself never does: beyond this its events wait in memory and on disk.
const EVENTS: usize = 256;

/// The time of day, in milliseconds since the Unix epoch.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Settings of an orchestrator.
///
/// They deserialize, with names in camelCase and times such as `"90s"`; the clock is the system's then.
#[derive(Clone, Deserialize, Setters)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct OrchestratorConfig {
    /// How many attempts may go on at once.
    pub limits: Limits,
    /// For how long a provider is put on hold that throttles without saying for how long. 5 s.
    #[serde(with = "humantime_serde")]
    pub rate_limit_hold: Duration,
    /// For how long a provider is put on hold whose quota is used up, where no reset is known. 5 min.
    #[serde(with = "humantime_serde")]
    pub quota_hold: Duration,
    /// How long a runtime may take to end a run that was aborted, before its stream is dropped. 30 s:
    /// longer than every CLI's own ladder of stopping.
    #[serde(with = "humantime_serde")]
    pub abort_grace: Duration,
    /// Clock of the time of day; the system's by default.
    #[serde(skip, default = "system_clock")]
    pub clock: Clock,
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
            clock: system_clock(),
        }
    }
}

impl fmt::Debug for OrchestratorConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrchestratorConfig")
            .field("limits", &self.limits)
            .field("rate_limit_hold", &self.rate_limit_hold)
            .field("quota_hold", &self.quota_hold)
            .field("abort_grace", &self.abort_grace)
            .finish_non_exhaustive()
    }
}

/// Makes runs, and knows those that are active. Clones are the same orchestrator.
#[derive(Debug, Clone)]
pub struct Orchestrator {
    registry: Registry,
    config: Arc<OrchestratorConfig>,
}

impl Orchestrator {
    /// An orchestrator with these settings. A limit of 0 is an
    /// [`InvalidParams`](teamster_core::ErrorCode::InvalidParams) error.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime: its registry is a task.
    pub fn new(config: OrchestratorConfig) -> Result<Self, AgentError> {
        config.limits.check()?;
        Ok(Self {
            registry: Registry::start(config.limits.clone(), config.clock.clone()),
            config: Arc::new(config),
        })
    }

    /// Begins a run, as a task of the Tokio runtime. It continues while its [`Run`] exists, and is
    /// aborted when that is dropped before its end.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn run(&self, request: RunRequest) -> Run {
        let abort = request.abort_handle();
        self.run_stopped_by(request, abort, View::Lifecycle)
    }

    /// Begins a run that this handle stops.
    pub(crate) fn run_stopped_by(
        &self,
        mut request: RunRequest,
        abort: AbortHandle,
        view: View,
    ) -> Run {
        let id: Id = match request.run_id.take() {
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

    /// Stops a run, in the way that lets its CLI clean up. Whether there was one of this id.
    pub async fn abort(&self, run_id: &str) -> bool {
        self.registry.abort(run_id).await
    }

    /// Stops all runs. They end on their own; how many there were.
    pub async fn abort_all(&self) -> usize {
        self.registry.abort_all().await
    }

    /// Whether a run of this id is active: accepted, and not yet ended.
    pub async fn is_run_active(&self, run_id: &str) -> bool {
        self.registry.is_active(run_id).await
    }

    /// The active runs, in the order of their acceptance.
    pub async fn active_runs(&self) -> Vec<ActiveRun> {
        self.registry.active().await
    }

    /// The providers that are on hold.
    pub async fn holds(&self) -> Vec<Held> {
        self.registry.holds().await
    }

    /// Ends the hold on a provider (or a group of candidates) before its time, for example because
    /// the account was topped up. Whether there was one.
    pub async fn release(&self, provider: &str) -> bool {
        self.registry.release(provider).await
    }
}

/// A run: the stream of its events. Dropping it before its end aborts the run.
#[derive(Debug)]
pub struct Run {
    id: Id,
    events: Receiver,
    abort: AbortHandle,
    ended: bool,
}

impl Run {
    /// The run's id.
    pub fn id(&self) -> &Id {
        &self.id
    }

    /// The next event; `None` after [`RunEvent::End`]. Cancel-safe.
    pub async fn next(&mut self) -> Option<RunEvent> {
        self.next_entry().await.map(|entry| entry.event)
    }

    /// The next event with its number in the run's log and its time ([`LifecycleEntry`]). Cancel-safe.
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

    /// The next parts of the run's log; `None` when there will be no more. Cancel-safe.
    pub(crate) async fn next_parts(&mut self) -> Option<Vec<Part>> {
        let parts = std::future::poll_fn(|cx| self.events.poll_batch(cx)).await;
        self.ended |= (parts.as_ref()).is_none_or(|parts| parts.iter().any(Part::is_end));
        parts
    }

    /// Stops the run, in the way that lets its CLI clean up. Its events still end with
    /// [`RunEvent::End`]. Stopping twice, or after the end, is harmless.
    pub fn abort(&self) {
        self.abort.abort();
    }

    /// A handle that can stop the run from elsewhere.
    pub fn abort_handle(&self) -> AbortHandle {
        self.abort.clone()
    }

    /// Reads the rest of the events and gives what came of the run.
    pub async fn outcome(mut self) -> Outcome {
        while let Some(event) = self.next().await {
            if let RunEvent::End(outcome) = event {
                return *outcome;
            }
        }
        // Only after `next` was already called to the end, or when the Tokio runtime shuts down.
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
///     orchestrator.run(request).await
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
