//! The program's implementation of the server's backend.

use std::ffi::OsString;

use teamster::store::{Store, StoreError};
use teamster_api::history::{ForgetRuns, Forgotten, RunFilter, RunRecord};
use teamster_api::usage::{LimitList, UsageQuery, UsageSummary};
use teamster_api::{ProviderReport, RunSpec, SessionSpec};
use teamster_runner::RunsError;
use teamster_server::{Backend, BackendError};

use super::start;
use crate::args::{By, Cli, Command};
use crate::runs::forget::Refusal;
use crate::{doctor, runs, usage};

/// The program as the server's backend.
pub(crate) struct Program;

type Future<T> =
    std::pin::Pin<Box<dyn std::future::Future<Output = Result<T, BackendError>> + Send>>;

impl Backend for Program {
    fn start(&self, run_id: String, request: RunSpec) -> Future<()> {
        Box::pin(async move { start::start(run_id, request).await })
    }

    fn start_session(&self, session_id: String, request: SessionSpec) -> Future<()> {
        Box::pin(start::start_session(session_id, request))
    }

    fn providers(&self) -> Future<Vec<ProviderReport>> {
        Box::pin(async { failed(doctor::with_capabilities().await) })
    }

    fn limits(&self) -> Future<LimitList> {
        Box::pin(async { run_blocking(|| Ok(usage::limits())).await })
    }

    fn history(&self, filter: RunFilter) -> Future<Vec<RunRecord>> {
        Box::pin(async move {
            let Some(store) = failed(open_store().await)? else {
                return Ok(Vec::new());
            };
            let runs = store.runs(&filter).await;
            teamster_host::close_store(&store).await;
            runs.map_err(store_error)
        })
    }

    fn history_of(&self, id: String) -> Future<RunRecord> {
        Box::pin(async move {
            let Some(store) = failed(open_store().await)? else {
                return Err(BackendError::NotFound(id));
            };
            let run = store.run(&id).await;
            teamster_host::close_store(&store).await;
            match run {
                // What cannot be an id is one of no run.
                Ok(None) | Err(StoreError::Invalid { .. }) => Err(BackendError::NotFound(id)),
                run => Ok(run
                    .map_err(store_error)?
                    .ok_or(BackendError::NotFound(id))?),
            }
        })
    }

    fn forget(&self, request: ForgetRuns) -> Future<Forgotten> {
        Box::pin(async move {
            let store = failed(open_store().await)?;
            let deleted = runs::forget::delete(&request, store.as_ref()).await;
            if let Some(store) = &store {
                teamster_host::close_store(store).await;
            }
            deleted.map_err(forget_error)
        })
    }

    fn usage(&self, query: UsageQuery) -> Future<UsageSummary> {
        Box::pin(async move {
            run_blocking(move || {
                let args =
                    usage_args(&query).map_err(|error| BackendError::Invalid(one_line(&error)))?;
                let Command::Usage(mut args) = args.command else {
                    return Err(BackendError::Failed("no such command".to_owned()));
                };
                args.by = query.by.and_then(By::of);
                let invalid = |error| BackendError::Invalid(crate::words::error_chain(&error));
                usage::check_period(&args).map_err(invalid)?;
                failed(usage::summary(&args))
            })
            .await
        })
    }
}

/// Runs blocking work, such as disk access, on the blocking thread pool.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackendError> + Send + 'static,
) -> Result<T, BackendError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(BackendError::Failed(error.to_string())))
}

/// Opens the user's store; `None` if it does not exist yet or is turned off.
async fn open_store() -> anyhow::Result<Option<Store>> {
    let Some(place) = teamster_host::store_location(None) else {
        return Ok(None);
    };
    match Store::open_existing(&place).await {
        Err(StoreError::Missing { .. }) => Ok(None),
        opened => Ok(Some(opened?)),
    }
}

fn failed<T>(done: anyhow::Result<T>) -> Result<T, BackendError> {
    done.map_err(|error| BackendError::Failed(crate::words::error_chain(&error)))
}

fn store_error(error: StoreError) -> BackendError {
    match error {
        StoreError::Ambiguous { .. } => BackendError::Ambiguous(error.to_string()),
        StoreError::Invalid { .. } => BackendError::Invalid(error.to_string()),
        error => BackendError::Failed(crate::words::error_chain(&error.into())),
    }
}

fn forget_error(error: anyhow::Error) -> BackendError {
    let text = crate::words::error_chain(&error);
    if let Some(refusal) = error.downcast_ref::<Refusal>() {
        return match refusal {
            Refusal::Unknown { id, .. } => BackendError::NotFound(id.clone()),
            _ => BackendError::Live(text),
        };
    }
    if matches!(error.downcast_ref(), Some(RunsError::Ambiguous { .. })) {
        return BackendError::Ambiguous(text);
    }
    match error.downcast::<StoreError>() {
        Ok(error) => store_error(error),
        Err(_) => BackendError::Failed(text),
    }
}

/// Parses the query as the equivalent command line, so that values have the same syntax.
fn usage_args(query: &UsageQuery) -> Result<Cli, clap::Error> {
    let mut words: Vec<OsString> = ["teamster", "usage", "--json"].map(OsString::from).to_vec();
    for (flag, value) in [("--since", &query.since), ("--until", &query.until)] {
        if let Some(value) = value {
            words.push(format!("{flag}={value}").into());
        }
    }
    for provider in query.provider.iter().flat_map(|names| names.split(',')) {
        words.push(format!("--provider={provider}").into());
    }
    if query.models {
        words.push("--models".into());
    }
    Cli::read(words)
}

/// Returns the first line of a parser's error, without the prefix `error: `.
pub(super) fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}
