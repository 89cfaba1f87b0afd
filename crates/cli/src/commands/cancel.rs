//! `teamster cancel`: stops detached runs.

pub(crate) mod args;

use crate::detached::Run;
use crate::exit_code;
use crate::remote::Machine;
use crate::runtime::tokio_runtime;
use args::CancelArgs;
use teamster_core::Stopping;

/// Stops the runs, waits for their ends and returns the exit code. A run that cannot be stopped does not affect the
/// others.
pub(crate) fn main(args: &CancelArgs, machine: &Machine) -> anyhow::Result<u8> {
    tokio_runtime()?.block_on(async {
        let mut code = exit_code::SUCCESS;
        let mut stopping = Vec::new();
        for run in Run::find_all(machine, &args.ids).await? {
            match run.handle.cancel(Stopping::kill_if(args.kill)).await {
                Ok(()) => stopping.push(run),
                Err(error) => {
                    crate::report::fail(&error.into());
                    code = exit_code::AGENT_ERROR;
                }
            }
        }
        for run in stopping {
            if let Err(error) = run.handle.result().await {
                crate::report::fail(&error.into());
                code = exit_code::AGENT_ERROR;
            }
        }
        Ok(code)
    })
}
