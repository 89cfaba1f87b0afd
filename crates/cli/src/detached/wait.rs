//! `teamster wait`: waits for detached runs.

use anyhow::{Context, bail};
use teamster::{AgentEvent, RunResult};
use teamster_api::{LogLine, RunLogEntry};

use super::RunHandle;
use super::handle::turn_of;
use crate::args::WaitArgs;
use crate::remote::Machine;
use crate::{exit_code, hints, tokio_runtime, words};

/// Waits for the runs and returns the exit code of the first that did not complete.
pub(crate) fn main(args: &WaitArgs, machine: &Machine) -> anyhow::Result<u8> {
    let several = args.ids.len() > 1;
    tokio_runtime()
        .context("cannot start the runtime")?
        .block_on(async {
            let runs = RunHandle::find_all(machine, &args.ids).await?;
            let runs = (args.ids.iter().zip(runs)).map(|(id, run)| (awaited(id, &run), run));
            let mut code = exit_code::SUCCESS;
            for (id, run) in runs {
                let result = match result_of(&run, &id).await {
                    Ok(result) => result,
                    // The others are waited for.
                    Err(error) if several => {
                        crate::fail(&error);
                        if code == exit_code::SUCCESS {
                            code = exit_code::AGENT_ERROR;
                        }
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                let ended = exit_code::of(&result);
                if ended == exit_code::SUCCESS {
                    continue;
                }
                if let Some(error) = result.failure() {
                    let message = hints::message(&error);
                    crate::fail(&if several {
                        anyhow::anyhow!("run {}: {message}", words::one_line(&id))
                    } else {
                        anyhow::anyhow!("{message}")
                    });
                }
                if code == exit_code::SUCCESS {
                    code = ended;
                }
            }
            Ok(code)
        })
}

/// Returns the id to wait for: that of the run, or of a turn of this session.
fn awaited(id: &str, run: &RunHandle) -> String {
    match turn_of(id) {
        Some((_, turn)) if run.is_session() => format!("{}.{turn}", run.id()),
        _ => run.id().to_owned(),
    }
}

/// Waits for the run's result.
pub(super) async fn result(run: &RunHandle) -> anyhow::Result<RunResult> {
    result_of(run, run.id()).await
}

/// Waits for the result of the run or turn with this id, in the log of `run`.
async fn result_of(run: &RunHandle, id: &str) -> anyhow::Result<RunResult> {
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
