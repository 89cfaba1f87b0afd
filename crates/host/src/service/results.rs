//! Results of runs of this machine: changes as data, and files in parts.
//!
//! The bundle and the patch are made when they are first read, from the refs of the run; collected files were copied at
//! the end of the run. All are in the folder `result` of the run's folder; a run without one has a folder of its own.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use teamster_api::{
    ARTIFACTS, BUNDLE, DiffQuery, FileList, FileManifest, PART_BYTES, PATCH, ProblemCode, RunFile,
    ServiceError, ViewState, WorkspaceDiff, is_file_name, is_run_id,
};
use teamster_core::WorkspaceResult;
use teamster_core::time::{epoch_ms, millis};
use teamster_process::make_private_folder;
use teamster_runner::{Runs, RunsError};
use teamster_workspace::{Kept, remove_forgotten};

use super::LocalRuns;
use super::limited::{blocking, unlimited};
use crate::artifacts;
use crate::state::{self, RESULTS, WORKTREES};
use crate::text::error_chain;

/// The folder with a run's files, inside its folder.
const FOLDER: &str = "result";

pub(super) struct Results {
    pub(super) id: String,
    /// The folder with its files, which may not exist yet.
    pub(super) folder: PathBuf,
    pub(super) kept: Option<Kept>,
    /// The end of the run, if it has a folder.
    end: Option<WorkspaceResult>,
    has_ended: bool,
}

/// Returns the folder for the files of the run with this folder, or without one; `None` without a state directory.
pub(crate) fn folder(id: &str, run: Option<&Path>) -> Option<PathBuf> {
    match run {
        Some(run) => Some(run.join(FOLDER)),
        None => Some(state::file(RESULTS)?.join(id)),
    }
}

/// Returns the ids of all runs with results that have not changed since this time, in milliseconds since the Unix epoch. A
/// run that has not ended is left out.
pub(crate) fn old(before: u64) -> Vec<String> {
    let (Some(root), Some(folders)) = (state::file(WORKTREES), state::file(RESULTS)) else {
        return Vec::new();
    };
    let entries = fs::read_dir(folders).into_iter().flatten().flatten();
    let results = entries.filter_map(|entry| {
        let changed = entry.metadata().ok()?.modified().ok()?;
        let changed = changed.duration_since(UNIX_EPOCH).ok()?;
        if millis(changed) >= before {
            return None;
        }
        let id = entry.file_name().into_string().ok()?;
        let kept = Kept::find(&root, &id).ok()?;
        let has_ended = kept.is_none_or(|kept| kept.result().is_some());
        has_ended.then_some(id)
    });
    results.collect()
}

/// Returns what the run with this id has left in a workspace of its own, if anything is known of that.
pub fn workspace_of(id: &str) -> Option<WorkspaceResult> {
    let root = state::file(WORKTREES).filter(|_| is_run_id(id))?;
    let kept = Kept::find(&root, id).ok()??;
    kept.result().cloned()
}

/// Removes what is kept of runs' results apart from their folders: refs of the repositories, and collected files. In a
/// mirror, worktrees and branches go too; in a repository of the user, they stay.
pub(crate) fn forget<'a>(ids: impl IntoIterator<Item = &'a str>) {
    let root = state::file(WORKTREES);
    let mirrors = state::mirrors().ok();
    let mut is_any = false;
    for id in ids.into_iter().filter(|id| is_run_id(id)) {
        is_any = true;
        let is_forgotten = |root| match Kept::find(root, id) {
            Ok(kept) => kept.is_none_or(|kept| kept.forget(mirrors.as_deref()).is_ok()),
            Err(_) => false,
        };
        // What is known of its refs stays as long as they do.
        if !root.as_deref().is_none_or(is_forgotten) {
            continue;
        }
        if let Some(folder) = folder(id, None) {
            let _ = fs::remove_dir_all(folder);
        }
    }
    if let (true, Some(root), Some(mirrors)) = (is_any, root, mirrors) {
        remove_forgotten(&root, &mirrors);
    }
}

