//! `teamster runs forget`.

use std::io::{self, Write};

use anyhow::{anyhow, bail};
use teamster::store::{RunState, Store};
use teamster_core::time::{epoch_ms, millis};
use teamster_runner::{RunFolder, RunsError};

use super::find;
use crate::args::RunsForgetArgs;
use crate::{detached, exit_code, words};

/// What was deleted.
#[derive(Default)]
struct Deleted {
    runs: u64,
    logs: u64,
    log_bytes: u64,
}

/// Deletes what is asked for. Without a store, there are only logs.
pub(super) async fn main(args: &RunsForgetArgs, store: Option<&Store>) -> anyhow::Result<u8> {
    let mut deleted = Deleted::default();
    if let Some(age) = args.older_than {
        let before = epoch_ms().saturating_sub(millis(age));
        if let Some(store) = store {
            deleted.runs += store.forget_runs(before).await?;
        }
        for run in logs()? {
            // Of an ended run, this is its end.
            if run.changed_at().is_some_and(|at| at < before) {
                deleted.log(run)?;
            }
        }
    }
    if let Some(most) = args.logs_over {
        let mut kept: u64 = 0;
        // The newest first.
        for run in logs()? {
            kept = kept.saturating_add(run.log_bytes());
            if kept > most {
                deleted.log(run)?;
            }
        }
    }
    if !args.ids.is_empty() && !forget(&args.ids, store, &mut deleted).await? {
        return Ok(exit_code::AGENT_ERROR);
    }
    let runs = words::plural(deleted.runs, "run");
    let mut out = io::stdout();
    exit_code::of_printed(if deleted.logs > 0 {
        let logs = words::plural(deleted.logs, "log");
        let mib = deleted.log_bytes.div_ceil(1 << 20);
        writeln!(out, "{runs} forgotten, {logs} deleted ({mib} MiB)")
    } else {
        writeln!(out, "{runs} forgotten")
    })
}

/// The runs that have logs, the newest first.
fn logs() -> anyhow::Result<Vec<RunFolder>> {
    match detached::runs() {
        Ok(runs) => Ok(runs.list()?),
        // Without a place for them there are none.
        Err(_) => Ok(Vec::new()),
    }
}

impl Deleted {
    /// Deletes a log, unless its run goes on; whether it is gone.
    fn log(&mut self, run: RunFolder) -> anyhow::Result<bool> {
        let bytes = run.log_bytes();
        let gone = run.remove()?;
        if gone {
            self.logs += 1;
            self.log_bytes += bytes;
        }
        Ok(gone)
    }
}

/// Forgets all of these, or none if one of them cannot be forgotten. `false` if there is nothing to forget.
async fn forget(
    ids: &[String],
    store: Option<&Store>,
    deleted: &mut Deleted,
) -> anyhow::Result<bool> {
    let mut found = Vec::new();
    let mut logs = Vec::new();
    for id in ids {
        let log = match detached::runs().map(|runs| runs.find(id)) {
            Ok(Ok(log)) => Some(log),
            Ok(Err(error @ RunsError::Ambiguous { .. })) => return Err(error.into()),
            _ => None,
        };
        let row = match store {
            // A log is enough: its run may have no row.
            Some(store) if log.is_some() => store.run(id).await?,
            Some(store) => Some(find(store, id).await?),
            None => None,
        };
        if row.is_none() && log.is_none() {
            let id = words::one_line(id);
            crate::fail(&anyhow!(
                "there is no run `{id}` in the history, and no log of one"
            ));
            return Ok(false);
        }
        if let Some(row) = row {
            if row.status == RunState::Running {
                bail!(
                    "the run `{}` goes on in process {}: stop it first",
                    words::one_line(&row.run_id),
                    row.pid
                );
            }
            found.push(row.run_id);
        }
        logs.extend(log);
    }
    for log in logs {
        let id = log.id().to_owned();
        if !deleted.log(log)? {
            bail!("the run `{id}` goes on: stop it with `teamster cancel {id}` first");
        }
    }
    if let Some(store) = store {
        for id in found {
            deleted.runs += store.forget_run(&id).await?;
        }
    }
    Ok(true)
}
