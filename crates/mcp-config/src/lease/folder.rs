//! The folder of a journal, while its lock is held.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::disk::{Disk, Step, is_same};
use super::journal::{Journal, Unreadable};
use super::paths::Location;

/// Reason why an operation stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// The state of the disk has changed, so retry.
    Again,
    /// The problem, with the next step.
    Failed(String),
}

/// Creates the error of an operation that the system refused.
pub(super) fn refused(what: &str, path: &Path, error: &io::Error) -> Stop {
    let advice = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "; make room on the disk",
        ErrorKind::ReadOnlyFilesystem => "; its file system must be writable",
        ErrorKind::PermissionDenied => {
            "; this user must be allowed to write there, and to give files their owner"
        }
        ErrorKind::ResourceBusy => "; a file that is mounted by itself cannot be replaced",
        _ => "",
    };
    Stop::Failed(format!("cannot {what} {}: {error}{advice}", path.display()))
}

/// Creates the error of a lock that others do not release.
pub(super) fn busy(disk: &Disk) -> Stop {
    Stop::Failed(format!(
        "other runs have been changing it for {} s; try again later",
        disk.patience.as_secs()
    ))
}

/// Names in the folder.
const LOCK: &str = "lock";
const IGNORE: &str = ".gitignore";
const JOURNAL: &str = "journal.json";
const DRAFT: &str = "journal.tmp";
const ORIGINAL: &str = "original";
const NEW: &str = "new";
/// Prefix of the names of the holders' files.
const HOLDER: &str = "holder-";

/// Waits with increasing pauses, up to a time limit.
pub(super) struct Patience {
    until: Instant,
    pause: Duration,
}

impl Patience {
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            until: Instant::now() + limit,
            pause: Duration::from_millis(1),
        }
    }

    /// Waits for one pause. Returns `false` after the time limit.
    pub(super) fn wait(&mut self) -> bool {
        if Instant::now() >= self.until {
            return false;
        }
        thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(Duration::from_millis(50));
        true
    }
}

/// A lock on an open file.
///
/// It is released by unlocking, not by closing the file. A child process that another thread is starting has the file
/// open as well, for a moment.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Takes the lock. Returns `None` while another process holds it.
    fn take(file: File) -> io::Result<Option<Self>> {
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // If this fails, closing the file releases the lock.
        let _ = self.0.unlock();
    }
}

/// The folder of a journal while we hold its lock.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) disk: Disk,
    pub(super) location: Location,
    path: PathBuf,
    /// The journal, if there is one.
    pub(super) journal: Option<Journal>,
    _lock: Lock,
}

impl Folder {
    /// Waits for the lock of a file's journal. If the journal has no folder, creates one if `make` is set.
    pub(super) fn enter(disk: &Disk, file: &Path, make: bool) -> Result<Option<Self>, Stop> {
        let mut patience = Patience::new(disk.patience);
        loop {
            let natural = Location::for_new(file)
                .map_err(|error| refused("find the folder of", file, &error))?;
            let taken = Location::taken(file);
            if taken.is_empty() && !make {
                return Ok(None);
            }
            let location = taken.first().unwrap_or(&natural).clone();
            if let Some(folder) = Self::open(disk, location, taken.is_empty())? {
                // A journal must be where all others look for it. If we create the file's folder, the journal is
                // above it. So without a journal, check the location now that we hold the lock.
                let natural = Location::for_new(file);
                let right = natural.is_ok_and(|natural| natural == folder.location);
                let alone = Location::taken(file).len() == 1;
                if folder.journal.is_some() || right && alone {
                    return Ok(Some(folder));
                }
                folder.remove(None)?;
            }
            if !patience.wait() {
                return Err(busy(disk));
            }
        }
    }

    /// Waits for the lock of the journal at this location, in any state, if there is one.
    pub(super) fn find(disk: &Disk, location: &Location) -> Result<Option<Self>, Stop> {
        let mut patience = Patience::new(disk.patience);
        while fs::symlink_metadata(location.journal_folder()).is_ok() {
            if let Some(folder) = Self::open(disk, location.clone(), false)? {
                return Ok(Some(folder));
            }
            if !patience.wait() {
                return Err(busy(disk));
            }
        }
        Ok(None)
    }