/// Removes the results of runs that are outdated, and those that have had no log and no change since this time, in
/// milliseconds since the Unix epoch. As of logs, those of the last hour stay. In a repository of the user, nothing is
/// removed without a command: what was not committed may be nowhere else.
pub(crate) fn prune(runs: &Runs, outdated: &[String], before: Option<u64>) {
    const GRACE: Duration = Duration::from_hours(1);
    let recent = epoch_ms().saturating_sub(millis(GRACE));
    let old = before
        .map(|before| old(before.min(recent)))
        .unwrap_or_default();
    let has_log = |id: &String| !matches!(runs.get(id), Ok(None));
    let old = old.iter().filter(|id| !has_log(id));
    let (root, mirrors) = (state::file(WORKTREES), state::mirrors().ok());
    let is_ours = |id: &&str| {
        let Some(root) = root.as_ref().filter(|_| is_run_id(id)) else {
            return true;
        };
        match Kept::find(root, id) {
            Ok(None) => true,
            Ok(Some(kept)) => {
                let is_ours = (mirrors.as_ref()).is_some_and(|it| kept.is_of_mirror(it));
                if !is_ours && let Some(folder) = folder(id, None) {
                    artifacts::remove(&folder);
                }
                is_ours
            }
            Err(_) => false,
        }
    };
    let all = outdated.iter().chain(old).map(String::as_str);
    forget(all.filter(is_ours));
}

impl LocalRuns {
    pub(super) async fn changes_of(
        &self,
        id: &str,
        query: DiffQuery,
    ) -> Result<WorkspaceDiff, ServiceError> {
        let results = self.results(id).await?;
        unlimited(move || results.diff(&query)).await
    }

    pub(super) async fn files_of(&self, id: &str) -> Result<FileList, ServiceError> {
        let results = self.ended_results(id).await?;
        unlimited(move || results.list()).await
    }

    pub(super) async fn manifest_of(
        &self,
        id: &str,
        name: &str,
    ) -> Result<FileManifest, ServiceError> {
        let results = self.ended_results(id).await?;
        let name = name.to_owned();
        unlimited(move || {
            let file = results.open(&name)?;
            FileManifest::read(name, file).map_err(internal)
        })
        .await
    }

    pub(super) async fn part_of(
        &self,
        id: &str,
        name: &str,
        number: u32,
    ) -> Result<Vec<u8>, ServiceError> {
        let results = self.ended_results(id).await?;
        let name = name.to_owned();
        unlimited(move || {
            let mut file = results.open(&name)?;
            let start = u64::from(number) * PART_BYTES;
            file.seek(SeekFrom::Start(start)).map_err(internal)?;
            let mut part = Vec::new();
            (file.take(PART_BYTES).read_to_end(&mut part)).map_err(internal)?;
            if part.is_empty() {
                let message = format!("\"{name}\" has no part {number}");
                return Err(ServiceError::new(ProblemCode::FileNotFound, message));
            }
            Ok(part)
        })
        .await
    }

    pub(super) async fn ended_results(&self, id: &str) -> Result<Results, ServiceError> {
        let results = self.results(id).await?;
        if !results.has_ended {
            let message = format!("run {id} has not ended: its files are there after its end");
            return Err(ServiceError::new(ProblemCode::RunLive, message));
        }
        Ok(results)
    }

    /// Finds what a run brings back, also a run without a folder.
    async fn results(&self, id: &str) -> Result<Results, ServiceError> {
        let run = self.index.get_if_there(id).await?;
        let (mut end, mut has_ended) = (None, true);
        if let Some(run) = &run {
            let summary = self.index.summary(run.clone()).await?;
            has_ended = summary.state == ViewState::Ended;
            end.clone_from(&summary.workspace);
        }
        let id = id.to_owned();
        blocking(move || {
            let kept = match state::file(WORKTREES).filter(|_| is_run_id(&id)) {
                Some(root) => Kept::find(&root, &id).map_err(internal)?,
                None => None,
            };
            let run = run.as_ref().map(teamster_runner::RunFolder::path);
            let folder = folder(&id, run).ok_or_else(|| not_found(&id))?;
            if run.is_none() {
                if kept.is_none() && !(is_run_id(&id) && folder.is_dir()) {
                    return Err(RunsError::NotFound { id }.into());
                }
                has_ended = kept.as_ref().is_none_or(|kept| kept.result().is_some());
            }
            Ok(Results {
                id,
                folder,
                kept,
                end,
                has_ended,
            })
        })
        .await
    }
}

