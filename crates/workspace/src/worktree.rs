//! A git worktree for a run or session.
//!
//! Each worktree has a folder, named by the run's id. It contains `worktree.json`, the
//! file `lock`, which is locked while the worktree is in use, and the worktree itself, in a folder with the
//! repository's name. The worktree is removed at the end unless it has changes. The next process that creates a
//! worktree cleans up after killed ones.

mod create;
mod discard;
mod folder;
mod forgotten;
pub(crate) mod include;
mod kept;
mod keyed;
pub(crate) mod lfs;
mod record;
mod result;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use teamster_core::text::{one_line, printable};
use teamster_core::{WorkspaceKind, WorkspaceResult};

use crate::git::git;
use crate::included;
use crate::step::before_change;
pub use create::{NewWorktree, Origin};
pub use discard::DiscardError;
use folder::{Info, Kind, Step, write_info};
pub(crate) use folder::{make, path};
pub use forgotten::remove_forgotten;
pub use kept::Kept;
use keyed::Keyed;
pub use keyed::WorktreeKey;
use record::Record;
use result::changes;

/// A worktree in use. Dropping it removes the worktree unless it has changes.
#[derive(Debug)]
pub struct Worktree {
    info: Info,
    folder: PathBuf,
    directory: PathBuf,
    lock: Option<File>,
    keyed: Option<Keyed>,
    /// The folder of what is known of the run's workspace, which has the run's id as its name.
    record: PathBuf,
    /// The last commit of the one who has uploaded the repository.
    uploaded: Option<String>,
    origin: Origin,
    warnings: Vec<String>,
}

/// A workspace at the end of its run or session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finished {
    /// Its result.
    pub result: WorkspaceResult,
    /// The report for the user.
    pub report: String,
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Removed,
    Kept(String),
}

impl Worktree {
    /// Returns whether a process makes or uses the workspace with this id in a folder of `root`.
    pub fn is_in_use(root: &Path, id: &str) -> bool {
        let folder = root.join(id);
        folder.is_dir() && matches!(folder::lock(&folder), Ok(None))
    }

    /// Returns the agent's working directory: the same directory of the repository as without a worktree.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the root of the workspace.
    pub fn root(&self) -> &Path {
        &self.info.path
    }

    /// Returns the file whose existence means that the workspace was set up.
    pub fn set_up_marker(&self) -> PathBuf {
        self.folder.join("set-up")
    }

    /// Returns the commit that the branch starts at; empty without a repository.
    pub fn base(&self) -> &str {
        &self.info.base
    }

    /// Returns whether the workspace is a worktree of a repository.
    pub fn has_repository(&self) -> bool {
        self.info.kind != Kind::Empty
    }

    /// Returns warnings, such as of uncommitted changes that the agent does not see.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Notes that the repository was uploaded for the run. `head` is the last commit that the one who has uploaded it has:
    /// what the run brings back is based on it.
    #[must_use]
    pub fn of_upload(mut self, head: impl Into<String>) -> Self {
        self.uploaded = Some(head.into());
        self
    }

    /// Copies files that were uploaded beside the repository, out of their bundle, which has them in this commit: where git
    /// ignores them, so that they become a part of no commit.
    ///
    /// # Errors
    ///
    /// Fails if the bundle is damaged or does not have the commit.
    pub fn include(&mut self, bundle: &Path, commit: &str) -> anyhow::Result<()> {
        let warnings = included::unpack(bundle, commit, &self.info.path, &self.folder)?;
        self.warnings.extend(warnings);
        Ok(())
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
        self.write_info()?;
        result::note_guest(&self.folder, &self.record)
            .with_context(|| format!("cannot write in {}", self.folder.display()))?;
        let mut record = Record::new(&self.info);
        record.known.clone_from(&self.uploaded);
        record.write(&self.record)
    }

