//! Runner of one run.

use std::io;

use teamster_core::{AbortHandle, AgentEvent, RunResult};
use teamster_orchestrator::{Orchestrator, RunRequest};
use tokio::sync::mpsc;

use crate::log_sink::LogSink;
use crate::log_task::{LogTask, SideChannels};
use crate::server::{Control, Listener, serve};
use crate::{NewRun, Requests, RunFolder, RunLock};

/// Run whose runner is this process: it writes the log and serves the clients.
#[must_use = "nothing happens before `work` is awaited"]
pub struct DetachedRun {
    folder: RunFolder,
    task: LogTask,
    listener: Listener,
    lock: RunLock,
    side: SideChannels,
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
        let NewRun {
            folder,
            log: writer,
            listener,
            lock,
            ..
        } = run;
        Self {
            task: LogTask::new(LogSink::Log(writer), folder.id()),
            log: orchestrator.log(request.run_id(folder.id())),
            folder,
            listener,
            lock,
            side: SideChannels {
                requests,
                request_events,
                notes: mpsc::unbounded_channel().1,
            },
        }
    }

    /// Returns the handle that stops the run.
    pub fn abort_handle(&self) -> AbortHandle {
        self.log.abort_handle()
    }

    /// Executes the run and writes its log to the end.
    pub async fn work(mut self) -> Finished {
        let control = Control::new(
            self.task.position(),
            self.abort_handle(),
            self.side.requests.clone(),
        )
        .status(self.task.status().clone());
        let server = tokio::spawn(serve(self.listener, control));
        let mut result = (self.task)
            .record(&mut self.log, &mut self.side, &mut |_| {})
            .await;
        let log = self.task.end(&mut result).await;
        server.abort();
        self.folder.close_socket();
        drop(self.lock);
        Finished { result, log }
    }
}
