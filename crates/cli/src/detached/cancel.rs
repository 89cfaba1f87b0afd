//! `teamster cancel`.

use anyhow::Context;
use teamster_runner::client;

use super::{find, wait};
use crate::args::CancelArgs;
use crate::{exit_code, tokio_runtime};

/// Stops the runs and waits for their ends; the exit code.
pub(crate) fn main(args: &CancelArgs) -> anyhow::Result<u8> {
    let runs: Vec<_> = args
        .ids
        .iter()
        .map(|id| find(id))
        .collect::<Result<_, _>>()?;
    tokio_runtime()
        .context("cannot start the runtime")?
        .block_on(async {
            for run in &runs {
                client::cancel(run, args.kill).await?;
            }
            for run in runs {
                wait::result(run).await?;
            }
            Ok(exit_code::SUCCESS)
        })
}
