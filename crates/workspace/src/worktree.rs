//! A git worktree for a run or session.
//!
//! Each worktree has a folder, named by the run's id. It contains `worktree.json`, the
//! file `lock`, which is locked while the worktree is in use, and the worktree itself, in a folder with the
//! repository's name. The worktree is removed at the end unless it has changes. The next process that creates a
//! worktree cleans up after killed ones.

mod create;
mod folder;
mod include;
mod keyed;
mod lfs;
pub(crate) mod submodules;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use teamster_core::text::{one_line, plural, printable};

use crate::git::git;
pub use create::NewWorktree;
use folder::{Info, Kind, Step, write_info};
use keyed::Keyed;
pub use keyed::WorktreeKey;

/// A worktree in use. Dropping it removes the worktree unless it has changes.
#[derive(Debug)]
pub struct Worktree {
    info: Info,
    folder: PathBuf,
    directory: PathBuf,
    lock: Option<File>,
    keyed: Option<Keyed>,
    warnings: Vec<String>,
}

/// A check of a worktree for changes, without which it is removed at the end.
#[derive(Debug, Clone)]
pub struct Changes(Info);

impl Changes {
    /// Returns `true` if the worktree will be kept.
    pub fn exist(&self) -> bool {
        self.0.key.is_some() || changes(&self.0).is_some()
    }
}

/// The outcome of closing a worktree.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Removed,
    Kept(String),
}

impl Worktree {
    /// Returns the agent's working directory: the same directory of the repository as without a worktree.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns warnings, such as of uncommitted changes that the agent does not see.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Returns a check for changes, for the time at which no process works in the worktree any more.
    pub fn watch(&self) -> Changes {
        Changes(self.info.clone())
    }

    /// Returns the branch, if there is a repository.
    pub fn branch(&self) -> Option<&str> {
        Some(&*self.info.branch).filter(|branch| !branch.is_empty())
    }

    /// Notes that an agent is started in the workspace now.
    ///
    /// # Errors
    ///
    /// Fails if the workspace is not there any more, or if that cannot be written down. No agent may be started then.
    pub fn start(&mut self) -> anyhow::Result<()> {
        let is_whole = match self.info.kind {
            Kind::Empty => self.info.path.is_dir(),
            Kind::Worktree => self.info.path.join(".git").is_file(),
        };
        if !is_whole || !self.directory.is_dir() {
            bail!(
                "{} is not there any more: something has removed it since it was made",
                printable(&self.directory.to_string_lossy())
            );
        }
        self.take_key()?;
        self.info.step = Step::Started;
        self.write_info()
    }

    /// Closes the worktree, which removes it unless it has changes. Returns the report for the user.
    pub fn finish(mut self) -> String {
        let outcome = self.end();
        let path = printable(&self.info.path.to_string_lossy());
        let branch = one_line(&self.info.branch);
        match outcome {
            Outcome::Removed if self.info.kind == Kind::Empty => {
                "empty directory removed".to_owned()
            }
            Outcome::Kept(why) if self.info.kind == Kind::Empty => {
                format!("directory kept: {why}, in {path}")
            }
            Outcome::Removed => {
                format!("worktree without changes removed, with its branch {branch}")
            }
            Outcome::Kept(why) => format!("worktree kept: {why} on branch {branch} in {path}"),
        }
    }

    fn end(&mut self) -> Outcome {
        let Some(lock) = self.lock.take() else {
            return Outcome::Removed;
        };
        let outcome = if self.keyed.is_none() || self.last_of_key(&lock) {
            finish(&self.folder, &mut self.info)
        } else {
            keyed::kept(&self.info)
        };
        // Unlock explicitly: a process that is being spawned may hold the file open for a moment.
        let _ = lock.unlock();
        outcome
    }

    fn write_info(&self) -> anyhow::Result<()> {
        write_info(&self.folder, &self.info)
            .with_context(|| format!("cannot write in {}", self.folder.display()))
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        self.end();
    }
}

