//! All operations of a lease on the disk. A test can stop or fail each of them here. Otherwise they are plain system
//! calls.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

macro_rules! steps {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A change on the disk.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs)] // The names say it.
        pub enum Step { $($(#[$doc])* $name,)* }

        #[cfg(feature = "test-hooks")]
        impl Step {
            /// All steps.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the name of the step.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }
        }
    };
}

steps! {
    MakeJournalFolder,
    CreateLock,
    CreateIgnore,
    WriteIgnore,
    CreateHolder,
    LinkOriginal,
    CreateCopy,
    OwnCopy,
    WriteCopy,
    ModeCopy,
    TimeCopy,
    SyncCopy,
    CreateJournal,
    WriteJournal,
    SyncJournal,
    RenameJournal,
    SyncJournalFolder,
    SyncPlace,
    MakeFolder,
    CreateNew,
    OwnNew,
    WriteNew,
    ModeNew,
    SyncNew,
    ReplaceFile,
    SyncFolder,
    ModeOriginal,
    RestoreFile,
    RemoveFile,
    RemoveFolder,
    RemoveJournal,
    RemoveHolder,
    RemoveOriginal,
    RemoveNew,
    RemoveDraft,
    RemoveIgnore,
    RemoveLock,
    RemoveJournalFolder,
}

/// Moment of a step at which the hook is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before the step.
    Before,
    /// After the first half of the bytes was written.
    Middle,
}

type Hook = dyn Fn(Step, Moment) -> io::Result<()> + Send + Sync;

/// The disk, with an optional hook of a test.
#[derive(Clone)]
pub struct Disk {
    hook: Option<Arc<Hook>>,
    /// Time limit of waiting for others.
    pub(super) patience: Duration,
}

impl Default for Disk {
    fn default() -> Self {
        Self {
            hook: None,
            patience: Duration::from_secs(10),
        }
    }
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Disk")
    }
}

#[cfg(feature = "test-hooks")]
impl Disk {
    /// Creates a disk that calls a hook before each step. An error of the hook replaces the step.
    pub fn with_hook(
        hook: impl Fn(Step, Moment) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self {
            hook: Some(Arc::new(hook)),
            ..Self::default()
        }
    }

    /// Sets the time limit of waiting for others. Default: 10 s.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }
}

impl Disk {
    fn ask(&self, step: Step, moment: Moment) -> io::Result<()> {
        match &self.hook {
            Some(hook) => hook(step, moment),
            None => Ok(()),
        }
    }

    /// Creates a folder. A private one is accessible to this user only.
    pub(super) fn make_folder(&self, step: Step, path: &Path, private: bool) -> io::Result<()> {
        self.ask(step, Moment::Before)?;
        let mut builder = fs::DirBuilder::new();
        builder.recursive(false);
        if private {
            builder.mode(0o700);
        }
        builder.create(path)
    }

    /// Creates a file for this user only.
    pub(super) fn create(&self, step: Step, path: &Path) -> io::Result<File> {
        self.ask(step, Moment::Before)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        options.mode(0o600).open(path)
    }

    /// Creates a file for this user only, with a unique name. Returns the file and its name.
    pub(super) fn create_named(
        &self,
        step: Step,
        folder: &Path,
        prefix: &str,
    ) -> io::Result<(File, String)> {
        self.ask(step, Moment::Before)?;
        let (file, path) = tempfile::Builder::new()
            .prefix(prefix)
            .rand_bytes(16)
            .tempfile_in(folder)?
            .keep()
            .map_err(|error| error.error)?;
        // The name consists of the prefix and ASCII letters and digits.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok((file, name.into_owned()))
    }

    pub(super) fn write(&self, step: Step, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        self.ask(step, Moment::Before)?;
        let (first, second) = bytes.split_at(bytes.len() / 2);
        file.write_all(first)?;
        self.ask(step, Moment::Middle)?;
        file.write_all(second)
    }

    pub(super) fn sync(&self, step: Step, file: &File) -> io::Result<()> {
        self.ask(step, Moment::Before)?;
        file.sync_all()
    }

    /// Syncs a folder, so that its entries survive a power failure.
    pub(super) fn sync_folder(&self, step: Step, path: &Path) -> io::Result<()> {
        self.ask(step, Moment::Before)?;
        match File::open(path)?.sync_all() {
            // Some file systems do not support it.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::InvalidInput | ErrorKind::Unsupported
                ) =>
            {
                Ok(())
            }
            done => done,
        }
    }

    /// Sets the owner and the group of a file to those of another, if they differ.
    pub(super) fn own(&self, step: Step, file: &File, like: &fs::Metadata) -> io::Result<()> {
        self.ask(step, Moment::Before)?;
        let now = file.metadata()?;
        let other = |new: u32, old: u32| (new != old).then_some(new);
        let owner = other(like.uid(), now.uid());
        let group = other(like.gid(), now.gid());
        if owner.is_some() || group.is_some() {
            fchown(file, owner, group)?;
        }
        Ok(())
    }

    /// Sets the mode of a file to that of another.
    pub(super) fn mode(&self, step: Step, file: &File, like: &fs::Metadata) -> io::Result<()> {
        self.ask(step, Moment::Before)?;
        file.set_permissions(like.permissions())
    }

    /// Sets the modification time of a file to that of another.
    pub(super) fn time(&self, step: Step, file: &File, like: &fs::Metadata) -> io::Result<()> {
        self.ask(step, Moment::Before)?;
        file.set_times(fs::FileTimes::new().set_modified(like.modified()?))
    }

    pub(super) fn link(&self, step: Step, from: &Path, to: &Path) -> io::Result<()> {
        self.ask(step, Moment::Before)?;
        fs::hard_link(from, to)
    }

    pub(super) fn rename(&self, step: Step, from: &Path, to: &Path) -> io::Result<()> {
        self.ask(step, Moment::Before)?;
        fs::rename(from, to)
    }

    /// Removes a file, which may be missing.
    pub(super) fn remove_file(&self, step: Step, path: &Path) -> io::Result<()> {
        if fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return Ok(());
        }
        self.ask(step, Moment::Before)?;
        match fs::remove_file(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Removes an empty folder. Returns whether it is gone.
    pub(super) fn remove_folder(&self, step: Step, path: &Path) -> io::Result<bool> {
        self.ask(step, Moment::Before)?;
        match fs::remove_dir(path) {
            Ok(()) => Ok(true),
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(true),
                ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists => Ok(false),
                _ => Err(error),
            },
        }
    }
}

/// Returns whether a path still leads to an open file.
pub(super) fn is_same(path: &Path, file: &File) -> io::Result<bool> {
    let there = match fs::symlink_metadata(path) {
        Ok(there) => there,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    Ok(same_file(&there, &file.metadata()?))
}

/// Returns whether two names lead to one file.
pub(super) fn same_file(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    a.dev() == b.dev() && a.ino() == b.ino()
}

/// Returns whether two files have the same mode.
pub(super) fn same_mode(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    a.mode() == b.mode()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;

    // That every step is reached is asserted by the tests that kill a process before each.
    #[test]
    fn a_synced_file_was_synced() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::default();
        let file = disk
            .create(Step::CreateNew, &folder.path().join("a"))
            .unwrap();
        disk.sync(Step::SyncNew, &file).unwrap();
        // A pipe cannot be synced.
        let (_reader, writer) = io::pipe().unwrap();
        let pipe = File::from(OwnedFd::from(writer));
        assert!(disk.sync(Step::SyncNew, &pipe).is_err());
    }
}
