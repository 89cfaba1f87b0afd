//! A git worktree for a run or session.
//!
//! Each worktree has a folder, named by the run's id. It contains `worktree.json`, the
//! file `lock`, which is locked while the worktree is in use, and the worktree itself, in a folder with the
//! repository's name. The worktree is removed at the end unless it has changes. The next process that creates a
//! worktree cleans up after killed ones.

mod submodules;

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use serde::{Deserialize, Serialize};
use teamster_core::text::{one_line, plural, printable};

use crate::git::{self, git};

const INFO: &str = "worktree.json";
const LOCK: &str = "lock";
/// The prefix of the default branch name, before the run's id.
const BRANCH: &str = "teamster/";

/// The content of `worktree.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Info {
    /// The root of the user's worktree.
    repository: PathBuf,
    path: PathBuf,
    branch: String,
    /// The commit that the branch starts at.
    base: String,
    /// The worktree is kept because it has changes.
    #[serde(default)]
    kept: bool,
    /// Git is still creating the worktree. If its creator was killed, no agent was in it.
    #[serde(default)]
    unfinished: bool,
}

/// A worktree in use. Dropping it removes the worktree unless it has changes.
#[derive(Debug)]
pub struct Worktree {
    info: Info,
    folder: PathBuf,
    directory: PathBuf,
    lock: Option<File>,
    warnings: Vec<String>,
}

/// A check of a worktree for changes, without which it is removed at the end.
#[derive(Debug, Clone)]
pub struct Changes(Info);

impl Changes {
    /// Returns `true` if the worktree will be kept.
    pub fn exist(&self) -> bool {
        changes(&self.0).is_some()
    }
}

/// The outcome of closing a worktree.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Removed,
    Kept(String),
}

