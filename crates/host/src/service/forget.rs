//! Deletion of runs: their rows in the history, and their logs.

use std::collections::BTreeSet;

use teamster_api::history::{ForgetRuns, Forgotten, RunRecord, RunState as Recorded};
use teamster_api::{ProblemCode, ServiceError, is_turn_id};
use teamster_core::time::epoch_ms;
use teamster_runner::{RunFolder, RunState, RunsError, client};
use teamster_store::{Store, StoreError};

use super::{results, unlimited};
use crate::machine::store_error;
use crate::state;

/// Reason that runs are not deleted.
#[derive(Debug, thiserror::Error)]
pub(super) enum ForgetError {
    /// There is no run with this id.
    #[error("no run \"{0}\" in the history")]
    Unknown(String),
    /// It has not ended.
    #[error("the run \"{0}\" is live: stop it first")]
    Live(String),
    /// It has not ended, and belongs to another process.
    #[error("the run \"{id}\" is live in process {pid}: stop it first")]
    LiveElsewhere {
        id: String,
        /// Process of the run.
        pid: u32,
    },
    /// A log cannot be read or deleted, or an id matches several runs.
    #[error(transparent)]
    Runs(#[from] RunsError),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<ForgetError> for ServiceError {
    fn from(error: ForgetError) -> Self {
        let message = error.to_string();
        match error {
            ForgetError::Unknown(id) => Self::new(ProblemCode::RunNotFound, message).about(&id),
            // A run that can be stopped by its id.
            ForgetError::Live(id) => Self::new(ProblemCode::RunLive, message).about(&id),
            ForgetError::LiveElsewhere { .. } => Self::new(ProblemCode::RunLive, message),
            ForgetError::Runs(error) => error.into(),
            ForgetError::Store(error) => store_error(error),
        }
    }
}

/// Deletes the selected runs. Without a store, only logs are deleted. Fails if a selected run is unknown or live, or if
/// a log or the store cannot be written.
pub(super) async fn forget_runs(
    request: &ForgetRuns,
    store: Option<&Store>,
) -> Result<Forgotten, ForgetError> {
    let mut deleted = Forgotten::default();
    // Runs of which nothing is known any more.
    let mut gone = BTreeSet::new();
    let done = delete(request, store, &mut deleted, &mut gone).await;
    // Git takes a while. It fails only if the runtime ends.
    let _ = unlimited(move || {
        results::forget(gone.iter().map(String::as_str));
        Ok(())
    })
    .await;
    done.map(|()| deleted)
}

async fn delete(
    request: &ForgetRuns,
    store: Option<&Store>,
    deleted: &mut Forgotten,
    gone: &mut BTreeSet<String>,
) -> Result<(), ForgetError> {
    if let Some(age) = request.older_than_ms {
        let before = epoch_ms().saturating_sub(age);
        if let Some(store) = store {
            deleted.runs += store.forget_runs(before).await?;
        }
        for run in logs()? {
            // For an ended run, this is the time of its end.
            if run.changed_at_ms().is_some_and(|at| at < before) {
                let id = run.id().to_owned();
                if delete_log(run, deleted)? {
                    gone.insert(id);
                }
            }
        }
        if let Some(store) = store {
            for id in results::old(before) {
                let has_log = state::runs().is_ok_and(|runs| !matches!(runs.get(&id), Ok(None)));
                if !has_log && !store.run_exists(&id).await? {
                    gone.insert(id);
                }
            }
        }
    }
    if let Some(most) = request.logs_over {
        let mut kept: u64 = 0;
        // Newest first.
        for run in logs()? {
            kept = kept.saturating_add(run.log_bytes());
            if kept > most {
                delete_log(run, deleted)?;
            }
        }
    }
    if !request.ids.is_empty() {
        let store = store.filter(|_| !request.logs_only);
        delete_runs(request, store, deleted, gone).await?;
    }
    Ok(())
}

/// Returns the runs with logs, newest first.
fn logs() -> Result<Vec<RunFolder>, ForgetError> {
    match state::runs() {
        Ok(runs) => Ok(runs.list()?),
        // Without a state directory there are no logs.
        Err(_) => Ok(Vec::new()),
    }
}

/// Deletes a log unless its run is live. Returns whether it was deleted.
fn delete_log(run: RunFolder, deleted: &mut Forgotten) -> Result<bool, ForgetError> {
    let bytes = run.log_bytes();
    let gone = run.remove()?;
    if gone {
        count(bytes, deleted);
    }
    Ok(gone)
}

/// Counts a deleted log of this size.
fn count(bytes: u64, deleted: &mut Forgotten) {
    deleted.logs += 1;
    deleted.log_bytes += bytes;
}

/// Deletes the runs with these ids.
///
/// Deletes none if an id is unknown or ambiguous, or if its run is running according to the history.
async fn delete_runs(
    request: &ForgetRuns,
    store: Option<&Store>,
    deleted: &mut Forgotten,
    gone: &mut BTreeSet<String>,
) -> Result<(), ForgetError> {
    let mut found = Vec::new();
    let mut logs = Vec::new();
    // Of attached ones, which have no log.
    let mut sessions = BTreeSet::new();
    for id in &request.ids {
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
            return Err(ForgetError::Unknown(id.clone()));
        }
        for row in rows {
            if row.status == Recorded::Running {
                let (id, pid) = (row.run_id.clone(), row.pid);
                return Err(ForgetError::LiveElsewhere { id, pid });
            }
            if !is_turn_id(id)
                && is_turn_id(&row.run_id)
                && let Some((session, _)) = row.run_id.rsplit_once('.')
            {
                sessions.insert(session.to_owned());
            }
            found.push(row.run_id);
        }
        if let Some(log) = log {
            // Before any is deleted.
            if matches!(client::settle(&log).await?, RunState::Live) {
                return Err(ForgetError::Live(log.id().to_owned()));
            }
            let is_new = logs.iter().all(|known: &RunFolder| known.id() != log.id());
            logs.extend(is_new.then_some(log));
        }
    }
    for log in logs {
        let (id, bytes) = (log.id().to_owned(), log.log_bytes());
        if !client::remove(log).await? {
            return Err(ForgetError::Live(id));
        }
        count(bytes, deleted);
        if !request.logs_only {
            gone.insert(id);
        }
    }
    if let Some(store) = store {
        for id in found {
            deleted.runs += store.forget_run(&id).await?;
            // A run without a log has a result, too.
            gone.insert(id);
        }
    }
    gone.append(&mut sessions);
    Ok(())
}

/// Returns the rows of a run, or of all turns of a session.
async fn rows(store: &Store, id: &str) -> Result<Vec<RunRecord>, ForgetError> {
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
