//! Runner of one run.

use std::io;

use teamster_core::{AbortHandle, AgentEvent, RunResult};
use teamster_orchestrator::{Orchestrator, RunRequest};
use tokio::sync::mpsc;

use crate::{NewRun, OnLostLog, Requests, RunRecorder};

/// Run whose runner is this process: it writes the log and serves the clients.
#[must_use = "nothing happens before `work` is awaited"]
pub struct DetachedRun {
    run: NewRun,
    requests: Requests,
    request_events: mpsc::UnboundedReceiver<AgentEvent>,
    log: teamster_orchestrator::RunLog,
}

/// Result of a detached run or session.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished {
    /// Result of the run or session.
    pub result: RunResult,
    /// Error if the log is incomplete. Its next reader completes it.
    pub log: io::Result<()>,
}

impl DetachedRun {
    /// Creates the runner of this request. `requests` and `request_events` come from [`Requests::of`].
    ///
    /// # Panics
    ///
    /// Panics outside of a Tokio runtime.
    pub fn new(
        run: NewRun,
        orchestrator: &Orchestrator,
        request: RunRequest,
        requests: Requests,
        request_events: mpsc::UnboundedReceiver<AgentEvent>,
    ) -> Self {
        Self {
            log: orchestrator.log(request.id(run.folder.id())),
            run,
            requests,
            request_events,
        }
    }

    /// Returns the handle that stops the run.
    pub fn abort_handle(&self) -> AbortHandle {
        self.log.abort_handle()
    }

    /// Executes the run and writes its log to the end.
    pub async fn work(mut self) -> Finished {
        let abort = self.abort_handle();
        let (requests, events) = (self.requests, self.request_events);
        let stop = OnLostLog::StopRun;
        let mut recorder = RunRecorder::with_requests(self.run, abort, stop, requests, events);
        let mut result = recorder.record(&mut self.log, &mut |_| {}).await;
        let log = recorder.end(&mut result).await;
        Finished { result, log }
    }
}
