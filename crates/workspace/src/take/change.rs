//! A change of several files that is made as a whole: also if the process is killed half way.
//!
//! Git makes the changed files in a folder on the same file system, and they are moved into place one by one, as files that
//! they replace are moved away. What is where is written down before that. After a kill, [`recover`](recover()) moves all back.

mod recover;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use teamster_core::text::printable;

use super::TakeError;
use crate::git;
use crate::step::before_change;
use crate::worktree::{lfs, make, path};
pub(super) use recover::recover;
use recover::{changed_since, undo};

/// The folder of a change, in that of the repository or of the linked worktree. Where that is on another file system, it
/// is in the worktree, hidden.
const FOLDER: &str = "teamster-apply";
/// The bit of a folder's mode by which new files get its group.
const SET_GROUP: u32 = 0o2000;
/// The file with what is where.
const JOURNAL: &str = "journal.json";
/// The folder with files as they were before.
const BEFORE: &str = "before";
/// The folder with files that are not in place yet.
const AFTER: &str = "after";
/// The lock of the index.
const HELD: &str = "held";

/// A change in the making. Dropped, its folder is removed: all or nothing was changed then.
pub(super) struct Change<'a> {
    /// Root of the worktree.
    top: &'a Path,
    folder: PathBuf,
    /// The index and its lock file, which git knows too.
    index: Option<(PathBuf, PathBuf)>,
    journal: Journal,
    /// Some files could not be moved back.
    stays: bool,
    _lock: Lock,
}

#[derive(Default, Serialize, Deserialize)]
struct Journal {
    files: Vec<Entry>,
    /// Folders that did not exist.
    folders: Vec<Named>,
}

#[derive(Serialize, Deserialize)]
struct Named(#[serde(with = "path")] PathBuf);

/// A file that changes.
#[derive(Serialize, Deserialize)]
struct Entry {
    #[serde(with = "path")]
    path: PathBuf,
    /// The file before; `None` if there was none.
    before: Option<Stamp>,
    /// The file after; `None` if there is none.
    after: Option<Stamp>,
}

/// Metadata that a file keeps when it is moved, and loses when it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Stamp {
    /// Returns the stamp of a file or link; `None` if there is none, or something else.
    fn of(path: &Path) -> Option<Self> {
        let about = fs::symlink_metadata(path).ok()?;
        (!about.is_dir()).then(|| Self {
            inode: about.ino(),
            bytes: about.len(),
            modified: (about.mtime(), about.mtime_nsec()),
        })
    }
}

