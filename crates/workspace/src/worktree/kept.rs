//! The worktree of a run, for those who come later: its changes as data, as a patch and as a bundle.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use teamster_api::{DiffQuery, WorkspaceDiff};
use teamster_core::WorkspaceResult;
use teamster_core::text::{one_line, printable};

use super::folder::Kind;
use super::forgotten::remove_branch;
use super::record::{self, Record};
use super::result::{HEAD, WIP, index_file, reference};
use crate::bundle;
use crate::diff::{Limits, Range};
use crate::git::{self, git, git_path};
use crate::network;
use crate::snapshot::{Snapshot, Tree};
use crate::step::before_change;

/// The workspace of a run that is live or has ended.
#[derive(Debug)]
pub struct Kept {
    pub(super) record: Record,
    /// The folder of the record.
    folder: PathBuf,
}

impl Kept {
    /// Finds the workspace of the run with this id, of those in `root`; `None` if it has none, or left nothing in it.
    ///
    /// # Errors
    ///
    /// Fails if the description of the workspace cannot be read.
    pub fn find(root: &Path, id: &str) -> io::Result<Option<Self>> {
        let folder = record::folder(root, id);
        let record = Record::read(&folder)?;
        Ok(record.map(|record| Self { record, folder }))
    }

    /// Returns the worktree's folder, if it still exists.
    pub fn directory(&self) -> Option<&Path> {
        Some(&*self.record.path).filter(|path| path.is_dir())
    }

    /// Returns what the run has left; `None` before its end.
    pub fn result(&self) -> Option<&WorkspaceResult> {
        self.record.result.as_ref()
    }

    /// Returns whether the run has left changes.
    pub fn has_changes(&self) -> bool {
        (self.record.result.as_ref()).is_some_and(WorkspaceResult::has_changes)
    }

    /// Returns whether there are new commits: of the agent, or of what it has not committed.
    pub fn has_commits(&self) -> bool {
        let Some(result) = &self.record.result else {
            return false;
        };
        result.wip.is_some() || result.commits.is_some_and(|count| count > 0)
    }

    /// Returns the changes: so far before the end of the run, then those that it has left.
    ///
    /// # Errors
    ///
    /// Fails if git does, or if the repository is gone.
    pub fn diff(&self, query: &DiffQuery) -> anyhow::Result<WorkspaceDiff> {
        if let Some(end) = self.end() {
            return self.range(end)?.diff(query, Limits::default());
        }
        // New objects are in a folder of their own: the user's repository is only read.
        let objects = tempfile::Builder::new()
            .prefix("objects-")
            .tempdir_in(&self.folder)?;
        let tree = self.now(objects.path())?.id;
        let mut range = self.range(&tree)?;
        range.objects = Some(objects.path());
        range.diff(query, Limits::default())
    }

    /// Returns where the worktree was made from: the user's worktree, or a repository without files.
    pub fn made_from(&self) -> &Path {
        &self.record.repository
    }

    /// Returns whether the repository is one of the machine's own, in `mirrors`.
    pub fn is_of_mirror(&self, mirrors: &Path) -> bool {
        let mirrors = mirrors.canonicalize().ok();
        mirrors.is_some() && self.record.repository.parent() == mirrors.as_deref()
    }

    /// Writes the changes that the run has left as a patch which `git apply` takes.
    ///
    /// # Errors
    ///
    /// Fails if git does, if the repository is gone, or if the file cannot be written.
    pub fn write_patch(&self, to: &Path) -> anyhow::Result<()> {
        let end = self.end().context("the run has not ended")?;
        let file = git::run_to_file(&mut self.range(end)?.patch(), to)?;
        (file.sync_all()).with_context(|| format!("cannot write {}", to.display()))
    }

    /// Writes a git bundle of what the run has left: the refs `refs/teamster/RUN/head` and `refs/teamster/RUN/wip`, without
    /// the history before the run, and the content of files of Git LFS that they name and this machine has. Returns `false`
    /// if there is neither.
    ///
    /// # Errors
    ///
    /// Fails if git does, if the repository is gone, or if the file cannot be written.
    pub fn write_bundle(&self, to: &Path) -> anyhow::Result<bool> {
        let repository = self.repository()?;
        let refs = [HEAD, WIP].map(|name| reference(&self.folder, name));
        let exists =
            |name: &&String| git(repository, ["rev-parse", "--verify", "--quiet", name]).is_ok();
        let refs: Vec<_> = refs.iter().filter(exists).map(|it| &**it).collect();
        if refs.is_empty() {
            return Ok(false);
        }
        let known = self.record.known.as_ref().unwrap_or(&self.record.base);
        let large = bundle::large_files(repository, &refs, known)?;
        if large.is_empty() {
            bundle::write(repository, to, &refs, [known])?;
        } else {
            let scratch = tempfile::tempdir_in(&self.folder)?;
            bundle::write_with(repository, scratch.path(), to, (&refs, known), &large)?;
        }
        Ok(true)
    }

