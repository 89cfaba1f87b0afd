//! Folder of a run's private files, and removal of the folders of killed runs.
//!
//! The owner locks a file in its folder. The kernel releases the lock when the owner dies for any reason, so a folder
//! whose file can be locked has no owner. Process ids are not used.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::unistd::geteuid;

use crate::container::{self, NamedContainer};

/// Prefix of the names of these folders.
const PREFIX: &str = "teamster-run-";
/// Name of the file in each folder that its owner locks.
const OWNER: &str = "owner";
/// Name of the file in a folder that names the run's container.
const CONTAINER: &str = "container";
/// Limit of attempts to create a folder, because another process may remove it before it is locked.
const TRIES: u32 = 100;
/// Limit of attempts to remove a folder, because a process may still write files to it.
const REMOVALS: u32 = 3;

/// The folder of a live run. Dropping this removes it.
#[derive(Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
    /// Locked while it is open. Child processes do not inherit it.
    _owner: File,
}

impl RunFolder {
    /// Creates a folder that only this user can enter. First removes those of dead runs. Blocks.
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

    /// Creates a folder. `None` if another process removed it before it was locked.
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
            // On a file system without locks, no other process can lock it either and consider its run dead.
            Ok(()) | Err(TryLockError::Error(_)) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
        }
        // A process that removes the folder locks the file first and unlinks it afterwards.
        if owner.metadata()?.nlink() == 0 {
            return Ok(None);
        }
        Ok(Some(Self {
            path: folder.keep(),
            _owner: owner,
        }))
    }

    #[cfg(any(feature = "mcp-files", test))]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Notes that the run has this container, which is removed before the folder is.
    pub(crate) fn has_container(&self, container: &NamedContainer) -> io::Result<()> {
        self.write(CONTAINER, container.to_text().as_bytes())?;
        Ok(())
    }

    /// Returns the files and folders in it that are for the CLI, and whether each is a folder.
    pub(crate) fn content(&self) -> io::Result<Vec<(PathBuf, bool)>> {
        let mut content = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if ![OWNER, CONTAINER]
                .iter()
                .any(|own| entry.file_name() == *own)
            {
                content.push((entry.path(), entry.file_type()?.is_dir()));
            }
        }
        content.sort();
        Ok(content)
    }

    /// Ends and removes the run's container, if it has one. If that fails, the sweep of a later run repeats it. Blocks.
    pub(crate) fn end_container(&self) -> io::Result<()> {
        end_container(&self.path, Instant::now() + container::ANSWER)
    }

    /// Creates a file in the folder that only this user can read.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        create_private(&path)?.write_all(content)?;
        Ok(path)
    }

    /// Creates a folder in the folder that only this user can enter.
    pub(crate) fn make_directory(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
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
        // Files that a kept process still writes are removed by the next sweep.
    }
}

/// Creates a file that only this user can read.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Removes the private files that killed runs of this user have left in the directory for temporary files. Returns
/// the removed folders. Files of live runs are kept. A run with private files does this as well.
///
/// Blocks on disk I/O. Files that cannot be removed are skipped.
pub fn sweep_private_files() -> Vec<PathBuf> {
    sweep(&tempfile::env::temp_dir())
}

fn sweep(temporary: &Path) -> Vec<PathBuf> {
    sweep_within(temporary, container::ANSWER)
}

/// Sweeps as [`sweep`] does. `limit` is for the engines of all containers together: one that hangs is not waited for again
/// for each of them.
fn sweep_within(temporary: &Path, limit: Duration) -> Vec<PathBuf> {
    let until = Instant::now() + limit;
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
        .filter(|folder| remove_if_dead(folder, until).unwrap_or(false))
        .collect()
}

/// Removes a folder if its run is dead. Returns whether it was removed. An engine has until then to end its container.
fn remove_if_dead(folder: &Path, until: Instant) -> io::Result<bool> {
    let data = folder.symlink_metadata()?;
    if !data.is_dir() || data.uid() != geteuid().as_raw() {
        return Ok(false);
    }
    let owner = OpenOptions::new()
        .write(true)
        .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
        .open(folder.join(OWNER));
    let owner = match owner {
        // Its owner died before the file was created or after it was removed, or is about to create it. In the
        // last case it creates another folder.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return fs::remove_dir(folder).map(|()| true);
        }
        result => result?,
    };
    if owner.try_lock().is_err() || owner.metadata()?.nlink() == 0 {
        return Ok(false);
    }
    // The lock is held meanwhile, so that no other sweep interferes.
    let ended = end_container(folder, until);
    // Secrets do not wait for an engine.
    let removed = remove(folder);
    ended.and(removed).map(|()| true)
}

/// Ends and removes the container of a run, if it has one.
fn end_container(folder: &Path, until: Instant) -> io::Result<()> {
    let file = folder.join(CONTAINER);
    let text = match fs::read_to_string(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        text => text?,
    };
    // A file that was written in part is that of a run that had not started its container yet.
    if let Some(container) = NamedContainer::of_text(&text) {
        container::end(&container, until)?;
    }
    fs::remove_file(file)
}

