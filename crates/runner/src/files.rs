//! Files and folders of runs on disk.
//!
//! Files are opened without following a link at their name, so that nothing outside of a run's folder is written, and
//! without waiting: anything but a regular file, such as a pipe, is an error.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use teamster_process::open_unlinked_file;

use crate::RunsError;
use crate::folder::RunLock;
use crate::step::{Step, before, sync};

/// Opens a regular file for reading. A link at its name is an error.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    open_unlinked_file(OpenOptions::new().read(true), path)
}

/// Reads a regular file. A link at its name is an error.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open(path)?.read_to_end(&mut content)?;
    Ok(content)
}

/// Opens or creates a file to lock it.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    open_unlinked_file(options.mode(0o600), path)
}

/// Locks a file exclusively. A process that holds it shared only looks whether it is locked, so it is waited for: for
/// at most half a second.
///
/// # Errors
///
/// Fails with [`TryLockError::WouldBlock`] if another process holds the lock, or if a system call fails.
pub fn try_lock_past_probes(file: &File) -> Result<(), TryLockError> {
    const LIMIT: Duration = Duration::from_millis(500);
    const PAUSE: Duration = Duration::from_millis(1);

    let until = Instant::now() + LIMIT;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < until => {}
            locked => return locked,
        }
        // Refused if the lock is held exclusively.
        file.try_lock_shared()?;
        file.unlock().map_err(TryLockError::Error)?;
        thread::sleep(PAUSE);
    }
}

/// Takes the lock with this name in a folder. Returns `None` while another process holds it.
pub(crate) fn lock_exclusively(folder: &Path, name: &str) -> Result<Option<RunLock>, RunsError> {
    let path = folder.join(name);
    let file = open_lock(&path).map_err(RunsError::io("open", &path))?;
    match try_lock_past_probes(&file) {
        Ok(()) => Ok(Some(RunLock(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(RunsError::io("lock", path)(error)),
    }
}

pub(crate) fn write_synced(path: &Path, content: &io::Result<Vec<u8>>) -> io::Result<()> {
    before(Step::WriteInfo);
    let content = content
        .as_ref()
        .map_err(|error| io::Error::other(error.to_string()))?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    io::Write::write_all(&mut file, content)?;
    sync(Step::SyncInfo, &file)
}

pub(crate) fn sync_folder(step: Step, path: &Path) -> Result<(), RunsError> {
    File::open(path)
        .and_then(|folder| sync(step, &folder))
        .map_err(RunsError::io("sync", path))
}
