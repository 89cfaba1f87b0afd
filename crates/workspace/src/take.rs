//! Takes what a run brings back into a repository of the user: its changes into the files, or its commits as a branch.

mod change;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use anyhow::bail;
use teamster_core::text::{one_line, printable};

use crate::bundle::{self, reference};
use crate::git::{self, git, git_path, git_path_at};
use crate::large::{self, Store};
use crate::local;
use crate::step::before_change;
use change::{Change, recover};

/// The command of git that applies a patch. Whitespace is that of the patch, not that of the settings.
const APPLY: [&str; 5] = [
    "-c",
    "apply.whitespace=nowarn",
    "-c",
    "apply.ignoreWhitespace=no",
    "apply",
];

/// The worktree of a user that takes changes.
#[derive(Debug)]
pub struct Target {
    top: PathBuf,
    warnings: Vec<String>,
}

/// The reason for which nothing was taken.
#[derive(Debug)]
#[non_exhaustive]
pub enum TakeError {
    /// The changes do not fit these files. Nothing was changed.
    Conflicts(Vec<String>),
    /// The repository does not have the commit at which the run began.
    MissingBase(String),
    /// There is a branch with this name that has other commits.
    OtherCommits(String),
    /// The branch with this name is checked out in this folder.
    CheckedOut(String, PathBuf),
    /// Something else changes files there, or a killed process has left something that needs the user, who reads this.
    Busy(String),
    /// Git failed, or a file cannot be written. Nothing was changed.
    Git(anyhow::Error),
    /// A file cannot be written, and those before it could not all be restored. The error names where they are.
    NotRestored(anyhow::Error),
}

impl From<anyhow::Error> for TakeError {
    fn from(error: anyhow::Error) -> Self {
        Self::Git(error)
    }
}

impl From<io::Error> for TakeError {
    fn from(error: io::Error) -> Self {
        Self::Git(error.into())
    }
}

/// Commits that a run brings back.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Incoming<'a> {
    /// Id of the run.
    pub id: &'a str,
    /// The commit at which it began.
    pub base: &'a str,
    /// Its last commit.
    pub head: &'a str,
    /// The commit of what it did not commit.
    pub wip: Option<&'a str>,
}

impl<'a> Incoming<'a> {
    /// Creates the commits of a run that left nothing uncommitted.
    pub fn new(id: &'a str, base: &'a str, head: &'a str) -> Self {
        Self {
            id,
            base,
            head,
            wip: None,
        }
    }
}

impl Target {
    /// Finds the worktree that contains this directory. If a process was killed there while it applied changes, its files are
    /// restored; a [warning](Self::take_warnings) reports that, or what to do if they were changed since.
    ///
    /// # Errors
    ///
    /// Fails if git is not installed, or without a worktree.
    pub fn find(directory: &Path) -> anyhow::Result<Self> {
        match git_path_at(directory, ["rev-parse", "--show-toplevel"]) {
            Ok(top) if !top.as_os_str().is_empty() => {
                let mut target = Self {
                    top,
                    warnings: Vec::new(),
                };
                let recovered = target.git_dir().and_then(|it| recover(&target.top, &it));
                let warning = recovered.unwrap_or_else(|error| Some(format!("{error:#}")));
                target.warnings.extend(warning);
                Ok(target)
            }
            _ => {
                git::check()?;
                let shown = printable(&directory.to_string_lossy());
                bail!("{shown} is not in a git worktree")
            }
        }
    }

    /// Returns the root of the worktree.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// Applies a patch to the files: all of it, or nothing. Returns the number of changed files.
    ///
    /// # Errors
    ///
    /// [`TakeError::Conflicts`] with the files that it does not fit. [`TakeError::Git`] if files cannot be written: those
    /// that were changed are as before.
    pub fn apply(&self, patch: &Path) -> Result<usize, TakeError> {
        self.apply_patch(patch, false)
    }

    /// Applies a patch to the files and to the index, as [`apply`](Self::apply) does to the files.
    ///
    /// # Errors
    ///
    /// As [`apply`](Self::apply).
    pub fn apply_with_index(&self, patch: &Path) -> Result<usize, TakeError> {
        self.apply_patch(patch, true)
    }

