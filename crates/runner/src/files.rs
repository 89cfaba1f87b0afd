//! Files and folders of runs on disk.
//!
//! Files are opened without following a link at their name, so that nothing outside of a run's folder is written, and
//! without waiting: anything but a regular file, such as a pipe, is an error.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;

use crate::RunsError;
use crate::folder::RunLock;
use crate::step::{Step, before, sync};

/// Opens a regular file for reading. A link at its name is an error.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path)
}

/// Opens a regular file for reading, which may be a link to one. Anything else, such as a pipe, is an error; this never
/// waits for the writer of one.
pub fn open_linked_file(path: &Path) -> io::Result<File> {
    open_regular(OpenOptions::new().read(true), OFlag::empty(), path)
}

/// Opens a regular file with these options. A link at its name is an error.
pub(crate) fn open_with(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    open_regular(options, OFlag::O_NOFOLLOW, path)
}

fn open_regular(options: &mut OpenOptions, flags: OFlag, path: &Path) -> io::Result<File> {
    // Without O_NONBLOCK, a pipe would be opened when another process opens its other end.
    let flags = flags | OFlag::O_NONBLOCK;
    let file = options.custom_flags(flags.bits()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(
            ErrorKind::InvalidInput,
            "it is not a regular file",
        ));
    }
    Ok(file)
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
    open_with(options.mode(0o600), path)
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

/// Creates a folder that only its owner can enter. Missing parents get the usual permissions.
pub fn make_private(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
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
