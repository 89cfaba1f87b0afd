//! Process of a runner, named in the lock file of its run.

use std::io::{self, Write};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use teamster_process::{ProcessIdentity, ProcessSignal, process_space};
use tokio::time::{Instant, sleep};

use crate::folder::{LOCK, RunLock};
use crate::{RunFolder, RunsError, files};

/// Time to wait for the end of a killed runner. A process that takes longer hangs in the kernel.
const KILL_LIMIT: Duration = Duration::from_secs(5);
/// Time to wait for the end of a runner that has released its lock. A process that lives on has lost its log.
const EXIT_LIMIT: Duration = Duration::from_secs(1);
/// Interval at which its end is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Content of a lock file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Holder {
    pid: u32,
    /// Start time, in clock ticks since boot.
    start_time: Option<u64>,
    /// Boot and container in which the process id is valid.
    space: Option<String>,
}

impl RunLock {
    /// Writes the identity of this process to the locked file, for readers that get no answer from it.
    pub(crate) fn name_holder(&mut self) -> io::Result<()> {
        let pid = std::process::id();
        let holder = Holder {
            pid,
            start_time: ProcessIdentity::of(pid).and_then(ProcessIdentity::start_time),
            space: process_space(),
        };
        self.file().write_all(&serde_json::to_vec(&holder)?)
    }
}

impl RunFolder {
    /// Returns the process that holds the run's lock, its runner. `None` if it has ended, is in another container, or
    /// is of a version that did not write its id.
    pub fn runner(&self) -> Option<ProcessIdentity> {
        let text = files::read(&self.path().join(LOCK)).ok()?;
        let holder: Holder = serde_json::from_slice(&text).ok()?;
        let process = ProcessIdentity::new(holder.pid, holder.start_time);
        (holder.space == process_space() && process.is_running()).then_some(process)
    }

    /// Returns the error of a runner that does not answer.
    pub fn not_answering(&self) -> RunsError {
        let runner = self.runner();
        RunsError::NotAnswering {
            id: self.id().to_owned(),
            pid: runner.map(ProcessIdentity::pid),
            is_stopped: runner.is_some_and(ProcessIdentity::is_stopped),
        }
    }

    /// Waits until the process of a killed runner is gone, for a moment at most. The kernel releases its locks before
    /// its end, and until then its processes do not count as left.
    pub(crate) fn wait_for_exit(&self) {
        let until = std::time::Instant::now() + EXIT_LIMIT;
        let is_there = |it: ProcessIdentity| it.pid() != std::process::id();
        while self.runner().is_some_and(is_there) && std::time::Instant::now() < until {
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Kills (SIGKILL) a runner that does not answer, and waits for its end. Fails if the process is unknown, cannot be
    /// killed, or hangs in the kernel.
    pub(crate) async fn kill_runner(&self) -> Result<(), RunsError> {
        // The run may be one of this process.
        let other = |it: &ProcessIdentity| it.pid() != std::process::id();
        let Some(runner) = self.runner().filter(other) else {
            return Err(self.not_answering());
        };
        (runner.signal(ProcessSignal::Kill))
            .map_err(RunsError::io("end the runner of", self.path()))?;
        let until = Instant::now() + KILL_LIMIT;
        while runner.is_running() {
            if Instant::now() >= until {
                return Err(self.not_answering());
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use teamster_api::RunInfo;

    use super::*;
    use crate::{LogLimits, Runs};

    #[test]
    fn a_runner_that_is_gone_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let run = Runs::at(dir.path()).accept(&RunInfo::new("r", "claude"), LogLimits::default());
        let folder = run.unwrap().folder;
        let begun = std::time::Instant::now();
        folder.wait_for_exit();
        assert!(begun.elapsed() < EXIT_LIMIT);
    }
}
