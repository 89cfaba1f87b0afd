//! The end of a run in a worktree, for tests.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use teamster_api::{DiffQuery, WorkspaceDiff};
use teamster_core::WorkspaceResult;
use teamster_workspace::{Finished, Kept, NewWorktree, Worktree};
use tempfile::TempDir;

use super::repository::{Repository, git};

/// A worktree of a run `r`, and the user's repository.
pub(crate) struct Run {
    pub(crate) repository: Repository,
    pub(crate) root: TempDir,
    pub(crate) worktree: Worktree,
}

impl Run {
    pub(crate) fn new() -> Self {
        Self::in_repository(Repository::new())
    }

    pub(crate) fn in_repository(repository: Repository) -> Self {
        let root = tempfile::tempdir().unwrap();
        let worktree = worktree(&root, &repository, "r");
        Self {
            repository,
            root,
            worktree,
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.worktree.directory().to_owned()
    }

    pub(crate) fn git<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> String {
        git(&self.path(), args)
    }

    pub(crate) fn write(&self, name: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn commit(&self, message: &str) -> String {
        self.git(["add", "--all"]);
        self.git(["commit", "--quiet", "-m", message]);
        self.git(["rev-parse", "HEAD"])
    }

    pub(crate) fn end(self) -> Ended {
        let Finished { result, report, .. } = self.worktree.finish();
        Ended {
            repository: self.repository,
            root: self.root,
            result,
            report,
        }
    }
}

pub(crate) fn worktrees(root: &TempDir) -> PathBuf {
    root.path().join("worktrees")
}

/// A worktree in which an agent was started.
pub(crate) fn worktree(root: &TempDir, repository: &Repository, id: &str) -> Worktree {
    let new = NewWorktree::of(repository.path());
    let mut made = Worktree::create(&worktrees(root), id, &new).unwrap();
    made.start().unwrap();
    made
}

/// The end of such a run.
pub(crate) struct Ended {
    pub(crate) repository: Repository,
    pub(crate) root: TempDir,
    pub(crate) result: WorkspaceResult,
    pub(crate) report: String,
}

impl Ended {
    pub(crate) fn kept(&self) -> Kept {
        Kept::find(&worktrees(&self.root), "r").unwrap().unwrap()
    }

    pub(crate) fn diff(&self) -> WorkspaceDiff {
        self.kept().diff(&DiffQuery::default()).unwrap()
    }

    /// Commits, changed files, added and deleted lines.
    pub(crate) fn figures(&self) -> [Option<u64>; 4] {
        let it = &self.result;
        [it.commits, it.files_changed, it.insertions, it.deletions]
    }

    /// Returns the files of a commit, with modes and ids.
    pub(crate) fn tree(&self, commit: &str) -> String {
        let output = std::process::Command::new("git")
            .args(["ls-tree", "-r", "-z", commit])
            .current_dir(self.repository.path())
            .output();
        String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
    }
}
