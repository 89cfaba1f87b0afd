//! The results of detached runs and turns.

use anyhow::{Context, bail};
use teamster::{AgentEvent, RunResult};
use teamster_api::{LogLine, RunLogEntry};

use super::RunHandle;
use crate::words;

/// Waits for the run's result.
pub(crate) async fn result(run: &RunHandle) -> anyhow::Result<RunResult> {
    result_of(run, run.id()).await
}

/// Waits for the result of the run or turn with this id, in the log of `run`.
pub(crate) async fn result_of(run: &RunHandle, id: &str) -> anyhow::Result<RunResult> {
    let line = if run.id() == id {
        let line = run.end().await?;
        line.context("the log of this run ends without a result")?
    } else {
        end_of_turn(run, id).await?
    };
    if let Ok(RunLogEntry::Agent(entry)) = line.entry()
        && let AgentEvent::Done(done) = entry.event
    {
        return Ok(*done.result);
    }
    bail!("this version of teamster cannot read the last entry of this run's log")
}

/// Waits for the last entry of a turn.
async fn end_of_turn(session: &RunHandle, id: &str) -> anyhow::Result<LogLine> {
    let mut entries = session.follow(0)?;
    while let Some(line) = entries.next().await? {
        if line.type_name() == "done"
            && let Ok(RunLogEntry::Agent(entry)) = line.entry()
            && entry.run_id.as_deref() == Some(id)
        {
            return Ok(line);
        }
    }
    bail!(
        "the session has ended without a turn {}",
        words::one_line(id)
    )
}
