//! Run logs of ticks: each tick is a run, and the loop's process is its runner.

use std::collections::VecDeque;
use std::path::Path;

use teamster_api::{RunInfo, RunKind};
use teamster_core::{AbortHandle, RunResult};
use teamster_runner::{
    LogLimits, OnLostLog, Retention, RunFolder, RunRecorder, Runs, RunsError, client,
};

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

teamster_core::setters! {
    TickLogs {
        /// Keeps the logs of this many ticks.
        set keep: usize,
        /// Applies this retention to the logs of all ended runs, those of other programs included. Default: only
        /// surplus logs of ticks are removed.
        some retention: Retention,
    }
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

    pub(crate) fn begin(
        &mut self,
        info: &RunInfo,
        abort: AbortHandle,
    ) -> Result<RunRecorder, RunsError> {
        let run = self.runs.accept(info, LogLimits::default())?;
        if let Some(own) = &mut self.own {
            own.push_back(info.run_id.clone());
        }
        Ok(RunRecorder::begin(run, abort, OnLostLog::Continue))
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
