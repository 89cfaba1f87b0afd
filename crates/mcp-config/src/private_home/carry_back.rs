//! Merging of files from a private home into the user's own, without loss on either side.

use std::fs::{self, File, FileTimes, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

/// The state of a file, used to detect a later change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

impl Stamp {
    /// Returns the current state, following links, or `None` if the file is missing.
    pub(super) fn of(path: &Path) -> Option<Self> {
        path.metadata().ok().map(|data| Self {
            device: data.dev(),
            inode: data.ino(),
            length: data.len(),
            modified: (data.mtime(), data.mtime_nsec()),
        })
    }
}

/// Copies a file or a folder to its location. An existing file is replaced only if its state is still `known`. Folders
/// are merged. Nothing is deleted.
pub(super) fn carry_back(from: &Path, to: &Path, known: Option<&Stamp>, lost: &mut Vec<String>) {
    let result = from
        .symlink_metadata()
        .and_then(|data| carry(from, to, &data, known, lost));
    match result {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            lost.push(format!(
                "{}: changed by another program during the run as well; that stays, and what the CLI \
                 wrote there is lost",
                to.display()
            ));
        }
        Err(error) => lost.push(format!(
            "{}: what the CLI wrote there is lost: {error}",
            to.display()
        )),
    }
}

/// Fails with `AlreadyExists` if the target must not be replaced.
fn carry(
    from: &Path,
    to: &Path,
    data: &Metadata,
    known: Option<&Stamp>,
    lost: &mut Vec<String>,
) -> io::Result<()> {
    if data.is_dir() {
        return carry_folder(from, to, data, lost);
    }
    if data.is_symlink() {
        let leads_to = fs::read_link(from)?;
        if fs::read_link(to).is_ok_and(|there| there == leads_to) {
            return Ok(());
        }
        make_parent(to)?;
        return symlink(leads_to, to);
    }
    if !data.is_file() || same_content(from, to) {
        // A socket is useless without its process.
        return Ok(());
    }
    if known.is_some() && Stamp::of(to).as_ref() != known {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    // Follow a link of the user.
    let to = match to.canonicalize() {
        Ok(to) if known.is_some() => to,
        _ => to.to_owned(),
    };
    make_parent(&to)?;
    // Temporary folders may be on another disk, and a file must appear atomically.
    let folder = to.parent().unwrap_or(Path::new("/"));
    let mut copy = tempfile::NamedTempFile::new_in(folder)?;
    io::copy(&mut File::open(from)?, copy.as_file_mut())?;
    copy.as_file().set_permissions(data.permissions())?;
    if let Ok(modified) = data.modified() {
        copy.as_file()
            .set_times(FileTimes::new().set_modified(modified))?;
    }
    copy.as_file().sync_all()?;
    let placed = if known.is_some() {
        copy.persist(to)
    } else {
        copy.persist_noclobber(to)
    };
    placed.map(drop).map_err(|error| error.error)
}

fn carry_folder(from: &Path, to: &Path, data: &Metadata, lost: &mut Vec<String>) -> io::Result<()> {
    if to.symlink_metadata().is_err() {
        make_parent(to)?;
        // This fails across disks. Then the files are copied.
        if fs::rename(from, to).is_ok() {
            return Ok(());
        }
        fs::create_dir(to)?;
        fs::set_permissions(to, data.permissions())?;
    } else if !to.is_dir() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        carry_back(&entry.path(), &to.join(entry.file_name()), None, lost);
    }
    Ok(())
}

/// Creates the parent folder, because the user's folder itself may be missing.
fn make_parent(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    match path.parent() {
        Some(parent) => fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent),
        None => Ok(()),
    }
}

