//! Takes what a run brings back into a repository of the user: its changes into the files, or its commits as a branch.

mod backup;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use teamster_core::text::{one_line, printable};

use crate::bundle::reference;
use crate::git::{self, git, git_path, git_path_at};
use backup::Backup;

/// The worktree of a user that takes changes.
#[derive(Debug)]
pub struct Target {
    top: PathBuf,
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
    /// Git failed. Nothing was changed.
    Git(anyhow::Error),
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
    /// Finds the worktree that contains this directory.
    ///
    /// # Errors
    ///
    /// Fails if git is not installed, or without a worktree.
    pub fn find(directory: &Path) -> anyhow::Result<Self> {
        match git_path_at(directory, ["rev-parse", "--show-toplevel"]) {
            Ok(top) if !top.as_os_str().is_empty() => Ok(Self { top }),
            _ => {
                git::check()?;
                let shown = printable(&directory.to_string_lossy());
                bail!("{shown} is not in a git worktree")
            }
        }
    }

    /// Applies a patch to the files, with `index` also to the index: all of it, or nothing. Returns the number of changed
    /// files.
    ///
    /// # Errors
    ///
    /// [`TakeError::Conflicts`] with the files that it does not fit. [`TakeError::Git`] if files cannot be written: those
    /// that were changed are as before.
    pub fn apply(&self, patch: &Path, index: bool) -> Result<usize, TakeError> {
        if fs::metadata(patch)?.len() == 0 {
            return Ok(0);
        }
        let files = self.files_of(patch)?;
        let mut check = self.apply_command(index);
        let checked = check.arg("--check").arg(patch).output();
        let checked = checked.context("cannot run git")?;
        if !checked.status.success() {
            return Err(conflicts(&String::from_utf8_lossy(&checked.stderr)));
        }
        let git_dir = self.git_dir()?;
        let mut before = Backup::new(&self.top, &git_dir)?;
        for file in &files {
            before.keep(file)?;
        }
        if index {
            before.keep_copy(&self.index()?)?;
        }
        if let Err(error) = git::run(self.apply_command(index).arg(patch)) {
            // Such as a full disk.
            before.restore().with_context(|| {
                format!("{error:#}; and the files before it could not all be restored")
            })?;
            return Err(error.into());
        }
        Ok(files.len())
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
            Some(bundle) => prerequisites(bundle)?,
            None => vec![base.to_owned()],
        };
        if let Some(missing) = needed.into_iter().find(|commit| !self.has(commit)) {
            return Err(TakeError::MissingBase(missing));
        }
        let old = self.git(["rev-parse", "--verify", "--quiet", &full]).ok();
        if old.as_deref() != Some(head)
            && let Some(folder) = self.checked_out(&full)?
        {
            return Err(TakeError::CheckedOut(branch.to_owned(), folder));
        }
        let new = Refs::new(self, id);
        if let Some(bundle) = bundle {
            new.fetch(bundle)?;
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
        self.run(&["update-ref", "-m", message, &full, head, &old])?;
        let kept = wip.map(|wip| -> anyhow::Result<_> {
            let name = reference(id, "wip");
            self.run(&["update-ref", "-m", message, &name, wip])?;
            Ok(name)
        });
        new.keep();
        Ok(kept.transpose()?)
    }

    /// Returns the files that a patch changes, before and after a rename.
    fn files_of(&self, patch: &Path) -> Result<BTreeSet<PathBuf>, TakeError> {
        let mut files = BTreeSet::new();
        for reverse in [&[][..], &["--reverse"]] {
            let mut command = self.apply_command(false);
            command.args(reverse).args(["--numstat", "-z"]).arg(patch);
            let printed = git::run_bytes(&mut command)?;
            for entry in printed.split(|byte| *byte == 0) {
                let path = entry.splitn(3, |byte| *byte == b'\t').nth(2);
                files.extend(path.map(|path| PathBuf::from(OsString::from_vec(path.to_owned()))));
            }
        }
        Ok(files)
    }

