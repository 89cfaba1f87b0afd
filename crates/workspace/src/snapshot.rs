//! All files of a worktree as a commit.
//!
//! It is made with an index of its own, which begins as a copy: the worktree's files, index and stash stay as they are.
//! No hook runs, and nothing is signed.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use teamster_core::text::{one_line, printable};

use crate::git::{self, git, git_path};
use crate::local;
use crate::step::before_change;
use crate::submodules;
use crate::worktree::lfs;

/// A snapshot in the making.
#[derive(Debug)]
pub(crate) struct Snapshot<'a> {
    /// Root of the worktree.
    top: &'a Path,
    index: PathBuf,
    /// The folder that gets new objects. Default: that of the repository.
    objects: Option<PathBuf>,
    large_files: LargeFiles,
}

/// Form of Git LFS files in a snapshot.
#[derive(Debug)]
enum LargeFiles {
    /// As the settings of the repository have it.
    AsSet,
    /// With their content.
    AsTheyAre,
    /// As pointers, with their content in this folder.
    In(PathBuf),
}

/// The files of a snapshot.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Id of the tree.
    pub(crate) id: String,
    /// Files that could not be taken over, each with the reason.
    pub(crate) left_out: Vec<String>,
}

impl<'a> Snapshot<'a> {
    /// Begins a snapshot of the worktree with this root. `index` is a file that does not exist yet, and is removed with
    /// the snapshot.
    pub(crate) fn new(top: &'a Path, index: PathBuf) -> Self {
        Self {
            top,
            index,
            objects: None,
            large_files: LargeFiles::AsSet,
        }
    }

    /// Takes the content of changed files of Git LFS into a folder of its own. Without git-lfs it is taken rather than a
    /// pointer, which is in none.
    pub(crate) fn large_files_in(mut self, folder: PathBuf) -> Self {
        self.large_files = if lfs::is_installed(self.top) {
            LargeFiles::In(folder)
        } else {
            LargeFiles::AsTheyAre
        };
        self
    }

    /// Puts new objects into a folder of their own, which [has](git::share_objects) those of the repository.
    pub(crate) fn objects_in(mut self, own: PathBuf) -> Self {
        self.objects = Some(own);
        self
    }

    /// Returns the tree of all files that are not ignored. `head` is the commit that they are compared with.
    pub(crate) fn tree(&self, head: &str) -> anyhow::Result<Tree> {
        let left_out = self.add(head)?;
        let id = self.run(["write-tree"])?;
        Ok(Tree { id, left_out })
    }

    /// Adds all files that are not ignored. Returns what could not be added, each with the reason.
    pub(crate) fn add(&self, head: &str) -> anyhow::Result<Vec<String>> {
        let users = git_path(self.top, ["rev-parse", "--git-path", "index"])?;
        before_change();
        match copy(&self.top.join(users), &self.index) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.run(["read-tree", head])?;
            }
            Err(error) => return Err(error).context("cannot copy the index"),
        }
        let mut add = vec!["add", "--all", "--ignore-errors"];
        if git(self.top, ["config", "--type=bool", "core.sparseCheckout"])
            .is_ok_and(|sparse| sparse == "true")
        {
            add.push("--sparse");
        }
        let added = self.run(add);
        let mut left_out = self.without_repositories(head)?;
        if let Err(error) = added {
            // Then any number of files is missing.
            if error.is::<local::Stuck>() {
                return Err(error);
            }
            // Without its index, nothing at all was added.
            let none = git(self.top, ["rev-parse", &format!("{head}^{{tree}}")])?;
            if self.run(["write-tree"])? == none {
                return Err(error);
            }
            left_out.push(one_line(&format!("{error:#}")));
        }
        Ok(left_out)
    }

    /// Returns a new commit of a tree on top of `parent`, of this date unless it is that of now.
    pub(crate) fn commit(
        &self,
        tree: &str,
        parent: &str,
        message: &str,
        date: Option<&str>,
    ) -> anyhow::Result<String> {
        let mut commit = self.command();
        if let Some(date) = date {
            commit
                .env("GIT_AUTHOR_DATE", date)
                .env("GIT_COMMITTER_DATE", date);
        }
        git::as_teamster(&mut commit);
        before_change();
        git::run(commit.args(["commit-tree", tree, "-p", parent, "-m", message]))
    }

    /// Runs a git command with the snapshot's index and objects.
    pub(crate) fn run<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
    ) -> anyhow::Result<String> {
        git::run(self.command().args(args))
    }

    /// Returns the output of a git command with the snapshot's index.
    pub(crate) fn read(&self, args: &[&str]) -> anyhow::Result<Vec<u8>> {
        git::run_bytes(self.command().args(args))
    }

    fn command(&self) -> Command {
        let mut command = git::command(self.top);
        git::without_side_effects(&mut command);
        match &self.large_files {
            LargeFiles::AsSet => _ = command.args(lfs::options(self.top)),
            LargeFiles::AsTheyAre => _ = command.args(lfs::AS_THEY_ARE),
            LargeFiles::In(folder) => lfs::store_in(&mut command, folder),
        }
        command
            .args(["-c", "advice.addEmbeddedRepo=false"])
            .env("GIT_INDEX_FILE", &self.index);
        if let Some(own) = &self.objects {
            command.env("GIT_OBJECT_DIRECTORY", own);
        }
        command
    }

    /// Takes repositories out of the index that are no submodules: git would only note a commit of theirs.
    fn without_repositories(&self, head: &str) -> anyhow::Result<Vec<String>> {
        let mut command = self.command();
        command.args([
            "diff-index",
            "--cached",
            "--raw",
            "-z",
            "--no-renames",
            head,
        ]);
        let changed = git::run_bytes(&mut command)?;
        let submodules = submodules::listed(self.top);
        let mut fields = changed.split(|byte| *byte == 0);
        let mut left_out = Vec::new();
        while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
            let is_submodule =
                |path: &[u8]| submodules.iter().any(|(_, known)| known.as_bytes() == path);
            if about.starts_with(b":000000 160000 ") && !is_submodule(path) {
                let path = OsStr::from_bytes(path);
                let remove = ["update-index", "--force-remove", "--"].map(OsStr::new);
                self.run(remove.into_iter().chain([path]))?;
                let shown = printable(&path.to_string_lossy());
                left_out.push(format!("{shown}, which is a repository of its own"));
            }
        }
        Ok(left_out)
    }
}

/// Copies an index: with the times of files that it has, git need not read them all. By its own time git finds those that may
/// have been changed since, within the granularity of the file system's clock, so it is kept.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let written = fs::metadata(from)?.modified()?;
    fs::copy(from, to)?;
    File::options().write(true).open(to)?.set_modified(written)
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.index);
        // Left by a git that was killed.
        let _ = fs::remove_file(self.index.with_added_extension("lock"));
    }
}
