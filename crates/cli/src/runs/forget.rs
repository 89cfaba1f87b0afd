//! `teamster runs forget`.

use std::io::{self, Write};

use teamster::store::{Store, StoreError};
use teamster_api::history::{ForgetRuns, Forgotten, RunRecord, RunState};
use teamster_core::time::{epoch_ms, millis};
use teamster_runner::{RunFolder, RunState as LogState, RunsError, client};
use thiserror::Error;

use super::history::History;
use teamster_host::state;

use crate::args::RunsForgetArgs;
use crate::{exit_code, words};

/// Reason that no run is deleted.
#[derive(Debug, Error)]
pub(crate) enum Refusal {
    /// There is no such run.
    #[error(
        "there is no run `{}` in {place}: `teamster runs list` shows the runs",
        words::one_line(id)
    )]
    Unknown { id: String, place: String },
    /// It has not ended.
    #[error("the run `{0}` is live: stop it with `teamster cancel {0}` first")]
    Live(String),
    /// It has not ended, and belongs to another process.
    #[error(
        "the run `{}` is live in process {pid}: stop it first",
        words::one_line(id)
    )]
    LiveElsewhere { id: String, pid: u32 },
}

/// Deletes the selected runs and returns the exit code.
pub(super) async fn main(args: &RunsForgetArgs, history: &History) -> anyhow::Result<u8> {
    let mut request = ForgetRuns::default();
    request.ids.clone_from(&args.ids);
    request.older_than_ms = args.older_than.map(millis);
    request.logs_over = args.logs_over;
    let deleted = history.forget(&request).await?;
    let runs = words::plural(deleted.runs, "run");
    let mut out = io::stdout();
    exit_code::of_printed(if deleted.logs > 0 {
        let logs = words::plural(deleted.logs, "log");
        let size = words::bytes(deleted.log_bytes);
        writeln!(out, "{runs} forgotten, {logs} deleted ({size})")
    } else {
        writeln!(out, "{runs} forgotten")
    })
}

/// Deletes the selected runs. Without a store, only logs are deleted.
pub(crate) async fn delete(
    request: &ForgetRuns,
    store: Option<&Store>,
) -> anyhow::Result<Forgotten> {
    let mut deleted = Forgotten::default();
    if let Some(age) = request.older_than_ms {
        let before = epoch_ms().saturating_sub(age);
        if let Some(store) = store {
            deleted.runs += store.forget_runs(before).await?;
        }
        for run in logs()? {
            // For an ended run, this is the time of its end.
            if run.changed_at().is_some_and(|at| at < before) {
                delete_log(run, &mut deleted)?;
            }
        }
    }
    if let Some(most) = request.logs_over {
        let mut kept: u64 = 0;
        // Newest first.
        for run in logs()? {
            kept = kept.saturating_add(run.log_bytes());
            if kept > most {
                delete_log(run, &mut deleted)?;
            }
        }
    }
    if !request.ids.is_empty() {
        delete_runs(&request.ids, store, &mut deleted).await?;
    }
    Ok(deleted)
}

/// Returns the runs with logs, newest first.
fn logs() -> anyhow::Result<Vec<RunFolder>> {
    match state::runs() {
        Ok(runs) => Ok(runs.list()?),
        // Without a state directory there are no logs.
        Err(_) => Ok(Vec::new()),
    }
}

/// Deletes a log unless its run is live. Returns whether it was deleted.
fn delete_log(run: RunFolder, deleted: &mut Forgotten) -> anyhow::Result<bool> {
    let bytes = run.log_bytes();
    let gone = run.remove()?;
    if gone {
        deleted.logs += 1;
        deleted.log_bytes += bytes;
    }
    Ok(gone)
}

/// Deletes the runs with these ids.
///
/// Deletes none if an id is unknown or ambiguous, or if its run is running according to the history.
async fn delete_runs(
    ids: &[String],
    store: Option<&Store>,
    deleted: &mut Forgotten,
) -> anyhow::Result<()> {
    let mut found = Vec::new();
    let mut logs = Vec::new();
    for id in ids {
        let log = match state::runs().map(|runs| runs.find(id)) {
            Ok(Ok(log)) => Some(log),
            Ok(Err(error @ RunsError::Ambiguous { .. })) => return Err(error.into()),
            _ => None,
        };
        let rows = match store {
            Some(store) => rows(store, id).await?,
            None => Vec::new(),
        };
        if rows.is_empty() && log.is_none() {
            let place = store.map_or_else(|| "the history".to_owned(), |it| it.place().clone());
            let id = id.clone();
            return Err(Refusal::Unknown { id, place }.into());
        }
        for row in rows {
            if row.status == RunState::Running {
                let (id, pid) = (row.run_id.clone(), row.pid);
                return Err(Refusal::LiveElsewhere { id, pid }.into());
            }
            found.push(row.run_id);
        }
        if let Some(log) = log {
            // Before any is deleted.
            if matches!(client::settle(&log).await?, LogState::Live) {
                return Err(Refusal::Live(log.id().to_owned()).into());
            }
            let is_new = logs.iter().all(|known: &RunFolder| known.id() != log.id());
            logs.extend(is_new.then_some(log));
        }
    }
    for log in logs {
        let id = log.id().to_owned();
        if !delete_log(log, deleted)? {
            return Err(Refusal::Live(id).into());
        }
    }
    if let Some(store) = store {
        for id in found {
            deleted.runs += store.forget_run(&id).await?;
        }
    }
    Ok(())
}

/// Returns the rows of a run, or of all turns of a session.
async fn rows(store: &Store, id: &str) -> anyhow::Result<Vec<RunRecord>> {
    match store.run(id).await {
        Ok(row) => Ok(row.into_iter().collect()),
        // What cannot be an id is one of no run.
        Err(StoreError::Invalid { .. }) => Ok(Vec::new()),
        Err(error) => match error.session() {
            Some(session) => Ok(store.turns(session).await?),
            None => Err(error.into()),
        },
    }
}
