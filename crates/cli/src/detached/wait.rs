//! `teamster wait`.

use anyhow::Context;
use teamster::orchestrator::RunLogEntry;
use teamster::{AgentEvent, RunResult};

use super::RunHandle;
use crate::args::WaitArgs;
use crate::{exit_code, hints, tokio_runtime, words};

/// Waits for the runs; the exit code of the first that did not complete.
pub(crate) fn main(args: &WaitArgs) -> anyhow::Result<u8> {
    let several = args.ids.len() > 1;
    tokio_runtime()
        .context("cannot start the runtime")?
        .block_on(async {
            let runs = RunHandle::find_all(&args.ids).await?;
            let mut code = exit_code::SUCCESS;
            for run in runs {
                let id = run.id().to_owned();
                let result = result(&run).await?;
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

/// What comes of the run.
pub(super) async fn result(run: &RunHandle) -> anyhow::Result<RunResult> {
    let line = run.end().await?;
    let line = line.context("the log of this run has no end")?;
    if let Ok(RunLogEntry::Agent(entry)) = line.entry()
        && let AgentEvent::Done(done) = entry.event
    {
        return Ok(*done.result);
    }
    anyhow::bail!("the end of this run's log cannot be read by this version")
}
