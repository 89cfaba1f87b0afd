//! Access to the history of runs, in a local store or on a server.

use std::path::PathBuf;

use anyhow::{Context, bail};
use teamster::store::Store;
use teamster_api::ProblemCode;
use teamster_api::history::{ForgetRuns, Forgotten, RunFilter, RunRecord};
use teamster_client::{Client, HistoryQuery};

use super::forget;
use teamster_host::state;

use crate::args::StoreArgs;
use crate::remote::Machine;
use crate::{store, words};

/// A history of runs.
pub(super) enum History {
    /// A local store; `None` if there is none.
    Local(Option<Store>),
    Remote(Client),
}

/// Filter of listed runs.
#[derive(Debug, Default)]
pub(super) struct ListFilter {
    pub(super) limit: u32,
    pub(super) provider: Option<String>,
    pub(super) status: Option<teamster_api::history::RunState>,
    pub(super) since_ms: Option<u64>,
    pub(super) directory: Option<PathBuf>,
}

impl History {
    /// Opens the store that the arguments select. With `--remote`, the server's history is used.
    pub(super) async fn open(machine: &Machine, args: &StoreArgs) -> anyhow::Result<Self> {
        match machine {
            Machine::There(client) => Ok(Self::Remote(client.clone())),
            Machine::Here => Ok(Self::Local(store::open(args).await?)),
        }
    }

    /// Opens the history as [`Self::open`] does, but allows that no store is configured.
    pub(super) async fn open_if_any(machine: &Machine, args: &StoreArgs) -> anyhow::Result<Self> {
        if machine.is_here() && teamster_host::store_location(args.url.as_deref()).is_none() {
            return Ok(Self::Local(None));
        }
        Self::open(machine, args).await
    }

    /// Returns whether there is no store.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Local(None))
    }

    /// Returns whether it is that of this machine.
    pub(super) fn is_here(&self) -> bool {
        matches!(self, Self::Local(_))
    }

    /// Returns the location for messages.
    pub(super) fn location(&self) -> String {
        match self {
            Self::Local(store) => store.as_ref().map(Store::place).unwrap_or_default(),
            Self::Remote(client) => client.url().to_owned(),
        }
    }

    pub(super) async fn close(self) {
        if let Self::Local(Some(store)) = &self {
            teamster_host::close_store(store).await;
        }
    }

    /// Returns the selected runs, newest first.
    pub(super) async fn list(&self, filter: ListFilter) -> anyhow::Result<Vec<RunRecord>> {
        match self {
            Self::Local(None) => Ok(Vec::new()),
            Self::Local(Some(store)) => {
                let mut run_filter = RunFilter::default().limit(filter.limit);
                run_filter.provider = filter.provider;
                run_filter.status = filter.status;
                run_filter.since_ms = filter.since_ms;
                run_filter.working_directory = filter.directory;
                Ok(store.runs(&run_filter).await?)
            }
            Self::Remote(client) => of_server(client, filter).await,
        }
    }

    /// Returns the run with this id or unique prefix. An unknown one is an error.
    pub(super) async fn find(&self, id: &str) -> anyhow::Result<RunRecord> {
        let found = match self {
            Self::Local(None) => None,
            Self::Local(Some(store)) => store.run(id).await?,
            Self::Remote(client) => match client.recorded(id).await {
                Err(error) if error.code == Some(ProblemCode::RunNotFound) => None,
                found => Some(found?),
            },
        };
        found.with_context(|| {
            format!(
                "there is no run `{}` in {}: `teamster runs list` shows the runs",
                words::one_line(id),
                self.location()
            )
        })
    }

    /// Returns the prompt of a detached run, if its runner has kept it.
    pub(super) async fn prompt(&self, run_id: &str) -> Option<String> {
        match self {
            Self::Local(_) => {
                let folder = state::runs().ok()?.get(run_id).ok()??;
                let spec = folder.spec().ok()??;
                spec.prompt().map(str::to_owned)
            }
            Self::Remote(client) => client.show(run_id).await.ok()?.prompt,
        }
    }

    /// Deletes the selected runs.
    pub(super) async fn forget(&self, request: &ForgetRuns) -> anyhow::Result<Forgotten> {
        match self {
            Self::Local(store) => (teamster_host::forget_runs(request, store.as_ref()).await)
                .map_err(forget::with_step),
            Self::Remote(client) => Ok(client.forget(request).await?),
        }
    }
}

/// Returns the selected runs of a server, newest first.
async fn of_server(client: &Client, filter: ListFilter) -> anyhow::Result<Vec<RunRecord>> {
    if (filter.directory.as_ref()).is_some_and(|directory| directory.to_str().is_none()) {
        bail!("--cwd: with --remote, a directory needs a name of UTF-8");
    }
    let mut query = HistoryQuery::default();
    query.agent = filter.provider;
    query.status = filter.status;
    query.since = filter.since_ms;
    query.directory = filter.directory;
    let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
    let runs = client.all_history(query, limit).await;
    Ok(runs?)
}
