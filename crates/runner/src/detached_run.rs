//! The runner of one run.

use std::io;

use teamster_core::{AbortHandle, AgentEvent, RunResult};
use teamster_orchestrator::{Orchestrator, RunRequest};
use tokio::sync::mpsc;

use crate::log_task::{BeforeDone, LogTask, Side};
use crate::server::{Control, Listener, serve};
use crate::{NewRun, Requests, RunFolder, RunLock};

/// A run of which this process is the runner: it writes the log and serves the clients.
#[must_use = "nothing happens before `work` is awaited"]
pub struct DetachedRun {
    folder: RunFolder,
    task: LogTask,
    listener: Listener,
    lock: RunLock,
    side: Side,
    log: teamster_orchestrator::RunLog,
}

/// What came of a detached run or session, and whether all of that is in its log.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished {
    /// What came of it.
    pub result: RunResult,
    /// Why the log is not complete, if it is not. Its next reader gives it an end.
    pub log: io::Result<()>,
}

impl DetachedRun {
    /// A run of this request. `requests` and `asked` are those of [`Requests::of`].
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn new(
        run: NewRun,
        orchestrator: &Orchestrator,
        request: RunRequest,
        requests: Requests,
        asked: mpsc::UnboundedReceiver<AgentEvent>,
    ) -> Self {
        let NewRun {
            folder,
            log: writer,
            listener,
            lock,
            ..
        } = run;
        Self {
            task: LogTask::new(writer, folder.id()),
            log: orchestrator.log(request.run_id(folder.id())),
            folder,
            listener,
            lock,
            side: Side {
                requests,
                asked,
                notes: mpsc::unbounded_channel().1,
                before_done: None,
            },
        }
    }

    /// The same with an event for the log before its end, which this makes.
    pub fn before_done(mut self, event: Option<BeforeDone>) -> Self {
        self.side.before_done = event;
        self
    }

    /// What stops the run.
    pub fn abort_handle(&self) -> AbortHandle {
        self.log.abort_handle()
    }

    /// Does the run, to the end of its log.
    pub async fn work(mut self) -> Finished {
        let control = Control::new(
            self.task.position(),
            self.abort_handle(),
            self.side.requests.clone(),
        )
        .status(self.task.status().clone());
        let door = tokio::spawn(serve(self.listener, control));
        let mut result = (self.task)
            .record(&mut self.log, &mut self.side, &mut |_| {})
            .await;
        let log = self.task.end(&mut result).await;
        door.abort();
        self.folder.close_socket();
        drop(self.lock);
        Finished { result, log }
    }
}
