//! The folder of a workspace: `worktree.json`, the file `lock`, which is locked while the workspace is in use, and the
//! agent's files.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::record::Record;
use super::result::keep_of_killed;
use super::{Outcome, finish, record};
use crate::step::before_change;

pub(super) const INFO: &str = "worktree.json";
pub(super) const LOCK: &str = "lock";
/// The end of the name of a file that becomes `worktree.json`.
const DRAFT: &str = ".json.new";

/// The content of `worktree.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Info {
    pub(super) kind: Kind,
    /// The user's worktree, or the repository without one, in which git commands about the worktree run. Of another kind
    /// than a worktree: the folder `path`.
    #[serde(with = "path")]
    pub(super) repository: PathBuf,
    #[serde(with = "path")]
    pub(super) path: PathBuf,
    /// The branch; empty without a repository.
    pub(super) branch: String,
    /// The commit that the branch starts at; empty without a repository.
    pub(super) base: String,
    /// The last step that was taken.
    pub(super) step: Step,
    /// The worktree is kept because it has changes.
    pub(super) kept: bool,
    /// The session key that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    /// It stays for sessions that continue the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stays: Option<Stays>,
}

impl Info {
    /// Returns whether it stays for others although nothing was changed in it.
    pub(super) fn is_shared(&self) -> bool {
        self.key.is_some() || self.stays.is_some()
    }
}

/// State for sessions that continue another one in its worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stays {
    /// The last commit of the one who has uploaded the repository.
    pub(super) known: String,
    /// The agent's directory.
    #[serde(with = "path")]
    pub(super) directory: PathBuf,
}

/// Kind of a workspace that is made for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Worktree,
    Empty,
}

/// A step in the life of a workspace, which is written down before the next one begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    /// Git is creating it. If its creator was killed, no agent was in it.
    Making,
    /// It is complete. No agent was started in it yet.
    Prepared,
    /// An agent may have been started in it.
    Started,
}

/// A path in JSON: a string if it is UTF-8, else its bytes.
pub(crate) mod path {
    use super::{Deserialize, OsString, Path, PathBuf, Serialize};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Read {
        Text(String),
        Other(OsString),
    }

    pub(crate) fn serialize<S: serde::Serializer>(
        path: &Path,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => text.serialize(serializer),
            None => path.as_os_str().serialize(serializer),
        }
    }

    pub(crate) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<PathBuf, D::Error> {
        Ok(match Read::deserialize(deserializer)? {
            Read::Text(text) => text.into(),
            Read::Other(text) => text.into(),
        })
    }
}

/// Creates a folder that only the user can read, with those above it.
pub(crate) fn make(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

/// Cleans up the workspaces of killed processes.
pub(super) fn sweep(root: &Path) {
    record::forget_killed(root);
    let Ok(entries) = fs::read_dir(root) else {
        return;
    };
    for entry in entries.flatten() {
        let folder = entry.path();
        // In use, or being created or removed by another process.
        let Ok(Some(lock)) = lock(&folder) else {
            continue;
        };
        match read_info(&folder) {
            Ok(Some(mut info)) => {
                // Also if it was killed when the worktree was kept already, but not its result.
                keep_of_killed(root, &folder, &info);
                if (!info.kept || !info.path.exists())
                    && finish(&folder, &mut info) == Outcome::Removed
                {
                    record::forget_directory(root, &info.path);
                    if let Some(id) = folder.file_name().and_then(|it| it.to_str()) {
                        Record::remove_draft(&record::folder(root, id));
                    }
                }
            }
            // The process was killed before it wrote the file.
            Ok(None) => {
                for draft in fs::read_dir(&folder).into_iter().flatten().flatten() {
                    if draft.file_name().to_string_lossy().ends_with(DRAFT) {
                        let _ = fs::remove_file(draft.path());
                    }
                }
                let _ = fs::remove_file(folder.join(LOCK));
                let _ = fs::remove_dir(&folder);
            }
            _ => {}
        }
        let _ = lock.unlock();
    }
}

/// Creates and locks the folder of a new workspace. A process that cleans up can lock it first: it removes a folder
/// without `worktree.json`, and then this creates it again.
pub(super) fn claim(folder: &Path) -> io::Result<File> {
    const LIMIT: Duration = Duration::from_secs(5);
    const PAUSE: Duration = Duration::from_millis(1);

    let until = Instant::now() + LIMIT;
    loop {
        before_change();
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

/// Locks a workspace's folder. Returns `None` while another process holds the lock, or if it has just removed the file.
pub(super) fn lock(folder: &Path) -> io::Result<Option<File>> {
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

/// Returns whether an error means that there is no such file, also because a file that is not ours is in place of a folder.
pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Reads `worktree.json`; `None` if there is none.
pub(super) fn read_info(folder: &Path) -> io::Result<Option<Info>> {
    match fs::read(folder.join(INFO)) {
        Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes `worktree.json` atomically.
pub(super) fn write_info(folder: &Path, info: &Info) -> io::Result<()> {
    // The runs of a session key share a worktree.
    let draft = folder.join(format!("{}{DRAFT}", std::process::id()));
    before_change();
    fs::write(&draft, serde_json::to_vec(info)?)?;
    File::open(&draft)?.sync_data()?;
    before_change();
    fs::rename(draft, folder.join(INFO))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;
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
                let claimed = claim(&folder);
                claimed.is_err() || fs::write(folder.join(INFO), "{}").is_err()
            });
            let lost = lost.count();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(lost, 0);
        });
    }

    #[test]
    fn a_path_in_any_encoding_is_written_down() {
        let root = tempfile::tempdir().unwrap();
        let info = Info {
            kind: Kind::Worktree,
            repository: PathBuf::from(OsString::from_vec(b"/a\xff\n".to_vec())),
            path: "/b".into(),
            branch: "c".into(),
            base: "d".into(),
            step: Step::Making,
            kept: false,
            key: None,
            stays: None,
        };
        write_info(root.path(), &info).unwrap();
        let read = read_info(root.path()).unwrap().unwrap();
        assert_eq!((read.repository, read.path), (info.repository, info.path));
        assert_eq!(read.step, Step::Making);
    }
}