    /// Pushes the commits of the run to a branch of a remote, without force: that of the run unless `branch` is given.
    /// Returns remote and branch. git asks for nothing, and is ended with its children if it prints nothing for the time
    /// `silence`.
    ///
    /// # Errors
    ///
    /// Fails without such a remote; with git's message, such as if the branch there has other commits; or if git hangs.
    /// Nothing here depends on it.
    pub fn push(
        &mut self,
        remote: &str,
        branch: Option<&str>,
        silence: Duration,
    ) -> anyhow::Result<String> {
        let branch = branch.unwrap_or(&self.record.branch).to_owned();
        let repository = self.repository()?.to_owned();
        let full = format!("refs/heads/{branch}");
        if git(&repository, ["check-ref-format", &full]).is_err() {
            bail!("\"{}\" is not a valid branch name", one_line(&branch));
        }
        // git would take another text for a path or a URL, which has its own hooks and is reached by other programs.
        if git(&repository, ["remote"])?.lines().all(|it| it != remote) {
            bail!(
                "the repository has no remote \"{}\": `git remote` lists them",
                one_line(remote)
            );
        }
        let mut command = network::command(&repository);
        command
            .args([
                "push",
                "--progress",
                "--no-follow-tags",
                "--recurse-submodules=no",
                "--",
            ])
            .arg(remote)
            .arg(format!("{}:{full}", reference(&self.folder, HEAD)));
        before_change();
        network::run(&mut command, silence)?;
        let target = format!("{remote}:{branch}");
        if let Some(result) = &mut self.record.result {
            result.pushed = Some(target.clone());
        }
        self.record.write(&self.folder)?;
        Ok(target)
    }

    /// Removes the refs of the run and its record. In a mirror in `mirrors`, the branch goes too, unless a worktree is on it;
    /// [`remove_forgotten`](crate::remove_forgotten) removes the worktrees. In a repository of the user, both stay.
    ///
    /// # Errors
    ///
    /// Fails if git does. Then nothing is forgotten.
    pub fn forget(self, mirrors: Option<&Path>) -> anyhow::Result<()> {
        // Without the repository, its refs are gone too.
        if let Ok(repository) = self.repository() {
            for name in [HEAD, WIP] {
                let mut command = git::command(repository);
                git::without_side_effects(&mut command);
                git::run(command.args(["update-ref", "-d", &reference(&self.folder, name)]))?;
            }
        }
        let Record {
            repository,
            path,
            branch,
            result,
            ..
        } = &self.record;
        if mirrors.is_some_and(|mirrors| self.is_of_mirror(mirrors)) && !path.exists() {
            let last = result.as_ref().and_then(|it| it.branch.as_ref());
            for branch in [Some(branch), last].into_iter().flatten() {
                remove_branch(repository, branch);
            }
        }
        // Last: what is left after a kill is found by it.
        Record::remove(&self.folder);
        Ok(())
    }

    /// Returns the commit with all that the run has left.
    pub(super) fn end(&self) -> Option<&str> {
        let result = self.record.result.as_ref()?;
        result.wip.as_deref().or(result.head.as_deref())
    }

    /// Returns the tree of all files now, whose new objects are in this folder.
    pub(super) fn now(&self, objects: &Path) -> anyhow::Result<Tree> {
        self.repository()?;
        let path = self.directory().ok_or_else(|| {
            anyhow!("the worktree was deleted before the end of the run, so its changes are gone")
        })?;
        let head = git(path, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
        let head = head.unwrap_or_else(|_| self.record.base.clone());
        let all = git_path(path, ["rev-parse", "--git-path", "objects"])?;
        git::share_objects(&path.join(all), objects)?;
        let snapshot = Snapshot::new(path, index_file(&self.folder)).objects_in(objects.to_owned());
        snapshot.tree(&head)
    }

    fn range<'a>(&'a self, end: &'a str) -> anyhow::Result<Range<'a>> {
        Ok(Range {
            repository: self.repository()?,
            base: &self.record.base,
            head: end,
            objects: None,
        })
    }

    /// Returns the repository of the worktree.
    ///
    /// # Errors
    ///
    /// Fails if it is gone, or if there was none.
    pub fn repository(&self) -> anyhow::Result<&Path> {
        if self.record.kind == Kind::Empty {
            bail!("its workspace is an empty directory, which has no repository");
        }
        let repository = if self.record.path.exists() {
            &self.record.path
        } else {
            &self.record.repository
        };
        if !repository.exists() {
            let shown = printable(&repository.to_string_lossy());
            bail!("the repository of the run is gone: {shown}");
        }
        Ok(repository)
    }
}
