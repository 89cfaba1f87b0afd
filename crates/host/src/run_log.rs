//! The log of a run in this process.

use std::pin::Pin;
use std::sync::Arc;

use teamster_api::RunLogEntry;
use teamster_core::AbortHandle;
use teamster_orchestrator::{Orchestrator, Run, RunLog, RunRequest};

use crate::KeptHistory;

/// The log of a run in this process. After its last entry, the store of its history is closed, or left to the end of the
/// process.
#[must_use = "dropping it stops the run"]
pub struct HostedRun {
    log: Log,
    has_ended: bool,
    /// `next` may be dropped while it waits, so the future is stored and resumed instead of restarted.
    closing: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

teamster_core::debug_fields!(HostedRun { has_ended });

/// Content of a log.
enum Log {
    /// The agents' events and those of the run itself.
    Whole(RunLog),
    /// The lifecycle events of the run.
    Lifecycle(Run),
}

impl HostedRun {
    /// Starts a run that was [prepared](crate::Host::prepare_run). Warnings of the history's end are
    /// [kept](KeptHistory::take_warnings) there.
    pub fn start_log(
        orchestrator: &Orchestrator,
        request: RunRequest,
        history: Arc<KeptHistory>,
    ) -> Self {
        let log = Log::Whole(orchestrator.start_log(request));
        Self::new(log, async move { history.settle().await })
    }

    /// Starts a run as [`start_log`](Self::start_log) does. Its log has lifecycle events in place of the agents'.
    pub fn start(
        orchestrator: &Orchestrator,
        request: RunRequest,
        history: Arc<KeptHistory>,
    ) -> Self {
        let log = Log::Lifecycle(orchestrator.start(request));
        Self::new(log, async move { history.settle().await })
    }

    fn new(log: Log, closing: impl Future<Output = ()> + Send + 'static) -> Self {
        Self {
            log,
            has_ended: false,
            closing: Some(Box::pin(closing)),
        }
    }

    /// Returns the next entry; `None` after the last, once the store is closed. Cancel-safe.
    pub async fn next(&mut self) -> Option<RunLogEntry> {
        if !self.has_ended {
            let entry = match &mut self.log {
                Log::Whole(log) => log.next().await,
                Log::Lifecycle(run) => run.next_entry().await.map(RunLogEntry::Run),
            };
            if entry.is_some() {
                return entry;
            }
            self.has_ended = true;
        }
        if let Some(closing) = &mut self.closing {
            closing.await;
            self.closing = None;
        }
        None
    }

    /// Returns the next entry if it has arrived together with the last one. [`next`](Self::next) returns it as well,
    /// at a higher cost.
    pub fn next_arrived(&mut self) -> Option<RunLogEntry> {
        match &mut self.log {
            Log::Whole(log) => log.next_arrived(),
            Log::Lifecycle(_) => None,
        }
    }

    /// Returns a handle that stops the run.
    pub fn abort_handle(&self) -> AbortHandle {
        match &self.log {
            Log::Whole(log) => log.abort_handle(),
            Log::Lifecycle(run) => run.abort_handle(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use teamster_core::ExecuteParams;
    use teamster_orchestrator::OrchestratorConfig;
    use teamster_testkit::mock_runtime::{MockRuntime, Script};
    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn the_end_is_waited_for_once_although_next_is_polled_often() {
        let is_done = Arc::new(AtomicBool::new(false));
        let done = is_done.clone();
        let closing = async move {
            for _ in 0..10 {
                yield_now().await;
            }
            assert!(!done.swap(true, Ordering::Relaxed));
        };
        let orchestrator = Orchestrator::new(OrchestratorConfig::default()).unwrap();
        let agent = Arc::new(MockRuntime::new("claude").run(Script::new().text("x").completed()));
        let request = RunRequest::new(agent, ExecuteParams::new("x"));
        let log = Log::Lifecycle(orchestrator.start(request));
        let mut run = HostedRun::new(log, closing);
        let mut polls = 0;
        loop {
            tokio::select! {
                biased;
                entry = run.next() => if entry.is_none() {
                    break;
                },
                () = yield_now() => polls += 1,
            }
            assert!(polls < 100_000);
        }
        assert!(polls > 0);
        assert!(is_done.load(Ordering::Relaxed));
        assert_eq!(run.next().await, None);
    }
}