/// Removes the worktree if it has no changes. The caller holds the folder's lock.
fn finish(folder: &Path, info: &mut Info) -> Outcome {
    if info.step == Step::Making {
        remove_unfinished(info);
    }
    let belongs_to_key = info.key.is_some() && info.step >= Step::Started;
    if belongs_to_key && info.path.exists() && !keyed::is_unused(folder) {
        return keyed::kept(info);
    }
    if let Some(changes) = changes(info) {
        info.kept = true;
        info.key = None;
        // On an error, the next process checks the worktree again.
        let _ = write_info(folder, info);
        return Outcome::Kept(changes);
    }
    if info.kind == Kind::Empty {
        return match fs::remove_dir_all(folder) {
            Ok(()) => Outcome::Removed,
            Err(error) => Outcome::Kept(format!("it could not be removed ({error})")),
        };
    }
    let path = info.path.as_os_str();
    // Git removes a worktree with submodules only by force. There are no changes, as was just checked.
    let has_submodules = info.path.join(".gitmodules").exists();
    let force = has_submodules.then_some(OsStr::new("--force"));
    let removed = !info.path.exists()
        || git(
            &info.repository,
            (lfs::options(&info.repository).iter().map(OsStr::new))
                .chain(["worktree", "remove"].map(OsStr::new))
                .chain(force)
                .chain([path]),
        )
        .is_ok();
    if !removed {
        // It was just changed, or is locked.
        return Outcome::Kept("it could not be removed".to_owned());
    }
    let _ = git(&info.repository, ["worktree", "prune"]);
    let reference = format!("refs/heads/{}", info.branch);
    // Delete the branch only if it is still at its base.
    let _ = git(
        &info.repository,
        ["update-ref", "-d", &reference, &info.base],
    );
    let _ = fs::remove_dir_all(folder);
    Outcome::Removed
}

/// Removes a worktree that git did not finish. Git may have locked it, and cannot read it.
fn remove_unfinished(info: &Info) {
    if info.kind == Kind::Empty {
        return;
    }
    let path = info.path.as_os_str();
    let parts = ["worktree", "remove", "--force", "--force"].map(OsStr::new);
    // Each may have nothing to do.
    let _ = git(&info.repository, parts.into_iter().chain([path]));
    let unlock = ["worktree", "unlock"].map(OsStr::new);
    let _ = git(&info.repository, unlock.into_iter().chain([path]));
    let _ = fs::remove_dir_all(&info.path);
}

/// Describes the changes in a worktree. A worktree that git cannot read counts as changed.
fn changes(info: &Info) -> Option<String> {
    if !info.path.exists() {
        return None;
    }
    if info.kind == Kind::Empty {
        let has_files = fs::read_dir(&info.path).map_or(true, |mut it| it.next().is_some());
        return has_files.then(|| "it has files".to_owned());
    }
    let range = format!("{}..HEAD", info.base);
    let commits = git(&info.path, ["rev-list", "--count", &range]);
    let submodules = submodules::unsaved(&info.path);
    // Their changed files are named with them.
    let ignored = if submodules.is_empty() {
        "none"
    } else {
        "dirty"
    };
    let status = [
        "status",
        "--porcelain",
        "--untracked-files=all",
        &format!("--ignore-submodules={ignored}"),
    ];
    let options = lfs::options(&info.path).iter().copied();
    let files = git(&info.path, options.chain(status));
    let (Ok(commits), Ok(files)) = (commits, files) else {
        return Some("git cannot read it".to_owned());
    };
    let head = git(&info.path, ["rev-parse", "HEAD"]).unwrap_or_default();
    let commits: u64 = commits.parse().unwrap_or(1);
    let files = files.lines().count() as u64;
    let mut parts = Vec::new();
    if commits > 0 {
        parts.push(plural(commits, "commit"));
    }
    if files > 0 {
        parts.push(format!("{} not committed", plural(files, "changed file")));
    }
    if parts.is_empty() && head != info.base {
        parts.push("another commit".to_owned());
    }
    parts.extend(submodules);
    (!parts.is_empty()).then(|| parts.join(", "))
}