impl<'a> Change<'a> {
    /// Begins a change in the worktree with this root, whose repository's folder is `git_dir`. With `index`, which is the
    /// path of the index, that is changed too.
    pub(super) fn new(
        top: &'a Path,
        git_dir: &Path,
        index: Option<PathBuf>,
    ) -> Result<Self, TakeError> {
        let Some(lock) = lock(git_dir)? else {
            let problem = "another process is changing files here: wait until it has ended";
            return Err(TakeError::Busy(problem.to_owned()));
        };
        let folder = folder(top, git_dir);
        if folder.join(JOURNAL).exists() {
            return Err(TakeError::Busy(changed_since(&folder, &[])));
        }
        before_change();
        let _ = fs::remove_dir_all(&folder);
        make(&folder.join(AFTER)).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut this = Self {
            top,
            folder,
            index: None,
            journal: Journal::default(),
            stays: false,
            _lock: lock,
        };
        if let Some(index) = index {
            let held = index.with_added_extension("lock");
            // A link, by which the lock of a killed process is known.
            let own = this.folder.join(HELD);
            File::create(&own)?;
            before_change();
            match fs::hard_link(&own, &held) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(TakeError::Busy(format!(
                        "another git command works on the index: wait until it has ended; if none does, remove {}",
                        held.display()
                    )));
                }
                linked => linked.with_context(|| format!("cannot make {}", held.display()))?,
            }
            this.index = Some((index.clone(), held));
            // Git finds out which files are as in the index.
            crate::snapshot::copy(&index, &this.own_index())?;
            // Files that differ are no error here.
            let _ = git::run(this.command().args(["update-index", "-q", "--refresh"]));
        }
        Ok(this)
    }

    /// Returns a git command in the worktree, with the changed index in place of its own.
    pub(super) fn command(&self) -> Command {
        let mut command = git::command(self.top);
        git::without_side_effects(&mut command);
        command.args(lfs::options(self.top));
        if self.index.is_some() {
            command.env("GIT_INDEX_FILE", self.own_index());
        }
        command
    }

    fn own_index(&self) -> PathBuf {
        self.folder.join("index")
    }

    /// Makes the changed files, from a patch that fits. No file of the user changes.
    pub(super) fn prepare(
        &mut self,
        git_dir: &Path,
        files: &BTreeSet<PathBuf>,
        patch: &Path,
        options: &[&str],
    ) -> anyhow::Result<()> {
        let after = self.folder.join(AFTER);
        // Before git reads them: what is saved later is noticed.
        let stamps = files.iter().map(|file| Stamp::of(&self.top.join(file)));
        let stamps: Vec<_> = stamps.collect();
        self.copy_before(files, &after)?;
        let mut command = git::command_at(&after);
        git::without_side_effects(&mut command);
        command
            .args(lfs::options(self.top))
            .env("GIT_DIR", git_dir)
            .env("GIT_WORK_TREE", &after);
        git::run(command.args(options).arg(patch))?;
        for (file, stamp) in files.iter().zip(stamps) {
            let (before, after) = (self.top.join(file), after.join(file));
            // That of a submodule is only made. Others are, too, when files are moved into them.
            if fs::symlink_metadata(&after).is_ok_and(|it| it.is_dir()) {
                // The folder itself, too: only those above a path are noted.
                self.note_missing(&before.join("x"));
                if Stamp::of(&before).is_none() {
                    continue;
                }
            }
            if fs::symlink_metadata(&before).is_ok_and(|it| it.is_dir()) && !after.exists() {
                continue;
            }
            self.note_missing(&before);
            take_group(&after, &before)?;
            self.journal.files.push(Entry {
                path: file.clone(),
                before: stamp,
                after: Stamp::of(&after),
            });
        }
        if let Some((_, held)) = &self.index {
            let own = self.own_index();
            git::run(self.command().args(options).arg("--cached").arg(patch))?;
            fs::copy(own, held)?;
            File::open(held)?.sync_data()?;
        }
        Ok(())
    }

    /// Copies files for git, which replaces them there: as hard links, which take no space.
    fn copy_before(&self, files: &BTreeSet<PathBuf>, after: &Path) -> anyhow::Result<()> {
        let mut missing = Vec::new();
        for file in files {
            let (from, to) = (self.top.join(file), after.join(file));
            let there = fs::symlink_metadata(&from);
            if let Some(parent) = to.parent()
                && there.is_ok()
            {
                fs::create_dir_all(parent)?;
            }
            match there {
                Ok(about) if about.is_dir() => fs::create_dir_all(&to)?,
                // A file system may have no hard links.
                Ok(_) => fs::hard_link(&from, &to).or_else(|_| copy(&from, &to))?,
                Err(_) => {
                    missing.extend_from_slice(file.as_os_str().as_bytes());
                    missing.push(0);
                }
            }
            // By these, git converts line ends, for example.
            for folder in file.ancestors().skip(1) {
                let name = folder.join(".gitattributes");
                let to = after.join(&name);
                if fs::symlink_metadata(&to).is_err() && self.top.join(&name).is_file() {
                    fs::create_dir_all(after.join(folder))?;
                    fs::copy(self.top.join(&name), to)?;
                }
            }
        }
        if self.index.is_some() && !missing.is_empty() {
            // Those of a sparse checkout. New ones are not in the index, which is no error here.
            let mut prefix = OsStr::new("--prefix=").to_owned();
            prefix.push(after);
            prefix.push("/");
            let mut command = self.command();
            command
                .args(["checkout-index", "--quiet", "-z", "--stdin"])
                .arg(prefix);
            let _ = git::run_with_input(command, &missing);
        }
        Ok(())
    }

    /// Notes the folders above a path that do not exist.
    fn note_missing(&mut self, path: &Path) {
        let parents = path.ancestors().skip(1).take_while(|it| *it != self.top);
        for folder in parents.filter(|it| !fs::symlink_metadata(it).is_ok_and(|it| it.is_dir())) {
            if self.journal.folders.iter().all(|known| known.0 != folder) {
                self.journal.folders.push(Named(folder.to_owned()));
            }
        }
    }

    /// Moves all into place. Fails if something cannot be moved. All is as before then, unless the error names where it
    /// is.
    pub(super) fn carry_out(mut self) -> Result<(), TakeError> {
        let draft = self.folder.join("journal.new");
        let journal = serde_json::to_vec(&self.journal).map_err(io::Error::from)?;
        fs::write(&draft, journal)?;
        File::open(&draft)?.sync_data()?;
        before_change();
        fs::rename(draft, self.folder.join(JOURNAL))?;
        let Err(error) = self.move_all() else {
            return Ok(());
        };
        match undo(self.top, &self.folder, &self.journal) {
            Ok(()) => Err(TakeError::Git(error)),
            Err(problem) => {
                self.stays = true;
                let what = format!("{error:#}; and the files before it could not all be restored");
                Err(TakeError::NotRestored(problem.context(what)))
            }
        }
    }

    fn move_all(&mut self) -> anyhow::Result<()> {
        let (before, after) = (self.folder.join(BEFORE), self.folder.join(AFTER));
        let entries = &self.journal.files;
        // A folder can take the place of a file, and a file that of a folder.
        for entry in entries.iter().filter(|it| it.before.is_some()) {
            let there = self.top.join(&entry.path);
            if Stamp::of(&there) != entry.before {
                bail!(
                    "{} was changed meanwhile",
                    printable(&there.to_string_lossy())
                );
            }
            move_file(&there, &before.join(&entry.path))?;
            if entry.after.is_none() {
                remove_empty(self.top, &entry.path);
            }
        }
        for Named(folder) in self.journal.folders.iter().rev() {
            fs::create_dir_all(folder)?;
        }
        for entry in entries.iter().filter(|it| it.after.is_some()) {
            move_file(&after.join(&entry.path), &self.top.join(&entry.path))?;
        }
        if let Some((index, held)) = &self.index {
            before_change();
            fs::rename(held, index).with_context(|| format!("cannot write {}", index.display()))?;
            self.index = None;
        }
        Ok(())
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        if self.stays {
            return;
        }
        if let Some((_, held)) = &self.index {
            let _ = fs::remove_file(held);
        }
        remove(&self.folder);
    }
}

