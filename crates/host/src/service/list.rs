//! Lists of runs, and titles that are given later.

use teamster_api::{RunList, RunQuery, ServiceError, check_title};
use teamster_runner::{RunFolder, RunsError};
use teamster_store::Store;

use super::index::{AT_ONCE, order, prompt};
use super::{LocalRuns, blocking};
use crate::machine::store_error;

impl LocalRuns {
    pub(super) async fn page(&self, query: RunQuery) -> Result<RunList, ServiceError> {
        let before = query.before()?;
        let mut folders = self.index.folders().await?;
        let mut page = RunList::new(Vec::new());
        folders.retain(|folder| {
            let (at, id) = order(folder);
            (before.as_ref()).is_none_or(|before| (at, id) < (before.started_at, &before.run_id))
                && query.selects(folder.info())
        });
        let wants_status = query.live || query.live_status;
        for folders in folders.chunks(AT_ONCE) {
            // A page reads no more titles than it needs.
            let folders = with_text(&query, folders).await?;
            for summary in self.index.summaries(&folders, wants_status).await {
                if query.shows(&summary) && !page.add(summary, query.page_size()) {
                    return Ok(page);
                }
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
        let folder = self.index.get_if_there(id).await?;
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

/// Returns those of the runs that have the text of the query. No log is read for it.
async fn with_text(
    query: &RunQuery,
    folders: &[RunFolder],
) -> Result<Vec<RunFolder>, ServiceError> {
    let mut folders = folders.to_vec();
    if query.text.is_none() {
        return Ok(folders);
    }
    let query = query.clone();
    blocking(move || {
        folders.retain(|run| query.has_text(run.title().as_deref(), || prompt(run)));
        Ok(folders)
    })
    .await
}

#[cfg(test)]
mod tests {
    use teamster_api::RunInfo;
    use teamster_providers::Providers;
    use teamster_runner::{LogLimits, Runs};

    use super::*;
    use crate::Host;

    #[tokio::test]
    async fn a_text_is_found_in_more_runs_than_are_read_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let runs = Runs::at(dir.path());
        let mut expected = Vec::new();
        for number in 0..AT_ONCE as u64 * 2 + 6 {
            let mut info = RunInfo::new(format!("r{number}"), "claude");
            info.accepted_at_ms = number;
            if number.is_multiple_of(10) {
                info.title = Some(format!("Fix {number}"));
                expected.insert(0, info.run_id.clone());
            }
            drop(runs.accept(&info, LogLimits::default()).unwrap());
        }
        let service = LocalRuns::over(&Host::new(Providers::builtin()), Ok(runs));
        let mut query = RunQuery::default();
        (query.text, query.limit) = (Some("FIX".to_owned()), Some(3));
        let mut pages = Vec::new();
        loop {
            let page = service.page(query.clone()).await.unwrap();
            let ids = page.runs.iter().map(|run| run.info.run_id.clone());
            pages.push(ids.collect::<Vec<_>>());
            query.cursor = page.next;
            if query.cursor.is_none() {
                break;
            }
        }
        assert_eq!(pages.concat(), expected);
        assert_eq!(
            pages.iter().map(Vec::len).collect::<Vec<_>>(),
            [3, 3, 1],
            "{pages:?}"
        );
    }
}
