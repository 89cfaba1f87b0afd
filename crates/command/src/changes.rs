//! Changed files of a git work tree.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use teamster_core::provider::LOCAL_GIT_VARIABLES;
use teamster_core::{ChangeKind, FileChange};
use tokio::process::Command;

/// Time limit of one git command. A work tree that exceeds it is not examined.
const LIMIT: Duration = Duration::from_secs(30);

/// Snapshot of a work tree: the files that differ from the last commit, and the id of that commit.
#[derive(Debug)]
pub(crate) struct WorkTree {
    directory: PathBuf,
    commit: Option<String>,
    files: BTreeMap<String, State>,
}

/// A file that differs from the last commit.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    change: ChangeKind,
    size: Option<u64>,
    modified: Option<SystemTime>,
}

impl WorkTree {
    /// Takes a snapshot of the work tree that contains this directory. `None` if there is none or git fails.
    pub(crate) async fn of(directory: &Path) -> Option<Self> {
        let status = git(
            directory,
            &[
                "status",
                "--porcelain=v1",
                "-z",
                "--untracked-files=all",
                "--no-renames",
                ".",
            ],
        )
        .await?;
        let root = git(directory, &["rev-parse", "--show-toplevel"]).await?;
        let root = PathBuf::from(root.trim_end_matches('\n'));
        let commit = git(directory, &["rev-parse", "--verify", "--quiet", "HEAD"]).await;
        let entries = status.split('\0').filter_map(|entry| {
            let (mark, path) = entry.split_at_checked(3)?;
            let metadata = root.join(path).metadata().ok();
            let state = State {
                change: change_of(mark),
                size: metadata.as_ref().map(std::fs::Metadata::len),
                modified: metadata.and_then(|it| it.modified().ok()),
            };
            Some((path.to_owned(), state))
        });
        Some(Self {
            directory: directory.to_owned(),
            commit: commit.map(|commit| commit.trim().to_owned()),
            files: entries.collect(),
        })
    }

    /// Returns the changes since the snapshot, with paths relative to the work tree.
    pub(crate) async fn changes(self) -> Vec<FileChange> {
        let Some(now) = Self::of(&self.directory).await else {
            return Vec::new();
        };
        let mut changes = BTreeMap::new();
        if let (Some(before), Some(after)) = (&self.commit, &now.commit)
            && before != after
        {
            // The program made commits.
            let range = ["diff", "--name-status", "--no-renames", "-z", before, after];
            let diff = git(&self.directory, &range).await.unwrap_or_default();
            let mut fields = diff.split('\0');
            while let (Some(mark), Some(path)) = (fields.next(), fields.next()) {
                changes.insert(path.to_owned(), change_of(mark));
            }
        }
        for (path, state) in &now.files {
            if self.files.get(path) != Some(state) {
                changes.insert(path.clone(), state.change);
            }
        }
        for (path, state) in &self.files {
            // Files that were new and were deleted, or that were restored.
            if !now.files.contains_key(path) && !changes.contains_key(path) {
                let change = match state.change {
                    ChangeKind::Add => ChangeKind::Delete,
                    _ => ChangeKind::Update,
                };
                changes.insert(path.clone(), change);
            }
        }
        let changes = changes.into_iter();
        changes
            .map(|(path, change)| FileChange::new(path, change))
            .collect()
    }
}

/// Maps git's status letters.
fn change_of(mark: &str) -> ChangeKind {
    if mark.contains(['A', '?']) {
        ChangeKind::Add
    } else if mark.contains('D') {
        ChangeKind::Delete
    } else {
        ChangeKind::Update
    }
}

/// Returns the output of git; `None` if it fails.
async fn git(directory: &Path, args: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // The work tree is that of the directory, also if a hook has bound this process to another repository.
    for name in LOCAL_GIT_VARIABLES {
        command.env_remove(name);
    }
    command
        .args(["-c", "core.fsmonitor=false", "-c", "core.quotePath=false"])
        .args(args)
        .current_dir(directory)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(LIMIT, command.output())
        .await
        .ok()?
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