    fn apply_command(&self, index: bool) -> Command {
        let mut command = git::command(&self.top);
        git::without_side_effects(&mut command);
        // Whitespace is that of the patch, not that of the settings.
        command.args([
            "-c",
            "apply.whitespace=nowarn",
            "-c",
            "apply.ignoreWhitespace=no",
            "apply",
        ]);
        if index {
            command.arg("--index");
        }
        command
    }

    /// Returns the folder of the worktree in which a branch is checked out.
    fn checked_out(&self, full: &str) -> anyhow::Result<Option<PathBuf>> {
        let listed = self.git(["worktree", "list", "--porcelain"])?;
        let mut folder = None;
        for line in listed.lines() {
            if let Some(path) = line.strip_prefix("worktree ") {
                folder = Some(PathBuf::from(path));
            } else if line.strip_prefix("branch ") == Some(full) {
                return Ok(folder);
            }
        }
        Ok(None)
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

/// Returns the commits that a bundle is based on, which its header has.
fn prerequisites(bundle: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for line in BufReader::new(File::open(bundle)?).split(b'\n') {
        let line = line?;
        // The pack follows an empty line.
        if line.is_empty() {
            break;
        }
        let commit = line
            .strip_prefix(b"-")
            .and_then(|line| line.split(|it| *it == b' ').next());
        found.extend(commit.map(|commit| String::from_utf8_lossy(commit).into_owned()));
    }
    Ok(found)
}

/// Refs of a run that came with a bundle. Dropped, those that were not here before are removed again.
struct Refs<'a> {
    target: &'a Target,
    id: &'a str,
    known: Vec<String>,
    is_kept: bool,
}

impl<'a> Refs<'a> {
    fn new(target: &'a Target, id: &'a str) -> Self {
        let mut this = Self {
            target,
            id,
            known: Vec::new(),
            is_kept: false,
        };
        this.known = this.list();
        this
    }

    fn list(&self) -> Vec<String> {
        let prefix = reference(self.id, "");
        let listed = self
            .target
            .git(["for-each-ref", "--format=%(refname)", &prefix]);
        listed
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    fn fetch(&self, bundle: &Path) -> anyhow::Result<()> {
        let mut command = git::command(&self.target.top);
        git::without_side_effects(&mut command);
        // Refs of the run's own may be replaced.
        let refs = format!("+{0}*:{0}*", reference(self.id, ""));
        command
            .args(["-c", "transfer.fsckObjects=true", "fetch", "--quiet"])
            .args([
                "--no-tags",
                "--no-write-fetch-head",
                "--no-recurse-submodules",
            ])
            .arg(bundle)
            .arg(refs);
        git::run(&mut command).map(drop)
    }

    /// Keeps what was not committed; the branch has the rest.
    fn keep(mut self) {
        self.is_kept = true;
        self.remove(&reference(self.id, "head"));
    }

    fn remove(&self, name: &str) {
        if self.known.iter().all(|known| known != name) {
            // It was not here before; left, it does no harm.
            let _ = self.target.run(&["update-ref", "-d", name]);
        }
    }
}

impl Drop for Refs<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            for name in self.list() {
                self.remove(&name);
            }
        }
    }
}

/// Reads which files a patch does not fit from the messages of git.
fn conflicts(messages: &str) -> TakeError {
    let mut files = BTreeSet::new();
    for line in messages.lines() {
        let Some(message) = line.strip_prefix("error: ") else {
            continue;
        };
        // What follows it names the file again, with the reason.
        if !message.starts_with("patch failed: ") {
            files.insert(one_line(message));
        }
    }
    if files.is_empty() {
        return TakeError::Git(anyhow::anyhow!("git: {}", one_line(messages.trim())));
    }
    TakeError::Conflicts(files.into_iter().collect())
}