impl Results {
    fn diff(&self, query: &DiffQuery) -> Result<WorkspaceDiff, ServiceError> {
        if let Some(kept) = &self.kept {
            return kept.diff(query).map_err(|error| self.of_git(&error));
        }
        match &self.end {
            // It was removed, because nothing was changed in it.
            Some(end) if !end.has_changes() => Ok(WorkspaceDiff::new(&*end.base, &*end.base)),
            _ => Err(self.nothing_left()),
        }
    }

    /// Returns the error of a run that has no workspace, or whose changes are gone.
    pub(super) fn nothing_left(&self) -> ServiceError {
        let id = &self.id;
        let message = if self.end.is_some() {
            format!(
                "nothing is left of the changes of run {id}: it has made none, or they were discarded or removed with \
                 its log"
            )
        } else {
            format!(
                "run {id} has no workspace of its own, so its changes are not known: start runs with `worktree`"
            )
        };
        ServiceError::new(ProblemCode::NoWorkspace, message)
    }

    fn list(&self) -> Result<FileList, ServiceError> {
        let mut files = Vec::new();
        if let Some(kept) = &self.kept
            && kept.has_changes()
        {
            let mut add = |name: &str| {
                let bytes = fs::metadata(self.folder.join(name)).ok().map(|it| it.len());
                files.push(RunFile::new(name, bytes));
            };
            add(PATCH);
            if kept.has_commits() {
                add(BUNDLE);
            }
        }
        let (collected, missing) = artifacts::list(&self.folder).map_err(internal)?;
        files.extend(collected);
        let mut list = FileList::new(files);
        list.missing = missing;
        Ok(list)
    }

    /// Returns the path of a file. The bundle and the patch are made now, unless they exist.
    pub(super) fn path_of(&self, name: &str) -> Result<PathBuf, ServiceError> {
        let missing = || self.missing(name);
        match name.strip_prefix(ARTIFACTS) {
            Some(file) if is_file_name(name) => {
                artifacts::collected(&self.folder, file).ok_or_else(missing)
            }
            None if matches!(name, BUNDLE | PATCH) => {
                if self.kept.is_none()
                    && self.end.as_ref().is_some_and(WorkspaceResult::has_changes)
                {
                    return Err(self.nothing_left());
                }
                let path = self.folder.join(name);
                if !path.exists() && !self.make(name, &path)? {
                    return Err(missing());
                }
                Ok(path)
            }
            _ => Err(missing()),
        }
    }

    fn missing(&self, name: &str) -> ServiceError {
        let message = format!("run {} has no file \"{name}\"", self.id);
        ServiceError::new(ProblemCode::FileNotFound, message)
    }

    fn open(&self, name: &str) -> Result<File, ServiceError> {
        let missing = || self.missing(name);
        match File::open(self.path_of(name)?) {
            Ok(file) if file.metadata().is_ok_and(|it| it.is_file()) => Ok(file),
            Err(error)
                if !matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Err(internal(error))
            }
            _ => Err(missing()),
        }
    }

    /// Makes the bundle or the patch. Returns `false` if there is nothing to be in it.
    fn make(&self, name: &str, path: &Path) -> Result<bool, ServiceError> {
        static DRAFTS: AtomicU64 = AtomicU64::new(0);
        let Some(kept) = self.kept.as_ref().filter(|kept| kept.has_changes()) else {
            return Ok(false);
        };
        make_private_folder(&self.folder).map_err(internal)?;
        let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
        let draft = format!(".{name}.{}.{number}", std::process::id());
        let draft = self.folder.join(OsStr::new(&draft));
        let made = if name == BUNDLE {
            kept.write_bundle(&draft)
        } else {
            kept.write_patch(&draft).map(|()| true)
        };
        let made = made.map_err(|error| self.of_git(&error));
        let made = made.and_then(|made| {
            if made {
                fs::rename(&draft, path).map_err(internal)?;
            }
            Ok(made)
        });
        let _ = fs::remove_file(&draft);
        made
    }

    fn of_git(&self, error: &anyhow::Error) -> ServiceError {
        let message = format!(
            "the changes of run {} cannot be read: {}",
            self.id,
            error_chain(error)
        );
        ServiceError::new(ProblemCode::NoWorkspace, message)
    }
}

fn not_found(id: &str) -> ServiceError {
    ServiceError::new(ProblemCode::RunNotFound, format!("no run {id}"))
}

fn internal(error: io::Error) -> ServiceError {
    let error = error_chain(&anyhow::Error::from(error));
    ServiceError::new(ProblemCode::Internal, error)
}
