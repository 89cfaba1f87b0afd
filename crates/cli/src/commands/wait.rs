//! `teamster wait`: waits for detached runs.

pub(crate) mod args;

use std::io::{self, IsTerminal};

use teamster_api::session_of_turn;

use crate::detached::{Run, report_queue};
use crate::remote::Machine;
use crate::runtime::tokio_runtime;
use crate::{exit_code, hints, words};
use args::WaitArgs;

/// Waits for the runs and returns the exit code of the first that did not complete.
pub(crate) fn main(args: &WaitArgs, machine: &Machine) -> anyhow::Result<u8> {
    let several = args.ids.len() > 1;
    tokio_runtime()?.block_on(async {
        let runs = Run::find_all(machine, &args.ids).await?;
        if !machine.is_here() && io::stderr().is_terminal() {
            for run in &runs {
                tokio::spawn(report_queue(run.handle.clone(), !several));
            }
        }
        let runs = (args.ids.iter().zip(runs)).map(|(id, run)| (awaited(id, &run), run));
        let mut code = exit_code::SUCCESS;
        for (id, run) in runs {
            let result = if run.id() == id {
                run.handle.result().await
            } else {
                run.handle.turn_result(&id).await
            };
            let result = match result {
                Ok(result) => result,
                // The others are waited for.
                Err(error) if several => {
                    crate::report::fail(&error.into());
                    if code == exit_code::SUCCESS {
                        code = exit_code::AGENT_ERROR;
                    }
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let ended = exit_code::of(&result);
            if ended == exit_code::SUCCESS {
                continue;
            }
            if let Some(error) = result.failure() {
                let message = hints::message(&error);
                crate::report::fail(&if several {
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
fn awaited(id: &str, run: &Run) -> String {
    match session_of_turn(id) {
        Some((_, turn)) if run.is_session() => format!("{}.{turn}", run.id()),
        _ => run.id().to_owned(),
    }
}