    /// Closes the worktree, which removes it unless it has changes. What is not committed is kept as a commit too:
    /// `refs/teamster/RUN/wip`, on top of the last one. The worktree's files, index and branch stay as they are.
    pub fn finish(mut self) -> Finished {
        let Some((outcome, result)) = self.end() else {
            // Only `end` takes the lock, and it is called once.
            unreachable!("the worktree is open");
        };
        let path = printable(&self.info.path.to_string_lossy());
        let branch = one_line(&self.info.branch);
        let report = match outcome {
            Outcome::Removed if self.info.kind == Kind::Empty => {
                "empty directory removed".to_owned()
            }
            Outcome::Kept(why) if self.info.kind == Kind::Empty => {
                format!("directory kept: {why}, in {path}")
            }
            Outcome::Removed if result.has_changes() => {
                format!("the worktree was deleted; its commits are on branch {branch}")
            }
            Outcome::Removed => {
                format!("worktree without changes removed, with its branch {branch}")
            }
            Outcome::Kept(why) => format!("worktree kept: {why} on branch {branch} in {path}"),
        };
        Finished { result, report }
    }

    fn end(&mut self) -> Option<(Outcome, WorkspaceResult)> {
        let lock = self.lock.take()?;
        let mut result = if self.info.step >= Step::Started {
            result::keep(&self.info, &self.record)
        } else {
            result::unused(&self.info)
        };
        if self.uploaded.is_some() {
            result.kind = WorkspaceKind::Upload;
        }
        if self.origin == Origin::Fetched {
            result.kind = WorkspaceKind::Repository;
        }
        let is_alone = self.keyed.is_none() && self.info.stays.is_none();
        let outcome = if is_alone || self.last_of_shared(&lock) {
            finish(&self.folder, &mut self.info)
        } else {
            keyed::kept(&self.info)
        };
        if outcome == Outcome::Removed {
            result.directory = None;
            if !result.has_changes() {
                result.branch = None;
            }
        }
        if outcome == Outcome::Removed
            && self.keyed.is_some()
            && let Some(root) = self.folder.parent()
        {
            // Of earlier runs in it.
            record::forget_directory(root, &self.info.path);
        }
        if self.info.step >= Step::Started {
            Record::end(&self.info, &result, &self.record);
            result::forget_guest(&self.folder, &self.record);
        }
        // Unlock explicitly: a process that is being spawned may hold the file open for a moment.
        let _ = lock.unlock();
        Some((outcome, result))
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
    let is_shared = info.is_shared() && info.step >= Step::Started;
    if is_shared && info.path.exists() && !keyed::is_unused(folder) {
        return keyed::kept(info);
    }
    if let Some(changes) = changes(info) {
        info.kept = true;
        info.key = None;
        // For sessions it stays: what is in it is theirs.
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
    // Git compares files that it does not know to be unchanged, without these options.
    let refresh = ["update-index", "-q", "--refresh"];
    let _ = git(
        &info.path,
        lfs::options(&info.path).iter().copied().chain(refresh),
    );
    let path = info.path.as_os_str();
    // Git removes a worktree with submodules only by force. There are no changes, as was just checked.
    // One that is missing is only forgotten. Other worktrees may be missing for a while, so all are not pruned.
    let is_missing = !info.path.exists();
    let by_force = is_missing || info.path.join(".gitmodules").exists();
    let force = by_force.then_some(OsStr::new("--force"));
    before_change();
    let removed = git(
        &info.repository,
        (lfs::options(&info.repository).iter().map(OsStr::new))
            .chain(["worktree", "remove"].map(OsStr::new))
            .chain(force)
            .chain([path]),
    );
    if removed.is_err() && !is_missing {
        // It was just changed, or is locked.
        return Outcome::Kept("it could not be removed".to_owned());
    }
    let reference = format!("refs/heads/{}", info.branch);
    before_change();
    // Delete the branch only if it is still at its base.
    let _ = git(
        &info.repository,
        ["update-ref", "-d", &reference, &info.base],
    );
    before_change();
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
