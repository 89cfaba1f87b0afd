//! `teamster cancel`.

use anyhow::Context;

use super::{RunHandle, wait};
use crate::args::CancelArgs;
use crate::{exit_code, tokio_runtime};

/// Stops the runs and waits for their ends; the exit code.
pub(crate) fn main(args: &CancelArgs) -> anyhow::Result<u8> {
    tokio_runtime()
        .context("cannot start the runtime")?
        .block_on(async {
            let runs = RunHandle::find_all(&args.ids).await?;
            for run in &runs {
                run.cancel(args.kill).await?;
            }
            for run in runs {
                wait::result(&run).await?;
            }
            Ok(exit_code::SUCCESS)
        })
}