fn same_content(one: &Path, other: &Path) -> bool {
    let same_length = match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) => other.is_file() && one.len() == other.len(),
        _ => false,
    };
    same_length && matches!((fs::read(one), fs::read(other)), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::time::{Duration, SystemTime};

    /// A private folder and the user's.
    struct Folders {
        from: PathBuf,
        to: PathBuf,
        _kept: [tempfile::TempDir; 2],
    }

    impl Folders {
        fn new() -> Self {
            Self::with(tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap())
        }

        fn with(one: tempfile::TempDir, other: tempfile::TempDir) -> Self {
            Self {
                from: one.path().join("private"),
                to: other.path().join("users"),
                _kept: [one, other],
            }
        }

        fn carry(&self, known: Option<&Stamp>) -> Vec<String> {
            let mut lost = Vec::new();
            carry_back(&self.from, &self.to, known, &mut lost);
            lost
        }
    }

    fn read(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn new_file_is_carried_back_with_mode_and_time() {
        let mut folders = Folders::new();
        fs::write(&folders.from, "token").unwrap();
        fs::set_permissions(&folders.from, fs::Permissions::from_mode(0o640)).unwrap();
        let time = SystemTime::now() - Duration::from_hours(1);
        let file = File::options().append(true).open(&folders.from).unwrap();
        file.set_times(FileTimes::new().set_modified(time)).unwrap();
        folders.to = folders.to.join("deeper/file");
        assert_eq!(folders.carry(None), [""; 0]);
        assert_eq!(read(&folders.to), "token");
        let data = folders.to.metadata().unwrap();
        assert_eq!(data.permissions().mode() & 0o7777, 0o640);
        assert_eq!(data.modified().unwrap(), time);
    }

    #[test]
    fn a_known_file_is_replaced_only_if_unchanged() {
        let folders = Folders::new();
        fs::write(&folders.to, "old").unwrap();
        let known = Stamp::of(&folders.to);
        fs::write(&folders.from, "new").unwrap();
        assert_eq!(folders.carry(known.as_ref()), [""; 0]);
        assert_eq!(read(&folders.to), "new");

        fs::write(&folders.from, "newer").unwrap();
        let lost = format!(
            "{}: changed by another program during the run as well; that stays, and what the CLI \
             wrote there is lost",
            folders.to.display()
        );
        assert_eq!(folders.carry(known.as_ref()), [lost.as_str()]);
        assert_eq!(read(&folders.to), "new");
        // A file that was not there before is not replaced either.
        assert_eq!(folders.carry(None), [lost.as_str()]);
        assert_eq!(read(&folders.to), "new");
        // A file that was deleted meanwhile stays deleted: it may have been a logout.
        fs::remove_file(&folders.to).unwrap();
        assert_eq!(folders.carry(known.as_ref()), [lost]);
        assert!(!folders.to.exists());
    }

    #[test]
    fn the_same_content_is_no_conflict() {
        let folders = Folders::new();
        fs::write(&folders.to, "same").unwrap();
        fs::write(&folders.from, "same").unwrap();
        assert_eq!(folders.carry(None), [""; 0]);
    }

    #[test]
    fn a_file_that_the_user_has_behind_a_link_is_replaced_there() {
        let folders = Folders::new();
        let real = folders.to.with_file_name("real");
        fs::write(&real, "old").unwrap();
        symlink(&real, &folders.to).unwrap();
        fs::write(&folders.from, "new").unwrap();
        assert_eq!(folders.carry(Stamp::of(&folders.to).as_ref()), [""; 0]);
        assert!(folders.to.is_symlink());
        assert_eq!(read(&real), "new");
    }

    fn folders_are_joined(folders: &Folders) {
        fs::create_dir_all(folders.from.join("both")).unwrap();
        fs::create_dir_all(folders.from.join("new")).unwrap();
        fs::write(folders.from.join("both/mine"), "1").unwrap();
        fs::write(folders.from.join("both/clash"), "2").unwrap();
        fs::write(folders.from.join("new/file"), "3").unwrap();
        symlink("file", folders.from.join("new/link")).unwrap();
        fs::create_dir_all(folders.to.join("both")).unwrap();
        fs::write(folders.to.join("both/theirs"), "4").unwrap();
        fs::write(folders.to.join("both/clash"), "5").unwrap();
        let lost = folders.carry(None);
        assert_eq!(lost.len(), 1, "{lost:?}");
        let clash = folders.to.join("both/clash");
        assert!(lost[0].starts_with(&format!("{}: ", clash.display())));
        for (file, content) in [
            ("both/mine", "1"),
            ("both/theirs", "4"),
            ("both/clash", "5"),
            ("new/file", "3"),
            ("new/link", "3"),
        ] {
            assert_eq!(read(&folders.to.join(file)), content, "{file}");
        }
        assert!(folders.to.join("new/link").is_symlink());
    }

    #[test]
    fn folders_are_joined_and_new_ones_appear_atomically() {
        folders_are_joined(&Folders::new());
    }

    #[test]
    fn folders_come_from_another_disk_too() {
        let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
            return;
        };
        folders_are_joined(&Folders::with(memory, tempfile::tempdir().unwrap()));
    }

    #[test]
    fn a_folder_does_not_replace_a_file_nor_a_file_a_folder() {
        let folders = Folders::new();
        fs::create_dir(&folders.from).unwrap();
        fs::write(&folders.to, "file").unwrap();
        assert_eq!(folders.carry(None).len(), 1);
        assert_eq!(read(&folders.to), "file");

        let folders = Folders::new();
        fs::write(&folders.from, "file").unwrap();
        fs::create_dir(&folders.to).unwrap();
        assert_eq!(folders.carry(Stamp::of(&folders.to).as_ref()).len(), 1);
        assert!(folders.to.is_dir());
    }
}
