//! Discarding what a run has left: its worktree, its branch and its refs.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use teamster_core::WorkspaceResult;
use teamster_core::text::printable;

use super::folder::{self, Kind, read_info};
use super::{Kept, lfs};
use crate::git::{self, git};
use crate::step::before_change;
use crate::submodules;

/// The reason for which nothing was discarded.
#[derive(Debug)]
#[non_exhaustive]
pub enum DiscardError {
    /// A run works in the worktree.
    InUse,
    /// The worktree belongs to a session key.
    OfKey,
    /// The worktree has other commits or files than at the end of the run, or what it had then is not known.
    Changed(PathBuf),
    /// The workspace is this directory, without a repository.
    Directory(PathBuf),
    /// Git failed, or a file could not be read.
    Git(anyhow::Error),
}

impl From<anyhow::Error> for DiscardError {
    fn from(error: anyhow::Error) -> Self {
        Self::Git(error)
    }
}

impl Kept {
    /// Discards what the run has left: the worktree in a folder of `root`, the run's branch unless it has other commits or is
    /// checked out elsewhere, and the refs of its commits. In a mirror in `mirrors`, the branch goes in any case. Returns the
    /// branch that was deleted.
    ///
    /// Repeating it after a crash completes it.
    ///
    /// # Errors
    ///
    /// Fails if the run has not ended, or if the worktree was changed since, or is in use. Nothing was discarded then.
    pub fn discard(
        self,
        root: &Path,
        mirrors: Option<&Path>,
    ) -> Result<Option<String>, DiscardError> {
        let Some(result) = self.result().cloned() else {
            return Err(DiscardError::InUse);
        };
        let path = self.record.path.clone();
        if self.record.kind == Kind::Empty {
            return Err(DiscardError::Directory(path));
        }
        let is_ours = |folder: &&Path| folder.parent() == Some(root);
        match path.parent().filter(is_ours) {
            Some(folder) if folder.is_dir() => self.remove_worktree(folder, &result)?,
            // Git may still know it.
            Some(_) => drop(self.remove_from_git()),
            None => {}
        }
        let repository = self.record.repository.clone();
        let branch = self.record.branch.clone();
        let full = format!("refs/heads/{branch}");
        let exists = || git(&repository, ["rev-parse", "--verify", "--quiet", &full]).ok();
        let at = if repository.exists() { exists() } else { None };
        if let Some(at) = &at {
            self.delete_branch(&full, at, &result)?;
        }
        self.forget(mirrors)?;
        Ok(Some(branch).filter(|_| at.is_some() && exists().is_none()))
    }

    fn remove_from_git(&self) -> anyhow::Result<()> {
        let repository = &self.record.repository;
        let remove = ["worktree", "remove", "--force"].map(OsStr::new);
        let args = lfs::options(repository).iter().map(OsStr::new);
        before_change();
        git(
            repository,
            args.chain(remove).chain([self.record.path.as_os_str()]),
        )
        .map(drop)
    }

    /// Removes the worktree in its folder, which may be gone already.
    fn remove_worktree(&self, folder: &Path, result: &WorkspaceResult) -> Result<(), DiscardError> {
        let path = &self.record.path;
        let shown = || printable(&folder.to_string_lossy());
        let cannot = || format!("cannot read {}", shown());
        let lock = folder::lock(folder).with_context(cannot)?;
        let lock = lock.ok_or(DiscardError::InUse)?;
        let info = read_info(folder).with_context(cannot)?;
        match info {
            Some(info) if info.path != *path => {
                return Err(anyhow!("{} has the worktree of another run", shown()).into());
            }
            Some(info) if info.key.is_some() => return Err(DiscardError::OfKey),
            _ => {}
        }
        if path.exists() {
            if !self.is_as_left(result)? {
                return Err(DiscardError::Changed(path.clone()));
            }
            self.remove_from_git()?;
        } else {
            // A kill between the two steps of git: it may still know the worktree.
            let _ = self.remove_from_git();
        }
        before_change();
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", shown()))?;
        let _ = lock.unlock();
        Ok(())
    }

    /// Returns whether the worktree has the commits and files that the run has left.
    fn is_as_left(&self, result: &WorkspaceResult) -> anyhow::Result<bool> {
        let Some(end) = self.end() else {
            return Ok(false);
        };
        let path = &self.record.path;
        let tree = git(path, ["rev-parse", &format!("{end}^{{tree}}")])?;
        let head = git(path, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).ok();
        // The user's repository is only read.
        let objects = tempfile::tempdir()?;
        let now = self.now(objects.path())?;
        let mut unsaved = submodules::unsaved(path);
        unsaved.extend(now.left_out);
        Ok(head == result.head && now.id == tree && unsaved == result.unsaved)
    }

    /// Deletes the branch that was made for the run and is at this commit, unless that is of others.
    fn delete_branch(&self, full: &str, at: &str, result: &WorkspaceResult) -> anyhow::Result<()> {
        let repository = &self.record.repository;
        let is_of_run = result.head.as_deref() == Some(at) || at == self.record.base;
        if !is_of_run || git::checked_out(repository, full)?.is_some() {
            return Ok(());
        }
        let mut command = git::command(repository);
        git::without_side_effects(&mut command);
        before_change();
        git::run(command.args(["update-ref", "-d", full, at])).map(drop)
    }
}