/// Removes a folder. The owner's file is removed last, so that the next sweep finds a half-removed folder. Follows
/// no links. If its container may still be there, the file that names it stays, and this fails.
fn remove(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if [OWNER, CONTAINER]
            .iter()
            .any(|own| entry.file_name() == *own)
        {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    if folder.join(CONTAINER).exists() {
        return Err(io::Error::other("its container is still there"));
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

    /// Creates a folder as a killed run leaves it.
    fn dead(temporary: &Path, name: &str) -> PathBuf {
        let folder = temporary.join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join(OWNER), "").unwrap();
        fs::write(folder.join("private-0"), "secret").unwrap();
        folder
    }

    #[test]
    fn a_folder_is_for_this_user_only_and_goes_with_its_owner() {
        let parent = tempfile::tempdir().unwrap();
        let folder = RunFolder::new_in(parent.path()).unwrap();
        let file = folder.write("private-0.toml", b"secret").unwrap();
        assert_eq!(mode(folder.path()), 0o700);
        assert_eq!(mode(&file), 0o600);
        assert_eq!(mode(&folder.path().join(OWNER)), 0o600);
        assert_eq!(fs::read(&file).unwrap(), b"secret");
        let home = folder.make_directory("home").unwrap();
        assert_eq!(mode(&home), 0o700);
        folder.write("home/x", b"secret").unwrap();
        drop(folder);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_sweep_takes_the_dead_and_spares_the_living() {
        let parent = tempfile::tempdir().unwrap();
        let living = RunFolder::new_in(parent.path()).unwrap();
        let file = living.write("private-0", b"secret").unwrap();
        let one = dead(parent.path(), "teamster-run-abc123");
        let empty = parent.path().join("teamster-run-empty");
        fs::create_dir(&empty).unwrap();
        let mut swept = sweep(parent.path());
        swept.sort();
        assert_eq!(swept, [one.clone(), empty.clone()]);
        assert!(!one.exists() && !empty.exists() && file.exists());
        assert_eq!(sweep(parent.path()), [""; 0].map(PathBuf::from));
    }

    #[test]
    fn secrets_do_not_wait_for_the_removal_of_a_container() {
        let parent = tempfile::tempdir().unwrap();
        let folder = dead(parent.path(), "teamster-run-contained");
        let container = NamedContainer {
            client: "/no/such/docker".into(),
            name: "teamster-1".to_owned(),
        };
        fs::write(folder.join(CONTAINER), container.to_text()).unwrap();
        assert_eq!(sweep(parent.path()), [""; 0].map(PathBuf::from));
        assert!(!folder.join("private-0").exists());
        assert!(folder.join(CONTAINER).exists());
        // A later sweep finds it.
        assert!(folder.join(OWNER).exists());
    }

    #[test]
    fn an_engine_that_hangs_is_waited_for_once_in_a_sweep() {
        let parent = tempfile::tempdir().unwrap();
        let client = parent.path().join("docker");
        let hangs = "#!/bin/sh\necho \"$3\" >> \"$0.calls\"\nexec sleep 1000\n";
        fs::write(&client, hangs).unwrap();
        fs::set_permissions(&client, Permissions::from_mode(0o700)).unwrap();
        let folders = ["a", "b", "c"].map(|name| {
            let folder = dead(parent.path(), &format!("{PREFIX}{name}"));
            let container = NamedContainer {
                client: client.clone(),
                name: format!("teamster-{name}"),
            };
            fs::write(folder.join(CONTAINER), container.to_text()).unwrap();
            folder
        });
        let swept = sweep_within(parent.path(), Duration::from_secs(1));
        assert_eq!(swept, [""; 0].map(PathBuf::from));
        let calls = fs::read_to_string(parent.path().join("docker.calls")).unwrap();
        assert_eq!(calls.lines().count(), 1, "{calls}");
        // A later sweep ends the containers; the secrets are gone.
        for folder in folders {
            assert!(folder.join(CONTAINER).exists() && !folder.join("private-0").exists());
        }
    }

    #[test]
    fn sweep_removes_only_run_folders_and_follows_no_link() {
        let parent = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let users = dead(elsewhere.path(), "teamster-run-users");
        // A link to a folder.
        symlink(&users, parent.path().join("teamster-run-link")).unwrap();
        // A folder whose owner's file is a link to a file that could be locked.
        let trap = parent.path().join("teamster-run-trap");
        fs::create_dir(&trap).unwrap();
        symlink(users.join(OWNER), trap.join(OWNER)).unwrap();
        for name in [
            "teamster-run-",
            "teamster-run-a.b",
            "teamster-runs",
            "other",
        ] {
            dead(parent.path(), name);
        }
        fs::write(parent.path().join("teamster-run-file"), "").unwrap();
        assert_eq!(sweep(parent.path()), [""; 0].map(PathBuf::from));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 7);

        // The targets of links in a dead folder are kept.
        let home = dead(parent.path(), "teamster-run-home");
        symlink(&users, home.join("folder")).unwrap();
        symlink(users.join("private-0"), home.join("file")).unwrap();
        assert_eq!(sweep(parent.path()), [home]);
        assert_eq!(fs::read(users.join("private-0")).unwrap(), b"secret");
    }

    #[test]
    fn a_folder_of_another_user_is_left_alone() {
        if !geteuid().is_root() {
            return;
        }
        let parent = tempfile::tempdir().unwrap();
        let folder = dead(parent.path(), "teamster-run-theirs");
        std::os::unix::fs::chown(&folder, Some(12345), None).unwrap();
        assert_eq!(sweep(parent.path()), [""; 0].map(PathBuf::from));
        assert!(folder.exists());
    }

    #[test]
    fn sweep_and_creation_of_a_folder_do_not_conflict() {
        let parent = tempfile::tempdir().unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        sweep(parent.path());
                    }
                });
            }
            let makers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        for n in 0..300 {
                            let folder = RunFolder::new_in(parent.path()).unwrap();
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
        sweep(parent.path());
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