    fn apply_patch(&self, patch: &Path, index: bool) -> Result<usize, TakeError> {
        if fs::metadata(patch)?.len() == 0 {
            return Ok(0);
        }
        let files = self.files_of(patch)?;
        let git_dir = self.git_dir()?;
        let index_path = index.then(|| self.index()).transpose()?;
        let mut change = Change::new(&self.top, &git_dir, index_path)?;
        let mut check = change.command();
        check.args(APPLY).args(index.then_some("--index"));
        let checked = local::output(check.arg("--check").arg(patch), None)?;
        if !checked.status.success() {
            return Err(conflicts(&String::from_utf8_lossy(&checked.stderr)));
        }
        change.prepare(&git_dir, &files, patch, &APPLY)?;
        change.carry_out()?;
        if index {
            // Without it, the next git command reads these files.
            let _ = self.run(&["update-index", "-q", "--refresh"]);
        }
        Ok(files.len())
    }

    /// Takes the warnings until now.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Makes a branch of a run's commits, or moves it forward, from a bundle; without one, all commits are here already.
    /// What was not committed becomes the ref `refs/teamster/RUN/wip`, whose name is returned.
    ///
    /// # Errors
    ///
    /// Fails if the bundle is damaged, if its base is missing, or if the branch is checked out or has other commits.
    /// Nothing was changed then.
    pub fn fetch(
        &self,
        bundle: Option<&Path>,
        incoming: Incoming<'_>,
        branch: &str,
    ) -> Result<Option<String>, TakeError> {
        let Incoming {
            id,
            base,
            head,
            wip,
        } = incoming;
        let full = format!("refs/heads/{branch}");
        if branch.starts_with('-') || self.git(["check-ref-format", &full]).is_err() {
            let branch = one_line(branch);
            return Err(anyhow::anyhow!("\"{branch}\" is not a valid branch name").into());
        }
        let needed = match bundle {
            Some(bundle) => bundle::prerequisites(bundle)?,
            None => vec![base.to_owned()],
        };
        if let Some(missing) = needed.into_iter().find(|commit| !self.has(commit)) {
            return Err(TakeError::MissingBase(missing));
        }
        let old = self.git(["rev-parse", "--verify", "--quiet", &full]).ok();
        if old.as_deref() != Some(head)
            && let Some(folder) = git::checked_out(&self.top, &full)?
        {
            return Err(TakeError::CheckedOut(branch.to_owned(), folder));
        }
        let incoming = Refs::new(self, id);
        if let Some(bundle) = bundle {
            let folder = tempfile::tempdir()?;
            incoming.fetch(&self.take_out(bundle, folder.path())?)?;
        }
        for commit in [Some(head), wip].into_iter().flatten() {
            if !self.has(commit) {
                return Err(anyhow::anyhow!("the commit {commit} of the run did not come").into());
            }
        }
        if let Some(old) = &old
            && self
                .git(["merge-base", "--is-ancestor", old, head])
                .is_err()
        {
            return Err(TakeError::OtherCommits(branch.to_owned()));
        }
        let old = old.unwrap_or_else(|| "0".repeat(head.len()));
        let message = "teamster: fetched from a run";
        before_change();
        self.run(&["update-ref", "-m", message, &full, head, &old])?;
        let kept = wip.map(|wip| -> anyhow::Result<_> {
            let name = reference(id, "wip");
            before_change();
            self.run(&["update-ref", "-m", message, &name, wip])?;
            Ok(name)
        });
        Ok(kept.transpose()?)
    }

    /// Returns whether a patch names large files (Git LFS) whose content is not here. The bundle of the run has what its
    /// machine has of it: [`take_large_files`](Self::take_large_files).
    ///
    /// # Errors
    ///
    /// Fails if the patch cannot be read, or git fails.
    pub fn lacks_large_files(&self, patch: &Path) -> anyhow::Result<bool> {
        let oids = large::named_by_patch(&fs::read(patch)?);
        if oids.is_empty() {
            return Ok(false);
        }
        let store = Store::of(&self.top)?;
        Ok(oids.iter().any(|oid| !store.has(oid)))
    }