    /// Takes the lock if it is free and the folder was not replaced.
    fn open(disk: &Disk, location: Location, make: bool) -> Result<Option<Self>, Stop> {
        let path = location.journal_folder();
        if make {
            match disk.make_folder(Step::MakeJournalFolder, &path, true) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                // The parent folder was removed.
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(refused("make", &path, &error)),
            }
        }
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => {
                return Err(Stop::Failed(format!(
                    "{} is not a directory: remove it",
                    path.display()
                )));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refused("look at", &path, &error)),
        }
        let name = path.join(LOCK);
        let mut made = false;
        let opened = match open_for_lock(&name) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                made = true;
                disk.create(Step::CreateLock, &name)
            }
            opened => opened,
        };
        let lock = match opened {
            Ok(lock) => Lock::take(lock),
            // Another process was faster: it created the file or removed the folder.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::AlreadyExists) =>
            {
                return Ok(None);
            }
            Err(error) => Err(error),
        };
        let lock = match lock {
            Ok(Some(lock)) => lock,
            Ok(None) => return Ok(None),
            Err(error) => {
                // Without locks there is no lease here. Other files are kept.
                if made {
                    let _ = disk.remove_file(Step::RemoveLock, &name);
                    let _ = disk.remove_folder(Step::RemoveJournalFolder, &path);
                }
                return Err(refused("lock", &name, &error));
            }
        };
        // The previous holder may have removed the file while we waited.
        if !is_same(&name, &lock.0).map_err(|error| refused("look at", &name, &error))? {
            return Ok(None);
        }
        let journal = read_journal(&path, &location)?;
        Ok(Some(Self {
            disk: disk.clone(),
            location,
            path,
            journal,
            _lock: lock,
        }))
    }

    /// Reads the current journal.
    pub(super) fn read_journal(&self) -> Result<Option<Journal>, Stop> {
        read_journal(&self.path, &self.location)
    }

    /// Returns the names of the live holders. Removes the files of dead ones.
    pub(super) fn living(&self, own: Option<&str>) -> Result<Vec<String>, Stop> {
        let mut living = Vec::new();
        for (name, path) in self.holders()? {
            if own != Some(&*name) {
                if is_held(&path)? {
                    living.push(name);
                } else {
                    self.drop_holder(&name)?;
                }
            }
        }
        Ok(living)
    }

    /// Returns the number of live holders. Changes nothing.
    pub(super) fn count_living(&self) -> Result<usize, Stop> {
        let mut living = 0;
        for (_, path) in self.holders()? {
            living += usize::from(is_held(&path)?);
        }
        Ok(living)
    }

    fn holders(&self) -> Result<Vec<(String, PathBuf)>, Stop> {
        let list = || -> io::Result<Vec<_>> {
            let mut holders = Vec::new();
            for found in fs::read_dir(&self.path)? {
                let found = found?;
                if let Some(name) = found.file_name().to_str()
                    && name.starts_with(HOLDER)
                {
                    holders.push((name.to_owned(), found.path()));
                }
            }
            Ok(holders)
        };
        list().map_err(|error| refused("list", &self.path, &error))
    }

    /// Adds a holder, which lives as long as the file is open. Returns its lock and name.
    pub(super) fn add_holder(&self) -> Result<(Lock, String), Stop> {
        let failed = |error: &io::Error| refused("make a file in", &self.path, error);
        let (file, name) = self
            .disk
            .create_named(Step::CreateHolder, &self.path, HOLDER)
            .map_err(|error| failed(&error))?;
        match Lock::take(file) {
            Ok(Some(lock)) => Ok((lock, name)),
            Ok(None) => Err(Stop::Again),
            Err(error) => Err(failed(&error)),
        }
    }

    pub(super) fn drop_holder(&self, name: &str) -> Result<(), Stop> {
        self.remove_file(Step::RemoveHolder, name)
    }

    /// Hides the folder from git.
    pub(super) fn hide(&self) -> Result<(), Stop> {
        let path = self.path.join(IGNORE);
        let write = || match self.disk.create(Step::CreateIgnore, &path) {
            Ok(mut file) => self.disk.write(Step::WriteIgnore, &mut file, b"*\n"),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        };
        write().map_err(|error| refused("write", &path, &error))
    }

    /// Writes the journal. After a power failure, either the new or the old one is there.
    pub(super) fn write_journal(&self, journal: &Journal) -> Result<(), Stop> {
        self.remove_file(Step::RemoveDraft, DRAFT)?;
        let draft = self.path.join(DRAFT);
        let write = || {
            let mut file = self.disk.create(Step::CreateJournal, &draft)?;
            let bytes = journal.to_bytes();
            self.disk.write(Step::WriteJournal, &mut file, &bytes)?;
            self.disk.sync(Step::SyncJournal, &file)?;
            let name = self.path.join(JOURNAL);
            self.disk.rename(Step::RenameJournal, &draft, &name)?;
            self.disk.sync_folder(Step::SyncJournalFolder, &self.path)
        };
        write().map_err(|error| refused("write", &draft, &error))
    }

    /// Returns the path of the original or its copy.
    pub(super) fn original(&self) -> PathBuf {
        self.path.join(ORIGINAL)
    }

    /// Removes a leftover new file and returns its path.
    pub(super) fn clear_new(&self) -> Result<PathBuf, Stop> {
        self.remove_file(Step::RemoveNew, NEW)?;
        Ok(self.path.join(NEW))
    }

    /// Removes the original that was left by an acquisition which was killed before its journal was written.
    pub(super) fn clear_original(&self) -> Result<(), Stop> {
        self.remove_file(Step::RemoveOriginal, ORIGINAL)
    }

    /// Syncs the parent of the journal's folder, so that the folder survives a power failure.
    pub(super) fn sync_location(&self) -> Result<(), Stop> {
        let base = &self.location.base;
        self.disk
            .sync_folder(Step::SyncPlace, base)
            .map_err(|error| refused("sync", base, &error))
    }

    /// Removes the created folders that are empty, then the journal, which completes the undo, then everything else.
    pub(super) fn finish(self, journal: &Journal, own: Option<&str>) -> Result<(), Stop> {
        let mut folders = journal.folders.clone();
        folders.sort_unstable();
        for parts in folders.into_iter().rev() {
            // Only folders on the path to the file, even if the journal names others.
            if (1..self.location.rest.len()).contains(&parts) {
                self.remove_made(parts)?;
            }
        }
        self.remove_file(Step::RemoveJournal, JOURNAL)?;
        self.remove(own)
    }

    /// Removes a folder that we created, if it is empty.
    fn remove_made(&self, parts: usize) -> Result<(), Stop> {
        let path = self.location.way(parts);
        let mut patience = Patience::new(Duration::from_secs(1));
        loop {
            match self.disk.remove_folder(Step::RemoveFolder, &path) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => return Err(refused("remove", &path, &error)),
            }
            // Another process may have begun a journal in the folder meanwhile. It will see ours and remove its own,
            // unless it was killed.
            let below = self.location.below(parts);
            let name = below.journal_folder();
            let only_his = fs::read_dir(&path).is_ok_and(|mut list| {
                list.all(|found| found.is_ok_and(|found| found.path() == name))
            });
            if !only_his || !patience.wait() {
                return Ok(());
            }
            if let Some(his) = Self::open(&self.disk, below, false)?
                && his.journal.is_none()
            {
                his.remove(None)?;
            }
        }
    }

    /// Removes our files in the folder, and the folder. A waiter for the lock notices that.
    pub(super) fn remove(self, own: Option<&str>) -> Result<(), Stop> {
        self.living(own)?;
        if let Some(own) = own {
            self.drop_holder(own)?;
        }
        self.remove_file(Step::RemoveDraft, DRAFT)?;
        self.remove_file(Step::RemoveNew, NEW)?;
        self.remove_file(Step::RemoveOriginal, ORIGINAL)?;
        self.remove_file(Step::RemoveIgnore, IGNORE)?;
        self.remove_file(Step::RemoveLock, LOCK)?;
        // The next lease may have begun in the folder already. Then it stays.
        self.disk
            .remove_folder(Step::RemoveJournalFolder, &self.path)
            .map_err(|error| refused("remove", &self.path, &error))?;
        Ok(())
    }

    fn remove_file(&self, step: Step, name: &str) -> Result<(), Stop> {
        let path = self.path.join(name);
        self.disk
            .remove_file(step, &path)
            .map_err(|error| refused("remove", &path, &error))
    }
}

