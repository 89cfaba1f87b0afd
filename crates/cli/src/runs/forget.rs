//! `teamster runs forget`.

use std::io::{self, Write};

use anyhow::bail;
use teamster::store::{RunState, Store};
use teamster_core::time::{epoch_ms, millis};

use super::find;
use crate::args::RunsForgetArgs;
use crate::{exit_code, words};

pub(super) async fn main(args: &RunsForgetArgs, store: &Store) -> anyhow::Result<u8> {
    let forgotten = match args.older_than {
        Some(age) => {
            store
                .forget_runs(epoch_ms().saturating_sub(millis(age)))
                .await?
        }
        None => forget(&args.ids, store).await?,
    };
    let runs = words::plural(forgotten, "run");
    exit_code::of_printed(writeln!(io::stdout(), "{runs} forgotten"))
}

/// Forgets all of these, or none if one of them cannot be forgotten.
async fn forget(ids: &[String], store: &Store) -> anyhow::Result<u64> {
    let mut found = Vec::new();
    for id in ids {
        let run = find(store, id).await?;
        if run.status == RunState::Running {
            bail!(
                "the run `{}` goes on in process {}: stop it first",
                words::one_line(&run.run_id),
                run.pid
            );
        }
        found.push(run.run_id);
    }
    let mut forgotten = 0;
    for id in found {
        forgotten += store.forget_run(&id).await?;
    }
    Ok(forgotten)
}