    /// Takes the content of large files in the bundle of a run, to where git-lfs looks for it.
    ///
    /// # Errors
    ///
    /// Fails if the bundle is damaged, if its base is missing, or if the disk is full.
    pub fn take_large_files(&self, bundle: &Path) -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        self.take_out(bundle, folder.path()).map(drop)
    }

    fn take_out(&self, bundle: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
        let store = Store::of(&self.top)?;
        Ok(large::take_out(bundle, folder, &self.top, &store)?.rest)
    }

    /// Returns the files that a patch changes, before and after a rename.
    fn files_of(&self, patch: &Path) -> Result<BTreeSet<PathBuf>, TakeError> {
        let mut files = BTreeSet::new();
        for reverse in [&[][..], &["--reverse"]] {
            let mut command = git::command(&self.top);
            git::without_side_effects(&mut command);
            command.args(APPLY).args(reverse);
            command.args(["--numstat", "-z"]).arg(patch);
            let printed = git::run_bytes(&mut command)?;
            for entry in printed.split(|byte| *byte == 0) {
                let path = entry.splitn(3, |byte| *byte == b'\t').nth(2);
                files.extend(path.map(|path| PathBuf::from(OsString::from_vec(path.to_owned()))));
            }
        }
        Ok(files)
    }

    fn has(&self, commit: &str) -> bool {
        let commit = format!("{commit}^{{commit}}");
        self.git(["cat-file", "-e", &commit]).is_ok()
    }

    fn git_dir(&self) -> anyhow::Result<PathBuf> {
        git_path(&self.top, ["rev-parse", "--absolute-git-dir"])
    }

    fn index(&self) -> anyhow::Result<PathBuf> {
        let index = git_path(&self.top, ["rev-parse", "--git-path", "index"])?;
        Ok(self.top.join(index))
    }

    fn git<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> anyhow::Result<String> {
        git(&self.top, args)
    }

    /// Runs a git command that changes the repository.
    fn run(&self, args: &[&str]) -> anyhow::Result<String> {
        let mut command = git::command(&self.top);
        git::without_side_effects(&mut command);
        git::run(command.args(args))
    }
}

/// Refs of a bundle, by which its commits are kept until the user's refs have them. Dropped, they are removed again, with
/// those of this run that a killed process has left.
struct Refs<'a> {
    target: &'a Target,
    /// Those of the run in the bundle.
    bundled: String,
    /// The folder of the refs while they are taken.
    incoming: String,
}

impl<'a> Refs<'a> {
    fn new(target: &'a Target, id: &str) -> Self {
        let bundled = reference(id, "");
        Self {
            target,
            incoming: bundled.replacen("refs/teamster/", "refs/teamster-fetch/", 1),
            bundled,
        }
    }

    fn fetch(&self, bundle: &Path) -> anyhow::Result<()> {
        let mut command = git::command(&self.target.top);
        git::without_side_effects(&mut command);
        let refs = format!("+{}*:{}*", self.bundled, self.incoming);
        command
            .args(["-c", "transfer.fsckObjects=true", "fetch", "--quiet"])
            .args([
                "--no-tags",
                "--no-write-fetch-head",
                "--no-recurse-submodules",
            ])
            .arg(bundle)
            .arg(refs);
        before_change();
        git::run(&mut command).map(drop)
    }
}

impl Drop for Refs<'_> {
    fn drop(&mut self) {
        let listed = self
            .target
            .git(["for-each-ref", "--format=%(refname)", &self.incoming]);
        for name in listed.unwrap_or_default().lines() {
            before_change();
            // Left, it does no harm, and the next one removes it.
            let _ = self.target.run(&["update-ref", "-d", name]);
        }
    }
}

/// Reads which files a patch does not fit from the messages of git.
fn conflicts(messages: &str) -> TakeError {
    let mut errors: Vec<String> = Vec::new();
    for line in messages.lines() {
        if let Some(message) = line.strip_prefix("error: ") {
            errors.push(message.to_owned());
        } else if let Some(last) = errors.last_mut()
            && !["warning: ", "hint: "]
                .iter()
                .any(|it| line.starts_with(it))
        {
            // The name of a file has a line end.
            last.push('\n');
            last.push_str(line);
        }
    }
    // What follows it names the file again, with the reason.
    errors.retain(|message| !message.starts_with("patch failed: "));
    let files: BTreeSet<_> = errors.iter().map(|message| one_line(message)).collect();
    if files.is_empty() {
        return TakeError::Git(anyhow::anyhow!("git: {}", one_line(messages.trim())));
    }
    TakeError::Conflicts(files.into_iter().collect())
}
