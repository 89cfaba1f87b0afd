//! Content of the leased file: reading it, keeping its original, replacing it and restoring it.

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

/// Returns the metadata of a file, if it exists.
pub(super) fn look(path: &Path) -> Result<Option<fs::Metadata>, Stop> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_file() => Ok(Some(meta)),
        Ok(meta) if meta.is_symlink() => Err(Stop::Failed(
            "it is a symbolic link now; replace it with a file".to_owned(),
        )),
        Ok(_) => Err(Stop::Failed("it is not a regular file".to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(refused("look at", path, &error)),
    }
}

/// Reads a file, if it exists.
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
    /// Reads the leased file, if it exists.
    pub(super) fn read(&self) -> Result<Option<Content>, Stop> {
        read(&self.location.file())
    }

    /// Stops if the file has changed since it was read.
    fn unchanged(&self, content: Option<&Content>) -> Result<(), Stop> {
        if text(self.read()?.as_ref()) == text(content) {
            Ok(())
        } else {
            Err(Stop::Again)
        }
    }

    /// Keeps the original by a hard link, so that the same file can be restored, or by a copy on a file system without
    /// hard links. Returns the original's content.
    pub(super) fn keep_original(&self) -> Result<Option<Content>, Stop> {
        let file = self.location.file();
        self.clear_original()?;
        // A pipe or a folder must not be linked.
        let Some(content) = read(&file)? else {
            return Ok(None);
        };
        let original = self.original();
        match self.disk.link(Step::LinkOriginal, &file, &original) {
            // The linked file counts: the file may have been replaced since.
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

    /// Replaces the content of the file. The new file has the mode and the owner of the old one.
    pub(super) fn replace(&self, old: Option<&Content>, next: &str) -> Result<(), Stop> {
        let new = self.clear_new()?;
        let file = self.location.file();
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

    /// Replaces the file by the original. Returns `false` if there is none, because it was restored already.
    pub(super) fn restore_original(&self, old: &Content) -> Result<bool, Stop> {
        let (file, original) = (self.location.file(), self.original());
        let meta = match fs::symlink_metadata(&original) {
            Ok(meta) => meta,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(refused("look at", &original, &error)),
        };
        if same_file(&meta, &old.meta) {
            return Ok(true);
        }
        // Our file had the mode of the original, so another mode was set since.
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

    /// Removes the leased file.
    pub(super) fn remove_target(&self, old: &Content) -> Result<(), Stop> {
        self.unchanged(Some(old))?;
        let file = self.location.file();
        self.disk
            .remove_file(Step::RemoveFile, &file)
            .map_err(|error| refused("remove", &file, &error))
    }

    /// Syncs the file's folder, so that the change survives a power failure.
    pub(super) fn sync_folder(&self) -> Result<(), Stop> {
        let folder = self.location.folder();
        match self.disk.sync_folder(Step::SyncFolder, &folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            done => done.map_err(|error| refused("sync", &folder, &error)),
        }
    }
}

/// Returns whether a file system cannot link a file: the errors of FAT, of FUSE, of another device, of a file with too
/// many links, and of Linux for a file of another user.
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
