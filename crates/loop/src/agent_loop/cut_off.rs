//! Cleanup after an earlier loop that was killed.

use teamster_api::agents::{TickRecord, TickResult};
use teamster_core::{Id, RunResult};

use super::AgentLoop;
use super::account::output_of;
use crate::folder::read_last_json_line;
use crate::left_behind;
use crate::session_file::SessionFile;
use crate::tick_record::{TickBegin, record_of};

/// A tick that was in progress when its loop was killed.
pub(super) struct CutOffTick {
    begin: TickBegin,
    pid: u32,
    session: Option<Id>,
}

impl CutOffTick {
    /// Reads the cut-off tick from a session file, if it has one.
    pub(super) fn of(file: &SessionFile) -> Option<Self> {
        Some(Self {
            begin: file.tick.clone()?,
            pid: file.pid,
            session: file.session_id.as_deref().map(Id::from),
        })
    }
}

impl AgentLoop {
    /// Ends the processes that a killed loop's agent left running.
    ///
    /// Takes `&mut self` because adapters are not `Sync`.
    pub(super) async fn end_leftovers(&mut self) {
        let Some(pid) = self.folder.predecessor() else {
            return;
        };
        let ended = tokio::task::spawn_blocking(move || left_behind::end_runs_of_loop(pid));
        match ended.await {
            Ok(Ok(0)) | Err(_) => {}
            Ok(Ok(count)) => self.log.line(format!(
                "ended what the loop with pid {pid} left running ({count} in all)"
            )),
            Ok(Err(error)) => self.log.line(format!(
                "cannot end the processes that the loop with pid {pid} left running: {error}"
            )),
        }
    }

    /// Records the tick in which an earlier loop was killed, with the usage that the CLI's own files have. The CLI may
    /// have been killed before it wrote them; then with the usage that the tick's log has.
    pub(super) async fn record_cut_off_tick(&mut self) {
        let Some(CutOffTick {
            begin,
            pid,
            session,
        }) = self.cut_off_tick.take()
        else {
            return;
        };
        // The loop was killed after it had recorded the tick.
        let last: Option<TickRecord> = read_last_json_line(&self.folder.path(TickRecord::NAME));
        if last.is_some_and(|last| (last.pid, last.begin) == (pid, begin.begin)) {
            return;
        }
        let number = begin.tick;
        self.log.line(format!(
            "tick {number} of the loop with pid {pid} was cut off"
        ));
        let mut logged = RunResult::default();
        if let (Some(logs), Some(run_id)) = (self.options.logs.clone(), &begin.run_id) {
            match logs.settle(run_id).await {
                Ok(result) => logged = result.unwrap_or_default(),
                Err(error) => self.log.line(format!("cannot complete its log: {error}")),
            }
        }
        let session = session.or_else(|| logged.session_id.clone());
        let mut measured = Vec::new();
        if let (Some(meter), Some(id)) = (self.meter.clone(), session.clone()) {
            let meter = meter.since(begin.begin);
            let read = tokio::task::spawn_blocking(move || meter.read(Some(&id)));
            measured = read.await.unwrap_or_default();
        }
        if output_of(&measured) >= logged.usage.and_then(|it| it.output_tokens).unwrap_or(0) {
            logged = RunResult::default();
        } else {
            measured.clear();
        }
        let used = self.record(&logged, &measured, session.as_ref(), None);
        let now = self.clock.now();
        let result = TickResult::Killed;
        self.write_tick(record_of(
            begin,
            pid,
            now,
            result,
            session.as_deref(),
            &used,
        ));
    }
}
