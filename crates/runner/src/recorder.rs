//! Recording of a run in its folder.

use std::io;

use teamster_api::RunLogEntry;
use teamster_core::{AbortHandle, RunResult};
use teamster_orchestrator::RunLog;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::log_sink::LogSink;
use crate::log_task::{LogTask, SideChannels};
use crate::server::{Control, serve};
use crate::{AcceptedRun, RequestChannel, RunFolder, RunLock};

/// Policy for a run whose log cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnLostLog {
    /// The run waits for its log. It is stopped after 30 s, or at once if the log cannot grow (`ulimit -f`).
    StopRun,
    /// The run never waits. It continues without its log after 30 s, at once if the log cannot grow (`ulimit -f`), or
    /// when 64 MiB wait to be written. The next reader completes the log.
    Continue,
}

/// Writer of a run's log, and the server of the clients that follow and stop it.
///
/// Dropping it before [`end`](Self::end) leaves the log as after a crash: its next reader completes it.
pub struct RunRecorder {
    folder: RunFolder,
    task: LogTask,
    side: SideChannels,
    server: JoinHandle<io::Result<()>>,
    /// Lock of a live runner. Declared last, so it is released last.
    _lock: RunLock,
}

impl RunRecorder {
    /// Begins to serve the clients of a run. `abort` stops it.
    ///
    /// # Panics
    ///
    /// Panics outside of a Tokio runtime.
    pub fn begin(run: AcceptedRun, abort: AbortHandle, on_lost: OnLostLog) -> Self {
        Self::with_requests(run, abort, on_lost, RequestChannel::none())
    }

    pub(crate) fn with_requests(
        run: AcceptedRun,
        abort: AbortHandle,
        on_lost: OnLostLog,
        channel: RequestChannel,
    ) -> Self {
        let AcceptedRun {
            folder,
            log,
            listener,
            lock,
            ..
        } = run;
        let task = LogTask::new(LogSink::Log(log), folder.id()).on_lost(on_lost);
        let control = Control::new(task.position(), abort, channel.requests());
        let control = control.status(task.status().clone());
        Self {
            folder,
            side: SideChannels {
                channel,
                notes: mpsc::unbounded_channel().1,
            },
            task,
            server: tokio::spawn(serve(listener, control)),
            _lock: lock,
        }
    }

    /// Writes a run to its end and returns its result. `see` is called with each entry before it is written.
    pub async fn record(
        &mut self,
        log: &mut RunLog,
        see: &mut (dyn FnMut(&RunLogEntry) + Send),
    ) -> RunResult {
        self.task.record(log, &mut self.side, see).await
    }

    /// Ends the log. If the run was stopped because of its log, `result` gets that error.
    ///
    /// # Errors
    ///
    /// Fails if the log is incomplete. Its next reader completes it.
    pub async fn end(mut self, result: &mut RunResult) -> io::Result<()> {
        let ended = self.task.end(result).await;
        self.server.abort();
        self.folder.close_socket();
        ended
    }
}

impl Drop for RunRecorder {
    fn drop(&mut self) {
        self.server.abort();
    }
}
