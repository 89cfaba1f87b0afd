//! Runner of one run.

use std::io;

use teamster_core::{AbortHandle, RunResult};
use teamster_orchestrator::{Orchestrator, RunRequest};

use crate::{AcceptedRun, OnLostLog, RequestChannel, RunRecorder};

/// Run whose runner is this process: it writes the log and serves the clients.
#[must_use = "nothing happens before `work` is awaited"]
pub struct DetachedRun {
    run: AcceptedRun,
    channel: RequestChannel,
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
    /// Creates the runner of this request. The policies of its agents use `channel`.
    ///
    /// # Panics
    ///
    /// Panics outside of a Tokio runtime.
    pub fn new(
        run: AcceptedRun,
        orchestrator: &Orchestrator,
        request: RunRequest,
        channel: RequestChannel,
    ) -> Self {
        Self {
            log: orchestrator.start_log(request.id(run.folder.id())),
            run,
            channel,
        }
    }

    /// Returns the handle that stops the run.
    pub fn abort_handle(&self) -> AbortHandle {
        self.log.abort_handle()
    }

    /// Executes the run and writes its log to the end.
    pub async fn work(mut self) -> Finished {
        let abort = self.abort_handle();
        let stop = OnLostLog::StopRun;
        let mut recorder = RunRecorder::with_requests(self.run, abort, stop, self.channel);
        let mut result = recorder.record(&mut self.log, &mut |_| {}).await;
        let log = recorder.end(&mut result).await;
        Finished { result, log }
    }
}
