//! Files that are there whole or not at all.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::NamedTempFile;

/// How the name of a file begins that is about to take the place of another ([`replace_file`]). One that stays
/// was left by a process that was killed.
pub const DRAFT_PREFIX: &str = ".new-";

/// Permissions of a file that replaces another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileMode {
    /// This user only: 0600.
    Private,
    /// As for any new file: 0666, less the user's mask.
    New,
    /// As the existing file; without one as [`New`](Self::New).
    Kept,
}

/// Puts a file with this content in the place of `path`. A reader sees the old one or the new one, also after
/// the power has failed. The folder must be there, and a link is replaced itself. Blocks until the content is
/// on the disk.
pub fn replace_file(path: &Path, content: &[u8], mode: FileMode) -> io::Result<()> {
    draft(path, content, mode)?.persist(path)?;
    Ok(())
}

/// The same where no file may be yet.
pub(crate) fn create_file(path: &Path, content: &[u8], mode: FileMode) -> io::Result<()> {
    draft(path, content, mode)?.persist_noclobber(path)?;
    Ok(())
}

/// A file with this content beside `path`.
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
    // Else it may be empty after the power failed.
    draft.as_file().sync_data()?;
    Ok(draft)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_with_the_mode_that_is_wanted() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a.json");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        fs::File::create(&path).unwrap();
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
