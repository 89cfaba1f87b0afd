//! The folder that holds the private files of a run, and the folders of runs that were killed.
//!
//! Its owner keeps a file in it locked. The system drops that lock when the owner dies, however it
//! dies, so a folder whose file can be locked has no owner; no process id is looked at.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::unistd::geteuid;

/// How the names of these folders begin.
const PREFIX: &str = "teamster-run-";
/// The file in each that its owner keeps locked.
const OWNER: &str = "owner";
/// How often a folder is created again that another process removed before it was locked.
const TRIES: u32 = 100;
/// How often a folder is emptied into which something is still being written.
const REMOVALS: u32 = 3;

/// The folder of a living run. It goes when this is dropped.
#[derive(Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
    /// Locked for as long as it is open. No child inherits it.
    _owner: File,
}

impl RunFolder {
    /// A new one, which only this user can enter. Removes those of dead runs on the way. Blocks.
    pub(crate) fn new() -> io::Result<Self> {
        let temporary = tempfile::env::temp_dir();
        sweep(&temporary);
        Self::new_in(&temporary)
    }

    fn new_in(temporary: &Path) -> io::Result<Self> {
        for _ in 0..TRIES {
            if let Some(folder) = Self::make(temporary)? {
                return Ok(folder);
            }
        }
        Err(io::Error::other(
            "each folder made for the run was removed before it could be used",
        ))
    }

    /// `None` if another process removed it before it was locked.
    fn make(temporary: &Path) -> io::Result<Option<Self>> {
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(temporary)?;
        let owner = match create_private(&folder.path().join(OWNER)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            result => result?,
        };
        match owner.try_lock() {
            // A file system without locks: no other process can lock it either and take it for dead.
            Ok(()) | Err(TryLockError::Error(_)) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
        }
        // Who removes the folder locks the file before and unlinks it after.
        if owner.metadata()?.nlink() == 0 {
            return Ok(None);
        }
        Ok(Some(Self {
            path: folder.keep(),
            _owner: owner,
        }))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a file in it that only this user can read.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        create_private(&path)?.write_all(content)?;
        Ok(path)
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        for _ in 0..REMOVALS {
            if remove(&self.path).is_ok() {
                return;
            }
        }
        // Files that a spared process still writes there are left to the next sweep.
    }
}

/// A new file that only this user can read.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Removes the private files that killed runs of this user have left in the place for temporary
/// files, and returns the folders that are gone. Those of living runs stay. A run that has private
/// files does this as well.
///
/// Blocks on the disk. What cannot be removed is left alone.
pub fn sweep_private_files() -> Vec<PathBuf> {
    sweep(&tempfile::env::temp_dir())
}

fn sweep(temporary: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(temporary) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let random = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            random.is_some_and(|r| !r.is_empty() && r.bytes().all(|b| b.is_ascii_alphanumeric()))
        })
        .map(|entry| entry.path())
        .filter(|folder| remove_if_dead(folder).unwrap_or(false))
        .collect()
}

/// Whether it was removed.
fn remove_if_dead(folder: &Path) -> io::Result<bool> {
    let data = folder.symlink_metadata()?;
    if !data.is_dir() || data.uid() != geteuid().as_raw() {
        return Ok(false);
    }
    let owner = OpenOptions::new()
        .write(true)
        .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
        .open(folder.join(OWNER));
    let owner = match owner {
        // Its owner died before it was made, or after it was removed; or makes it at this moment,
        // and will make another folder.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return fs::remove_dir(folder).map(|()| true);
        }
        result => result?,
    };
    if owner.try_lock().is_err() || owner.metadata()?.nlink() == 0 {
        return Ok(false);
    }
    // Locked until then, so that no other sweep comes between.
    remove(folder).map(|()| true)
}

