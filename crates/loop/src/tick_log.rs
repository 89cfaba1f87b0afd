//! Run logs of ticks: each tick is a run, and the loop's process is its runner.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use teamster_api::{RunInfo, RunKind, RunLogEntry};
use teamster_core::{AbortHandle, RunResult};
use teamster_runner::server::{Control, serve};
use teamster_runner::{
    LogLimits, NewRun, Position, Requests, Retention, RunFolder, RunLock, RunLogWriter, Runs,
    RunsError, client,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Time for which writing a log is retried. After it the tick continues without its log.
const WRITE_RETRY_LIMIT: Duration = Duration::from_secs(30);
/// Maximum number of entries in one write.
const BATCH: usize = 256;

/// Location and retention of the logs of an agent's ticks.
#[derive(Debug, Clone)]
pub struct TickLogs {
    runs: Runs,
    keep: usize,
    /// Retention of the logs of all runs.
    retention: Option<Retention>,
    /// Run ids of the agent's own ticks, oldest first, once they have been listed.
    own: Option<VecDeque<String>>,
}

impl TickLogs {
    /// Keeps the logs of the last 100 ticks, among the logs of these runs.
    pub fn new(runs: Runs) -> Self {
        Self {
            runs,
            keep: 100,
            retention: None,
            own: None,
        }
    }

    /// Keeps the logs of this many ticks.
    #[must_use]
    pub fn keep(mut self, ticks: usize) -> Self {
        self.keep = ticks;
        self
    }

    /// Applies this retention to the logs of all ended runs, those of other programs included. Default: only
    /// surplus logs of ticks are removed.
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = Some(retention);
        self
    }

    /// Begins the log of a tick.
    pub(crate) fn begin(
        &mut self,
        info: &RunInfo,
        abort: AbortHandle,
    ) -> Result<TickLog, RunsError> {
        let log = TickLog::begin(&self.runs, info, abort)?;
        if let Some(own) = &mut self.own {
            own.push_back(info.run_id.clone());
        }
        Ok(log)
    }

    /// Removes the oldest logs of ticks in this directory until there is room for one more. Then applies the
    /// retention for the logs of all runs.
    pub(crate) fn make_room(&mut self, directory: &Path) -> Result<(), RunsError> {
        if self.own.is_none() {
            let mut own: VecDeque<String> = VecDeque::new();
            for run in self.runs.list()? {
                let info = run.info();
                if info.kind == RunKind::Tick && info.directory.as_deref() == Some(directory) {
                    own.push_front(info.run_id.clone());
                }
            }
            self.own = Some(own);
        }
        let own = self.own.get_or_insert_default();
        while own.len() >= self.keep.max(1) {
            let Some(oldest) = own.pop_front() else { break };
            match self.runs.find(&oldest).and_then(RunFolder::remove) {
                // A log that is being read is removed by a later tick.
                Ok(_) | Err(RunsError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(retention) = &self.retention {
            self.runs.prune(retention)?;
        }
        Ok(())
    }

    /// Completes the log of a tick whose loop was killed. Returns the result at its end, or `None` without a log.
    pub(crate) async fn settle(&self, run_id: &str) -> Result<Option<RunResult>, RunsError> {
        let Some(run) = self.runs.get(run_id)? else {
            return Ok(None);
        };
        client::settle(&run).await?;
        let end = run.last_line()?;
        Ok(end.and_then(|end| end.result()).map(|result| *result))
    }
}

/// Log of the tick in progress.
pub(crate) struct TickLog {
    folder: RunFolder,
    writer: RunLogWriter,
    announce: watch::Sender<Position>,
    server: JoinHandle<io::Result<()>>,
    /// Number of entries since the last flush.
    waiting: usize,
    /// Start of a series of write errors, and the last error.
    failing: Option<(Instant, io::Error)>,
    /// The log was given up: further entries are dropped.
    lost: bool,
    /// Lock of a live runner. Declared last, so it is released last.
    _lock: RunLock,
}

impl TickLog {
    fn begin(runs: &Runs, info: &RunInfo, abort: AbortHandle) -> Result<Self, RunsError> {
        let NewRun {
            folder,
            log: writer,
            listener,
            lock,
            ..
        } = runs.accept(info, LogLimits::default())?;
        let (announce, position) = watch::channel(Position::default());
        let control = Control::new(position, abort, Requests::default());
        Ok(Self {
            folder,
            writer,
            announce,
            server: tokio::spawn(serve(listener, control)),
            waiting: 0,
            failing: None,
            lost: false,
            _lock: lock,
        })
    }

    pub(crate) fn push(&mut self, entry: RunLogEntry) {
        if self.lost {
            return;
        }
        self.writer.push(entry);
        self.waiting += 1;
        if self.waiting >= BATCH {
            self.flush();
        }
    }

    /// Returns whether entries wait for a flush.
    pub(crate) fn has_unwritten(&self) -> bool {
        self.waiting > 0
    }

    /// Returns when buffered deltas are due for writing.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.writer.due().filter(|_| !self.lost)
    }

    /// Writes buffered deltas without waiting for more.
    pub(crate) fn end_frame(&mut self) {
        self.writer.end_frame();
        self.flush();
    }

    /// Writes pending entries and wakes the readers. After an error they are written with the next entries.
    pub(crate) fn flush(&mut self) {
        self.waiting = 0;
        match self.writer.flush() {
            Ok(position) => {
                self.failing = None;
                self.announce.send_if_modified(|known| {
                    let changed = *known != position;
                    *known = position;
                    changed
                });
            }
            Err(error) => {
                let since = (self.failing.take()).map_or_else(Instant::now, |(since, _)| since);
                if since.elapsed() >= WRITE_RETRY_LIMIT {
                    self.writer.discard_unwritten();
                    self.lost = true;
                }
                self.failing = Some((since, error));
            }
        }
    }

    /// Ends the log. Returns the error if the log is incomplete; its next reader completes it.
    pub(crate) fn end(mut self) -> Option<io::Error> {
        self.end_frame();
        self.server.abort();
        self.folder.close_socket();
        match self.failing.take() {
            Some((_, error)) => Some(error),
            None => self.writer.sync().err(),
        }
    }
}

impl Drop for TickLog {
    fn drop(&mut self) {
        self.server.abort();
    }
}