impl Worktree {
    /// Creates a worktree of the repository that contains `directory`, in a folder of `root` with this id. Without
    /// `branch`, the new branch is named after the id. First cleans up after killed processes.
    ///
    /// # Errors
    ///
    /// Fails if git is not installed, without a repository or a commit, or if the branch exists. Nothing is left behind.
    pub fn create(
        root: &Path,
        directory: &Path,
        branch: Option<&str>,
        id: &str,
    ) -> anyhow::Result<Self> {
        sweep(root);
        let shown = printable(&directory.to_string_lossy());
        let Ok(repository) = git(directory, ["rev-parse", "--show-toplevel"]) else {
            git::check()?;
            bail!("{shown} is not in a git repository: run it in one, or set working_directory");
        };
        let repository = PathBuf::from(repository);
        let base = git(
            directory,
            ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"],
        )
        .map_err(|_| anyhow!("the repository {shown} has no commit yet: create one first"))?;
        let branch = match branch {
            Some(branch) => branch.to_owned(),
            None => format!("{BRANCH}{id}"),
        };
        if branch.starts_with('-')
            || git(directory, ["check-ref-format", "--branch", &branch]).is_err()
        {
            bail!("\"{}\" is not a valid branch name", one_line(&branch));
        }
        let reference = format!("refs/heads/{branch}");
        if git(directory, ["rev-parse", "--verify", "--quiet", &reference]).is_ok() {
            bail!("a branch \"{branch}\" exists already: choose another name, or omit it");
        }
        let inside = git(directory, ["rev-parse", "--show-prefix"])?;
        let name = repository.file_name().unwrap_or(OsStr::new("worktree"));
        let folder = root.join(id);
        let path = folder.join(name);
        let make = |path: &Path| {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path)
        };
        make(root).with_context(|| format!("cannot create {}", root.display()))?;
        if folder.exists() {
            bail!("a worktree exists in {} already", folder.display());
        }
        let lock =
            claim(&folder, make).with_context(|| format!("cannot create {}", folder.display()))?;
        let info = Info {
            repository,
            path,
            branch,
            base,
            kept: false,
            unfinished: true,
        };
        // From here on, dropping the worktree cleans up.
        let mut made = Self {
            // Without the `/` at the end of what git prints.
            directory: info.path.join(&inside).components().collect(),
            info,
            folder,
            lock: Some(lock),
            warnings: Vec::new(),
        };
        made.write_info()?;
        git(
            &made.info.repository,
            [
                OsStr::new("worktree"),
                OsStr::new("add"),
                OsStr::new("--quiet"),
                OsStr::new("-b"),
                OsStr::new(&made.info.branch),
                made.info.path.as_os_str(),
                OsStr::new(&made.info.base),
            ],
        )?;
        made.warnings.extend(made.uncommitted());
        let submodules = submodules::check_out(&made.info.repository, &made.info.path);
        made.warnings.extend(submodules);
        made.info.unfinished = false;
        made.write_info()?;
        if !made.directory.is_dir() {
            // The directory is not in the last commit.
            made.directory.clone_from(&made.info.path);
        }
        Ok(made)
    }

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

    /// Returns the branch.
    pub fn branch(&self) -> &str {
        &self.info.branch
    }

    /// Returns a warning about uncommitted changes that the agent does not see.
    fn uncommitted(&self) -> Option<String> {
        let changed = git(&self.info.repository, ["status", "--porcelain"]).ok()?;
        let changed = changed.lines().count() as u64;
        (changed > 0).then(|| {
            let files = plural(changed, "file");
            format!(
                "`worktree` starts at the last commit, without the uncommitted changes to {files}"
            )
        })
    }

    /// Closes the worktree, which removes it unless it has changes. Returns the report for the user.
    pub fn finish(mut self) -> String {
        let outcome = self.end();
        let path = printable(&self.info.path.to_string_lossy());
        let branch = one_line(&self.info.branch);
        match outcome {
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
        let outcome = finish(&self.folder, &mut self.info);
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
    if info.unfinished {
        remove_unfinished(info);
    }
    if let Some(changes) = changes(info) {
        info.kept = true;
        // On an error, the next process checks the worktree again.
        let _ = write_info(folder, info);
        return Outcome::Kept(changes);
    }
    let path = info.path.as_os_str();
    // Git removes a worktree with submodules only by force. There are no changes, as was just checked.
    let has_submodules = info.path.join(".gitmodules").exists();
    let force = has_submodules.then_some(OsStr::new("--force"));
    let removed = !info.path.exists()
        || git(
            &info.repository,
            [OsStr::new("worktree"), OsStr::new("remove")]
                .into_iter()
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
    let range = format!("{}..HEAD", info.base);
    let commits = git(&info.path, ["rev-list", "--count", &range]);
    let submodules = submodules::unsaved(&info.path);
    // Their changed files are named with them.
    let ignored = if submodules.is_empty() {
        "none"
    } else {
        "dirty"
    };
    let files = git(
        &info.path,
        [
            "status",
            "--porcelain",
            "--untracked-files=all",
            &format!("--ignore-submodules={ignored}"),
        ],
    );
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

/// Cleans up the worktrees of killed processes.
fn sweep(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else {
        return;
    };
    for entry in entries.flatten() {
        let folder = entry.path();
        // In use, or being created or removed by another process.
        let Ok(Some(lock)) = lock(&folder) else {
            continue;
        };
        match fs::read(folder.join(INFO)) {
            Ok(text) => {
                if let Ok(mut info) = serde_json::from_slice::<Info>(&text)
                    && (!info.kept || !info.path.exists())
                {
                    finish(&folder, &mut info);
                }
            }
            // The process was killed before it wrote the file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let _ = fs::remove_file(folder.join(LOCK));
                let _ = fs::remove_dir(&folder);
            }
            Err(_) => {}
        }
        let _ = lock.unlock();
    }
}

/// Creates and locks the folder of a new worktree. A process that cleans up can lock it first: it removes a folder
/// without `worktree.json`, and then this creates it again.
fn claim(folder: &Path, make: impl Fn(&Path) -> io::Result<()>) -> io::Result<File> {
    const LIMIT: Duration = Duration::from_secs(5);
    const PAUSE: Duration = Duration::from_millis(1);

    let until = Instant::now() + LIMIT;
    loop {
        make(folder)?;
        match lock(folder) {
            // Another run with this id was faster. The folder is that run's, even after its end.
            Ok(_) if folder.join(INFO).exists() => return Err(io::ErrorKind::AlreadyExists.into()),
            Ok(Some(lock)) => return Ok(lock),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ if Instant::now() >= until => {
                return Err(io::Error::other("another process keeps removing it"));
            }
            _ => thread::sleep(PAUSE),
        }
    }
}

/// Locks a worktree's folder. Returns `None` while another process holds the lock, or if it has just removed the file.
fn lock(folder: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(folder.join(LOCK))?;
    match file.try_lock() {
        // The lock of a removed file keeps no process from the folder.
        Ok(()) => Ok((file.metadata()?.nlink() > 0).then_some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Writes `worktree.json` atomically.
fn write_info(folder: &Path, info: &Info) -> io::Result<()> {
    let draft = folder.join("worktree.new");
    fs::write(&draft, serde_json::to_vec(info)?)?;
    File::open(&draft)?.sync_data()?;
    fs::rename(draft, folder.join(INFO))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_process_that_cleans_up_takes_no_new_worktree() {
        let root = tempfile::tempdir().unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        sweep(root.path());
                    }
                });
            }
            let lost = (0..200).filter(|number| {
                let folder = root.path().join(number.to_string());
                let claimed = claim(&folder, |path| {
                    fs::DirBuilder::new().recursive(true).create(path)
                });
                claimed.is_err() || fs::write(folder.join(INFO), "{}").is_err()
            });
            let lost = lost.count();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(lost, 0);
        });
    }
}
