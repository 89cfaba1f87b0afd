//! Atomic creation and replacement of files.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

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

/// Like [`replace_file`], but fails if the file exists.
pub(crate) fn create_file(path: &Path, content: &[u8], mode: FileMode) -> io::Result<()> {
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
