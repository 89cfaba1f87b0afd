//! Which files of a git work tree have changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use teamster_core::{ChangeKind, FileChange};
use tokio::process::Command;

/// How long git may take. A work tree for which that is not enough is not looked at.
const LIMIT: Duration = Duration::from_secs(30);

/// A work tree at one time: what differs from its last commit, and which that is.
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
    /// The work tree of this directory, if it is in one and git is there.
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

    /// Changes since the snapshot, by path in the work tree.
    pub(crate) async fn changes(self) -> Vec<FileChange> {
        let Some(now) = Self::of(&self.directory).await else {
            return Vec::new();
        };
        let mut changes = BTreeMap::new();
        if let (Some(before), Some(after)) = (&self.commit, &now.commit)
            && before != after
        {
            // The program has committed what it did.
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
            // What was new and is gone, or was put back.
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

/// Maps git's status letter.
fn change_of(mark: &str) -> ChangeKind {
    if mark.contains(['A', '?']) {
        ChangeKind::Add
    } else if mark.contains('D') {
        ChangeKind::Delete
    } else {
        ChangeKind::Update
    }
}

/// Output of git; `None` if it fails.
async fn git(directory: &Path, args: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
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
