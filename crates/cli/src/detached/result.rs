//! The results of detached runs and turns.

use anyhow::bail;
use teamster::{AgentEvent, RunResult};
use teamster_api::RunLogEntry;

use super::Run;
use crate::words;

/// Waits for the result of the run or turn with this id, in the log of `run`.
pub(crate) async fn result_of(run: &Run, id: &str) -> anyhow::Result<Box<RunResult>> {
    if run.id() == id {
        return Ok(run.handle.result().await?);
    }
    let mut entries = run.follow(0);
    while let Some(line) = entries.next().await? {
        if line.type_name() == "done"
            && let Ok(RunLogEntry::Agent(entry)) = line.entry()
            && entry.run_id.as_deref() == Some(id)
            && let AgentEvent::Done(done) = entry.event
        {
            return Ok(done.result);
        }
    }
    bail!(
        "the session has ended without a turn {}",
        words::one_line(id)
    )
}