/// Removes a folder. The file that identifies its owner goes last, so that a process that dies on the way leaves
/// what the next sweep finds. Follows no links.
fn remove(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() == OWNER {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_file(folder.join(OWNER))?;
    fs::remove_dir(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().permissions().mode() & 0o7777
    }

    /// A folder as a killed run leaves it.
    fn dead(temporary: &Path, name: &str) -> PathBuf {
        let folder = temporary.join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join(OWNER), "").unwrap();
        fs::write(folder.join("private-0"), "secret").unwrap();
        folder
    }

    #[test]
    fn a_folder_is_for_this_user_only_and_goes_with_its_owner() {
        let place = tempfile::tempdir().unwrap();
        let folder = RunFolder::new_in(place.path()).unwrap();
        let file = folder.write("private-0.toml", b"secret").unwrap();
        assert_eq!(mode(folder.path()), 0o700);
        assert_eq!(mode(&file), 0o600);
        assert_eq!(mode(&folder.path().join(OWNER)), 0o600);
        assert_eq!(fs::read(&file).unwrap(), b"secret");
        fs::create_dir(folder.path().join("home")).unwrap();
        fs::write(folder.path().join("home/x"), "").unwrap();
        drop(folder);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_sweep_takes_the_dead_and_spares_the_living() {
        let place = tempfile::tempdir().unwrap();
        let living = RunFolder::new_in(place.path()).unwrap();
        let file = living.write("private-0", b"secret").unwrap();
        let one = dead(place.path(), "teamster-run-abc123");
        let empty = place.path().join("teamster-run-empty");
        fs::create_dir(&empty).unwrap();
        let mut swept = sweep(place.path());
        swept.sort();
        assert_eq!(swept, [one.clone(), empty.clone()]);
        assert!(!one.exists() && !empty.exists() && file.exists());
        assert_eq!(sweep(place.path()), [""; 0].map(PathBuf::from));
    }

    #[test]
    fn a_sweep_takes_nothing_that_is_not_a_folder_of_a_run_and_follows_no_link() {
        let place = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let users = dead(elsewhere.path(), "teamster-run-users");
        // The folder itself is a link.
        symlink(&users, place.path().join("teamster-run-link")).unwrap();
        // Its owner is a link to a file that could be locked.
        let trap = place.path().join("teamster-run-trap");
        fs::create_dir(&trap).unwrap();
        symlink(users.join(OWNER), trap.join(OWNER)).unwrap();
        for name in [
            "teamster-run-",
            "teamster-run-a.b",
            "teamster-runs",
            "other",
        ] {
            dead(place.path(), name);
        }
        fs::write(place.path().join("teamster-run-file"), "").unwrap();
        assert_eq!(sweep(place.path()), [""; 0].map(PathBuf::from));
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 7);

        // What links in a dead one lead to stays.
        let home = dead(place.path(), "teamster-run-home");
        symlink(&users, home.join("folder")).unwrap();
        symlink(users.join("private-0"), home.join("file")).unwrap();
        assert_eq!(sweep(place.path()), [home]);
        assert_eq!(fs::read(users.join("private-0")).unwrap(), b"secret");
    }

    #[test]
    fn a_folder_of_another_user_is_left_alone() {
        if !geteuid().is_root() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let folder = dead(place.path(), "teamster-run-theirs");
        std::os::unix::fs::chown(&folder, Some(12345), None).unwrap();
        assert_eq!(sweep(place.path()), [""; 0].map(PathBuf::from));
        assert!(folder.exists());
    }

    #[test]
    fn who_sweeps_and_who_makes_a_folder_do_not_hurt_each_other() {
        let place = tempfile::tempdir().unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        sweep(place.path());
                    }
                });
            }
            let makers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        for n in 0..300 {
                            let folder = RunFolder::new_in(place.path()).unwrap();
                            let file = folder.write("private-0", b"secret").unwrap();
                            assert_eq!(fs::read(file).unwrap(), b"secret", "{n}");
                        }
                    })
                })
                .collect();
            let results: Vec<_> = makers
                .into_iter()
                .map(std::thread::ScopedJoinHandle::join)
                .collect();
            over.store(true, Ordering::Relaxed);
            for result in results {
                result.unwrap();
            }
        });
        sweep(place.path());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
