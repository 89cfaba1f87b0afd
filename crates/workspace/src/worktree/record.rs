//! What is known of a run's workspace, beside the workspace: it outlives the worktree, and runs that share one have one
//! each.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use teamster_core::WorkspaceResult;

use super::folder::{Info, Kind, is_missing, make, path};
use super::result::{HEAD, WIP, reference};
use crate::git::git;
use crate::step::before_change;

const FILE: &str = "workspace.json";
const DRAFT: &str = "workspace.json.new";

/// The workspace of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) kind: Kind,
    #[serde(with = "path")]
    pub(super) repository: PathBuf,
    #[serde(with = "path")]
    pub(super) path: PathBuf,
    pub(super) branch: String,
    pub(super) base: String,
    /// A commit before the base that those who take the result have. Default: the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) known: Option<String>,
    /// Its result; `None` before the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<WorkspaceResult>,
}

/// Returns the folder of the record of the run with this id, whose workspace is in `root`.
pub(super) fn folder(root: &Path, id: &str) -> PathBuf {
    root.with_extension("results").join(id)
}

/// Returns the records of all runs whose workspaces are in `root`, with the ids of the runs. Fails if one cannot be
/// read, such as one of a later version.
pub(super) fn all(root: &Path) -> io::Result<Vec<(String, Record)>> {
    let mut records = Vec::new();
    for folder in entries(&root.with_extension("results"))? {
        // No id of a run is another text.
        let Some(id) = folder.file_name().and_then(|it| it.to_str()) else {
            continue;
        };
        if let Some(record) = Record::read(&folder)? {
            records.push((id.to_owned(), record));
        }
    }
    Ok(records)
}

/// Returns the paths of what is in a folder, which may not exist. Fails if it cannot be read.
pub(super) fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if is_missing(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Notes that the worktree with this path was removed: of the runs in it that have left nothing, nothing is known any more.
pub(super) fn forget_directory(root: &Path, path: &Path) {
    for (id, mut record) in all(root).unwrap_or_default() {
        let folder = folder(root, &id);
        if record.path == path
            && let Some(result) = &mut record.result
        {
            result.directory = None;
            if result.has_changes() {
                // Without it, a reader looks for the worktree, and does not find it.
                let _ = record.write(&folder);
            } else {
                Record::remove(&folder);
            }
        }
    }
}

/// Removes the records of runs whose process was killed after it had removed their worktree, which had no changes.
pub(super) fn forget_killed(root: &Path) {
    for folder in entries(&root.with_extension("results")).unwrap_or_default() {
        let is_there = |id| root.join(id).exists();
        if folder.file_name().is_none_or(is_there) {
            continue;
        }
        let Ok(Some(record)) = Record::read(&folder) else {
            continue;
        };
        let has_ref = |name| {
            let name = reference(&folder, name);
            git(
                &record.repository,
                ["rev-parse", "--verify", "--quiet", &name],
            )
            .is_ok()
        };
        if record.result.is_none()
            && record.path.parent().is_none_or(|it| !it.exists())
            && !has_ref(HEAD)
            && !has_ref(WIP)
        {
            Record::remove(&folder);
        }
    }
}

impl Record {
    pub(super) fn new(info: &Info) -> Self {
        Self {
            kind: info.kind,
            repository: info.repository.clone(),
            path: info.path.clone(),
            branch: info.branch.clone(),
            base: info.base.clone(),
            known: None,
            result: None,
        }
    }

    /// Reads the record in a folder; `None` if there is none.
    pub(super) fn read(folder: &Path) -> io::Result<Option<Self>> {
        match fs::read(folder.join(FILE)) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the record atomically.
    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let write = || -> io::Result<()> {
            make(folder)?;
            let draft = folder.join(DRAFT);
            before_change();
            fs::write(&draft, serde_json::to_vec(self)?)?;
            File::open(&draft)?.sync_data()?;
            before_change();
            fs::rename(draft, folder.join(FILE))
        };
        write().with_context(|| format!("cannot write in {}", folder.display()))
    }

    /// Writes down what a run has left, or removes the record of a run that has left nothing.
    pub(super) fn end(info: &Info, result: &WorkspaceResult, folder: &Path) {
        if result.directory.is_none() && !result.has_changes() {
            Self::remove(folder);
            return;
        }
        let known = Self::read(folder).ok().flatten();
        let mut record = known.unwrap_or_else(|| Self::new(info));
        record.result = Some(result.clone());
        // Without it, the refs and the worktree are still there, and `done` has the result.
        let _ = record.write(folder);
    }

    /// Removes the record. Other files of the run stay.
    pub(super) fn remove(folder: &Path) {
        before_change();
        let _ = fs::remove_file(folder.join(FILE));
        Self::remove_draft(folder);
    }

    /// Removes what a process has left that was killed before its record was there.
    pub(super) fn remove_draft(folder: &Path) {
        let _ = fs::remove_file(folder.join(DRAFT));
        // Not with files in it.
        let _ = fs::remove_dir(folder);
    }
}
