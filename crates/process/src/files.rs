//! Atomic creation and replacement of files, private folders, and opening of files that others could have replaced.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use nix::fcntl::OFlag;
use tempfile::NamedTempFile;

/// Prefix of the name of a file that is about to replace another ([`replace_file`]). A remaining one was left by a
/// killed process.
pub const DRAFT_PREFIX: &str = ".new-";

/// Permissions of a file that replaces another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileMode {
    /// Access for this user only: 0600.
    Private,
    /// The default of new files: 0666 without the bits of the umask.
    New,
    /// Those of the existing file; without one, those of [`New`](Self::New).
    Kept,
}

/// Atomically replaces the file at `path` by one with this content. A reader sees the old or the new file, even after
/// a power failure. The directory MUST exist. A symbolic link at `path` is replaced itself. Blocks until the content
/// is on disk.
///
/// # Errors
///
/// Fails if the file cannot be written. Then the old file is unchanged.
pub fn replace_file(path: &Path, content: &[u8], mode: FileMode) -> io::Result<()> {
    draft(path, content, mode)?.persist(path)?;
    Ok(())
}

/// Creates a folder that only its owner can enter. Missing parents get the usual permissions.
///
/// # Errors
///
/// Fails if the folder cannot be created, or something else has its name.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
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

/// Opens a regular file, which may be a link to one. Never waits for another process, as opening a pipe does.
///
/// # Errors
///
/// Fails if the file cannot be opened, or is not a regular file.
pub fn open_regular_file(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    open(options, OFlag::empty(), path)
}

/// Opens a regular file, as [`open_regular_file`] does. A link at its name is an error.
///
/// # Errors
///
/// Fails as [`open_regular_file`] does, and if the path is a link.
pub fn open_unlinked_file(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    open(options, OFlag::O_NOFOLLOW, path)
}

fn open(options: &mut OpenOptions, flags: OFlag, path: &Path) -> io::Result<File> {
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

/// Like [`replace_file`], but fails if the file exists.
///
/// # Errors
///
/// Fails if the file exists or cannot be written.
pub fn create_file(path: &Path, content: &[u8], mode: FileMode) -> io::Result<()> {
    draft(path, content, mode)?.persist_noclobber(path)?;
    Ok(())
}

/// Creates a temporary file with this content in the directory of `path`.
fn draft(path: &Path, content: &[u8], mode: FileMode) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let mut draft = tempfile::Builder::new();
    draft.prefix(DRAFT_PREFIX);
    if mode != FileMode::Private {
        draft.permissions(Permissions::from_mode(0o666));
    }
    let mut draft = draft.tempfile_in(folder.unwrap_or(Path::new(".")))?;
    if mode == FileMode::Kept
        && let Ok(there) = fs::metadata(path)
    {
        draft.as_file().set_permissions(there.permissions())?;
    }
    draft.write_all(content)?;
    sync(draft.as_file())?;
    Ok(draft)
}

/// Syncs a new file before it replaces another. Without this it may be empty after a power failure.
fn sync(file: &File) -> io::Result<()> {
    #[cfg(test)]
    tests::SYNCED.with(|synced| synced.set(synced.get() + 1));
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::os::fd::OwnedFd;

    thread_local! {
        pub(super) static SYNCED: Cell<u32> = const { Cell::new(0) };
    }

    #[test]
    fn a_file_is_synced_before_it_is_in_its_place() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a.json");
        replace_file(&path, b"x", FileMode::New).unwrap();
        assert_eq!(SYNCED.get(), 1);
        create_file(&temp.path().join("b"), b"x", FileMode::New).unwrap();
        assert_eq!(SYNCED.get(), 2);
        // A pipe cannot be synced.
        let (_reader, writer) = io::pipe().unwrap();
        assert!(sync(&File::from(OwnedFd::from(writer))).is_err());
    }

    #[test]
    fn a_file_is_replaced_with_the_mode_that_is_wanted() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a.json");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        File::create(&path).unwrap();
        let new = mode();
        for (wanted, expected) in [
            (FileMode::Private, 0o600),
            (FileMode::Kept, 0o600),
            (FileMode::New, new),
        ] {
            let content = format!("{wanted:?}");
            replace_file(&path, content.as_bytes(), wanted).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
            assert_eq!(mode(), expected, "{wanted:?}");
        }
        fs::remove_file(&path).unwrap();
        replace_file(&path, b"x", FileMode::Kept).unwrap();
        assert_eq!(mode(), new);
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_placement_leaves_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("folder");
        fs::create_dir(&path).unwrap();
        assert!(replace_file(&path, b"x", FileMode::New).is_err());
        assert!(create_file(&path, b"x", FileMode::New).is_err());
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
    }
}