fn read_journal(folder: &Path, location: &Location) -> Result<Option<Journal>, Stop> {
    let path = folder.join(JOURNAL);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refused("read", &path, &error)),
    };
    let what = match Journal::parse(&bytes) {
        Ok(journal) if journal.file == location.name() => return Ok(Some(journal)),
        Ok(_) => "belongs to another file",
        Err(Unreadable::Damaged) => "cannot be read",
        Err(Unreadable::OtherVersion) => "is of another version of teamster: use that",
    };
    Err(Stop::Failed(format!(
        "its journal {} {what}; or compare the file with `original` beside the journal yourself, and \
         then remove the folder",
        path.display()
    )))
}

/// Opens a file to lock it. Some file systems lock only files that are open for writing. On a read-only one the file is
/// opened for reading.
fn open_for_lock(path: &Path) -> io::Result<File> {
    match OpenOptions::new().read(true).write(true).open(path) {
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            File::open(path)
        }
        opened => opened,
    }
}

/// Returns whether the process that created this file is alive.
fn is_held(path: &Path) -> Result<bool, Stop> {
    let file = match open_for_lock(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(refused("open", path, &error)),
    };
    let lock = Lock::take(file).map_err(|error| refused("lock", path, &error))?;
    Ok(lock.is_none())
}
