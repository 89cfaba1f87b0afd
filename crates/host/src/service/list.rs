//! Lists of runs, and titles that are given later.

use teamster_api::history::RunCursor;
use teamster_api::{ProblemCode, RunList, RunQuery, ServiceError, check_title};
use teamster_core::AgentError;
use teamster_runner::RunsError;
use teamster_store::Store;

use super::index::{AT_ONCE, order, prompt};
use super::{LocalRuns, blocking};
use crate::machine::store_error;

/// The default number of runs in a page.
const PAGE: usize = 50;
/// The maximum number of runs in a page.
const LARGEST_PAGE: usize = 1000;

impl LocalRuns {
    pub(super) async fn page(&self, query: RunQuery) -> Result<RunList, ServiceError> {
        let before: Option<RunCursor> = match &query.cursor {
            Some(cursor) => {
                let read = cursor.parse();
                Some(read.map_err(|error: String| AgentError::refused("cursor", error))?)
            }
            None => None,
        };
        let limit = query.limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
        let mut folders = self.index.folders().await?;
        let mut page = RunList::new(Vec::new());
        folders.retain(|folder| {
            let (at, id) = order(folder);
            (before.as_ref()).is_none_or(|before| (at, id) < (before.started_at, &before.run_id))
                && query.selects(folder.info())
        });
        if query.text.is_some() {
            let query = query.clone();
            // No log is read for it.
            folders = blocking(move || {
                folders.retain(|run| query.has_text(run.title().as_deref(), || prompt(run)));
                Ok(folders)
            })
            .await?;
        }
        let wants_status = query.live || query.live_status;
        for folders in folders.chunks(AT_ONCE) {
            for summary in self.index.summaries(folders, wants_status).await {
                if !query.shows(&summary) {
                    continue;
                }
                if page.runs.len() == limit {
                    let last = page.runs.last().map(|run| &run.info);
                    page.next = last
                        .map(|last| RunCursor::new(last.accepted_at_ms, &*last.run_id).to_string());
                    return Ok(page);
                }
                page.runs.push(summary);
            }
        }
        Ok(page)
    }

    /// Gives a run another title: in its folder, and in the history, which alone has attached runs and turns of sessions.
    pub(super) async fn give_title(
        &self,
        id: &str,
        title: Option<String>,
    ) -> Result<(), ServiceError> {
        let title = title.as_deref().map(check_title).transpose()?;
        let folder = match self.index.get(id).await {
            Ok(folder) => Some(folder),
            Err(error) if error.code == Some(ProblemCode::RunNotFound) => None,
            Err(error) => return Err(error),
        };
        let is_here = folder.is_some();
        let recorded = match folder {
            Some(folder) => {
                let (given, first) = (title.clone(), folder.info().title.clone());
                blocking(move || Ok(folder.set_title(title.as_deref())?)).await?;
                given.or(first)
            }
            None => title,
        };
        let set = async |store: Option<&Store>| match store {
            Some(store) => {
                let set = store.set_run_title(id, recorded.as_deref()).await;
                set.map_err(store_error)
            }
            None => Ok(false),
        };
        let is_recorded = self.store.with(set).await?;
        if is_here || is_recorded {
            Ok(())
        } else {
            Err(RunsError::NotFound { id: id.to_owned() }.into())
        }
    }
}
