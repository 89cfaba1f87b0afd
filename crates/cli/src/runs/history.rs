//! Access to the history of runs, in a local store or on a server.

use std::path::PathBuf;

use anyhow::{Context, bail};
use teamster::store::Store;
use teamster_api::history::{ForgetRuns, Forgotten, HistoryList, RunFilter, RunRecord};
use teamster_api::{ProblemCode, RunView};

use super::forget;
use teamster_host::state;

use crate::args::StoreArgs;
use crate::remote::{Http, encode_segment, remote};
use crate::{store, words};

/// Maximum number of runs in a page from a server.
const PAGE: u32 = 1000;

/// A history of runs.
pub(super) enum History {
    /// A local store; `None` if there is none.
    Local(Option<Store>),
    Remote(&'static Http),
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
    pub(super) async fn open(args: &StoreArgs) -> anyhow::Result<Self> {
        match remote() {
            Some(http) => Ok(Self::Remote(http)),
            None => Ok(Self::Local(store::open(args).await?)),
        }
    }

    /// Opens the history as [`Self::open`] does, but allows that no store is configured.
    pub(super) async fn open_if_any(args: &StoreArgs) -> anyhow::Result<Self> {
        if remote().is_none() && teamster_host::store_location(args.url.as_deref()).is_none() {
            return Ok(Self::Local(None));
        }
        Self::open(args).await
    }

    /// Returns whether there is no store.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Local(None))
    }

    /// Returns the location for messages.
    pub(super) fn location(&self) -> String {
        match self {
            Self::Local(store) => store.as_ref().map(Store::place).unwrap_or_default(),
            Self::Remote(http) => http.url().to_owned(),
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
            Self::Remote(http) => pages(http, &filter).await,
        }
    }

    /// Returns the run with this id or unique prefix. An unknown one is an error.
    pub(super) async fn find(&self, id: &str) -> anyhow::Result<RunRecord> {
        let found = match self {
            Self::Local(None) => None,
            Self::Local(Some(store)) => store.run(id).await?,
            Self::Remote(http) => match http
                .get(&format!("/v1/history/{}", encode_segment(id)))
                .await
            {
                Err(failure) if failure.code() == Some(ProblemCode::RunNotFound) => None,
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
            Self::Remote(http) => {
                let path = format!("/v1/runs/{}", encode_segment(run_id));
                http.get::<RunView>(&path).await.ok()?.prompt
            }
        }
    }

    /// Deletes the selected runs.
    pub(super) async fn forget(&self, request: &ForgetRuns) -> anyhow::Result<Forgotten> {
        match self {
            Self::Local(store) => forget::delete(request, store.as_ref()).await,
            Self::Remote(http) => {
                let path = "/v1/history/forget";
                Ok(http
                    .exchange(hyper::Method::POST, path, &[], request)
                    .await?)
            }
        }
    }
}

async fn pages(http: &Http, filter: &ListFilter) -> anyhow::Result<Vec<RunRecord>> {
    let mut query = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        query.extend(value.map(|value| format!("&{name}={}", encode_segment(&value))));
    };
    add("agent", filter.provider.clone());
    add("status", filter.status.map(|status| status.to_string()));
    add("since", filter.since_ms.map(|since| since.to_string()));
    if let Some(directory) = &filter.directory {
        let Some(directory) = directory.to_str() else {
            bail!("--cwd: with --remote, a directory needs a name of UTF-8");
        };
        add("directory", Some(directory.to_owned()));
    }
    let query = query.concat();
    let mut runs = Vec::new();
    let mut cursor = String::new();
    loop {
        let missing = filter.limit - u32::try_from(runs.len()).unwrap_or(filter.limit);
        let limit = missing.min(PAGE);
        let path = format!("/v1/history?limit={limit}{query}{cursor}");
        let page: HistoryList = http.get(&path).await?;
        runs.extend(page.runs);
        match page.next {
            Some(next) if runs.len() < filter.limit as usize => {
                cursor = format!("&cursor={}", encode_segment(&next));
            }
            _ => return Ok(runs),
        }
    }
}
