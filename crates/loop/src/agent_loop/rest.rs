//! Sleep between two ticks.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use teamster_api::agents::SleepFile;
use teamster_core::{ErrorKind, RunResult};

use super::AgentLoop;
use crate::clock::{Clock, rest};
use crate::machine::Sleep;

/// Interval at which a sleeping loop checks that the agent's directory exists.
const DIRECTORY_POLL_INTERVAL: Duration = Duration::from_secs(30);

impl AgentLoop {
    /// Returns the seconds until the limit resets that the tick ran into, if the service reported them.
    pub(super) fn seconds_until_reset(&self, result: &RunResult) -> Option<u64> {
        let now = u64::try_from(self.clock.now().as_millisecond()).unwrap_or_default();
        let limits = (result.errors.iter())
            .filter(|error| matches!(error.kind, ErrorKind::RateLimit | ErrorKind::Quota));
        let ms = limits.filter_map(|error| {
            let reset = error.resets_at_ms.map(|at| at.saturating_sub(now));
            reset.max(error.retry_after_ms)
        });
        ms.max().map(|ms| ms.div_ceil(1000))
    }

    pub(super) async fn sleep(&mut self, sleep: Sleep) {
        let Sleep { seconds, reason } = sleep;
        let line = format!("sleeping {seconds} s: {reason}");
        let mut file = SleepFile::sleeping(seconds, reason, self.clock.now());
        if let Some(failure) = &self.failure {
            file = file.after(&failure.to_tick_error().message);
        }
        // The file comes first: a reader of the log line may open it.
        self.write_sleep(file);
        self.log.line(line);
        let (clock, control) = (self.clock.clone(), self.control.clone());
        let mut rest = pin!(rest(&*clock, seconds));
        let mut removed = pin!(directory_removed(
            &*clock,
            self.folder.directory().to_owned()
        ));
        let woken = loop {
            tokio::select! {
                biased;
                () = control.stopping() => break false,
                () = control.woken() => break true,
                () = &mut rest => break false,
                result = self.next_unasked_end() => self.record_unasked_turn(&result),
                // The next tick reports it and ends the loop.
                () = &mut removed => break false,
            }
        };
        if woken {
            self.log.line("woken");
            self.release_hold().await;
        }
        self.machine.rested();
    }
}

/// Waits until the directory of an agent has been removed.
async fn directory_removed(clock: &dyn Clock, directory: PathBuf) {
    let is_there = || match fs::metadata(&directory) {
        Err(error) => error.kind() != io::ErrorKind::NotFound,
        Ok(_) => true,
    };
    while is_there() {
        clock.sleep(DIRECTORY_POLL_INTERVAL).await;
    }
}