/// Returns the folder of a change, from which files can be moved into the worktree.
fn folder(top: &Path, git_dir: &Path) -> PathBuf {
    let device = |path: &Path| fs::metadata(path).map(|it| it.dev()).ok();
    if device(top) == device(git_dir) {
        git_dir.join(FOLDER)
    } else {
        top.join(format!(".{FOLDER}"))
    }
}

/// Gives a new file the group that it would have got in its folder.
fn take_group(new: &Path, location: &Path) -> io::Result<()> {
    let mut above = location.ancestors().skip(1);
    let Some(about) = above.find_map(|folder| fs::metadata(folder).ok()) else {
        return Ok(());
    };
    if about.mode() & SET_GROUP != 0
        && fs::symlink_metadata(new).is_ok_and(|it| it.gid() != about.gid())
    {
        std::os::unix::fs::lchown(new, None, Some(about.gid()))?;
    }
    Ok(())
}

/// Removes the folder of a change that is over.
fn remove(folder: &Path) {
    before_change();
    // First that by which it is found.
    let _ = fs::remove_file(folder.join(JOURNAL));
    before_change();
    let _ = fs::remove_dir_all(folder);
}

/// The lock of changes.
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Explicitly: a process that is being spawned may hold the file open for a moment.
        let _ = self.0.unlock();
    }
}

/// Locks changes of a worktree; `None` while another process makes one.
fn lock(git_dir: &Path) -> anyhow::Result<Option<Lock>> {
    // The folder itself: nothing is left of that.
    let shown = || format!("cannot lock {}", git_dir.display());
    let file = File::open(git_dir).with_context(shown)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(Lock(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error).with_context(shown),
    }
}

/// Moves a file, into a folder that is created if it is missing. Nothing is replaced.
fn move_file(from: &Path, to: &Path) -> anyhow::Result<()> {
    let shown = || format!("cannot write {}", to.display());
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).with_context(shown)?;
    }
    if fs::symlink_metadata(to).is_ok() {
        bail!("{} is in the way", to.display());
    }
    before_change();
    fs::rename(from, to).with_context(shown)
}

/// Removes the folders above a file of the tree that are empty, as git does.
fn remove_empty(top: &Path, file: &Path) {
    for folder in file
        .ancestors()
        .skip(1)
        .filter(|it| !it.as_os_str().is_empty())
    {
        if fs::remove_dir(top.join(folder)).is_err() {
            return;
        }
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    match fs::read_link(from) {
        Ok(target) => std::os::unix::fs::symlink(target, to),
        Err(_) => fs::copy(from, to).map(drop),
    }
}

#[cfg(test)]
mod tests;
