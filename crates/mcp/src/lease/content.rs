//! The file itself: reading it, keeping its original, putting another text or the original in its place.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use super::disk::{Step, same_file, same_mode};
use super::folder::{Folder, Stop, refused};

/// Content of a file.
pub(super) struct Content {
    pub(super) text: String,
    meta: fs::Metadata,
}

/// Metadata of a file, if it exists.
pub(super) fn look(path: &Path) -> Result<Option<fs::Metadata>, Stop> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_file() => Ok(Some(meta)),
        Ok(meta) if meta.is_symlink() => Err(Stop::Failed(
            "it has become a symbolic link; put a file there again".to_owned(),
        )),
        Ok(_) => Err(Stop::Failed("it is not a regular file".to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(refused("look at", path, &error)),
    }
}

/// The text of a file, if it is there.
pub(super) fn read(path: &Path) -> Result<Option<Content>, Stop> {
    let Some(meta) = look(path)? else {
        return Ok(None);
    };
    match fs::read(path).map(String::from_utf8) {
        Ok(Ok(text)) => Ok(Some(Content { text, meta })),
        Ok(Err(_)) => Err(Stop::Failed("it is not UTF-8: convert it".to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(refused("read", path, &error)),
    }
}

fn text(content: Option<&Content>) -> Option<&str> {
    content.map(|content| &*content.text)
}

impl Folder {
    /// The text of the file, if it is there.
    pub(super) fn read(&self) -> Result<Option<Content>, Stop> {
        read(&self.place.file())
    }

    /// Stops if the file is no longer what it was when it was read.
    fn unchanged(&self, content: Option<&Content>) -> Result<(), Stop> {
        if text(self.read()?.as_ref()) == text(content) {
            Ok(())
        } else {
            Err(Stop::Again)
        }
    }

    /// Keeps the original: by a second name for it, so that it can come back as the very file that it
    /// is; by a copy where the file system knows no second names. Gives its text.
    pub(super) fn keep_original(&self) -> Result<Option<Content>, Stop> {
        let file = self.place.file();
        self.clear_original()?;
        // A second name for a pipe or a folder is nothing to begin with.
        let Some(content) = read(&file)? else {
            return Ok(None);
        };
        let original = self.original();
        match self.disk.link(Step::LinkOriginal, &file, &original) {
            // What was linked counts: the file may have been replaced since.
            Ok(()) => read(&original),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(Stop::Again),
            Err(error) if knows_no_links(&error) => {
                self.copy_original(&content)
                    .map_err(|error| refused("copy it to", &original, &error))?;
                Ok(Some(content))
            }
            Err(error) => Err(refused("link", &original, &error)),
        }
    }

    fn copy_original(&self, content: &Content) -> io::Result<()> {
        let Content { text, meta } = content;
        let disk = &self.disk;
        let mut copy = disk.create(Step::CreateCopy, &self.original())?;
        disk.own(Step::OwnCopy, &copy, meta)?;
        disk.write(Step::WriteCopy, &mut copy, text.as_bytes())?;
        disk.mode(Step::ModeCopy, &copy, meta)?;
        disk.time(Step::TimeCopy, &copy, meta)?;
        disk.sync(Step::SyncCopy, &copy)
    }

    /// Puts another text in the place of the file, with the mode and the owner of the old one.
    pub(super) fn replace(&self, old: Option<&Content>, next: &str) -> Result<(), Stop> {
        let new = self.clear_new()?;
        let file = self.place.file();
        let write = || {
            let disk = &self.disk;
            let mut out = disk.create(Step::CreateNew, &new)?;
            if let Some(old) = old {
                disk.own(Step::OwnNew, &out, &old.meta)?;
            }
            disk.write(Step::WriteNew, &mut out, next.as_bytes())?;
            if let Some(old) = old {
                disk.mode(Step::ModeNew, &out, &old.meta)?;
            }
            disk.sync(Step::SyncNew, &out)
        };
        write().map_err(|error| refused("write", &new, &error))?;
        self.unchanged(old)?;
        self.disk
            .rename(Step::ReplaceFile, &new, &file)
            .map_err(|error| refused("replace", &file, &error))?;
        self.sync_folder()
    }

    /// Puts the original in the place of the file. `false` if there is none, because it is there already.
    pub(super) fn restore_original(&self, old: &Content) -> Result<bool, Stop> {
        let (file, original) = (self.place.file(), self.original());
        let meta = match fs::symlink_metadata(&original) {
            Ok(meta) => meta,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(refused("look at", &original, &error)),
        };
        if same_file(&meta, &old.meta) {
            return Ok(true);
        }
        // Ours had the mode of the original: another one was set since.
        if !same_mode(&meta, &old.meta) {
            File::open(&original)
                .and_then(|file| self.disk.mode(Step::ModeOriginal, &file, &old.meta))
                .map_err(|error| refused("change the mode of", &original, &error))?;
        }
        self.unchanged(Some(old))?;
        self.disk
            .rename(Step::RestoreFile, &original, &file)
            .map_err(|error| refused("replace", &file, &error))?;
        Ok(true)
    }

    /// Removes the file.
    pub(super) fn remove_target(&self, old: &Content) -> Result<(), Stop> {
        self.unchanged(Some(old))?;
        let file = self.place.file();
        self.disk
            .remove_file(Step::RemoveFile, &file)
            .map_err(|error| refused("remove", &file, &error))
    }

    /// Makes what was done to the file last.
    pub(super) fn sync_folder(&self) -> Result<(), Stop> {
        let folder = self.place.folder();
        match self.disk.sync_folder(Step::SyncFolder, &folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            done => done.map_err(|error| refused("sync", &folder, &error)),
        }
    }
}

/// Whether a file system cannot give a file a second name: the answers of FAT, of FUSE, of another
/// device, of a file with too many, and of Linux for a file of another user.
fn knows_no_links(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied
            | ErrorKind::Unsupported
            | ErrorKind::CrossesDevices
            | ErrorKind::TooManyLinks
            | ErrorKind::InvalidInput
    )
}
