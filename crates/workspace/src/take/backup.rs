//! Files as they were before a change, to restore them if it fails half way.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Files as they were. Dropped, the copies are removed.
#[derive(Debug)]
pub(super) struct Backup {
    top: PathBuf,
    folder: PathBuf,
    /// The files, and where they are kept; `None` if there was none.
    files: Vec<(PathBuf, Option<PathBuf>)>,
    /// Directories that did not exist.
    missing: Vec<PathBuf>,
    /// The copies are not removed, because one of them could not be restored.
    stays: bool,
}

impl Backup {
    /// Begins a backup of files of the directory `top`, in a new folder in `folder`, which is on the same file system.
    pub(super) fn new(top: &Path, folder: &Path) -> anyhow::Result<Self> {
        let folder = folder.join(format!("teamster-apply-{}", std::process::id()));
        fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Self {
            top: top.to_owned(),
            folder,
            files: Vec::new(),
            missing: Vec::new(),
            stays: false,
        })
    }

    /// Keeps a file that will be replaced, not written to: as a hard link, which takes no space.
    pub(super) fn keep(&mut self, file: &Path) -> anyhow::Result<()> {
        let path = self.top.join(file);
        let parents = path.ancestors().skip(1).take_while(|it| *it != self.top);
        let missing = parents.filter(|it| fs::symlink_metadata(it).is_err());
        self.missing.extend(missing.map(Path::to_owned));
        self.keep_with(path, |from, to| {
            // A file system may have no hard links.
            fs::hard_link(from, to).or_else(|_| copy(from, to))
        })
    }

    /// Keeps a file that may be written to.
    pub(super) fn keep_copy(&mut self, path: &Path) -> anyhow::Result<()> {
        self.keep_with(path.to_owned(), copy)
    }

    fn keep_with(
        &mut self,
        path: PathBuf,
        keep: impl FnOnce(&Path, &Path) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let kept = match fs::symlink_metadata(&path) {
            // What is in place of a file stays: git changes nothing there.
            Ok(about) if about.is_dir() => return Ok(()),
            Ok(_) => {
                let kept = self.folder.join(self.files.len().to_string());
                keep(&path, &kept).with_context(|| format!("cannot keep {}", path.display()))?;
                Some(kept)
            }
            Err(_) => None,
        };
        self.files.push((path, kept));
        Ok(())
    }

    /// Restores all files. Tries each, and returns the first error.
    pub(super) fn restore(mut self) -> anyhow::Result<()> {
        let mut restored = Ok(());
        for (path, kept) in std::mem::take(&mut self.files) {
            let done = match &kept {
                Some(kept) => path
                    .parent()
                    .map_or(Ok(()), fs::create_dir_all)
                    .and_then(|()| fs::rename(kept, &path)),
                None => match fs::remove_file(&path) {
                    Err(error) if fs::symlink_metadata(&path).is_ok() => Err(error),
                    _ => Ok(()),
                },
            };
            let done = done.with_context(|| format!("cannot restore {}", path.display()));
            restored = restored.and(done);
        }
        // The deepest first.
        self.missing.sort();
        for folder in self.missing.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
        self.stays = restored.is_err();
        let folder = self.folder.display();
        restored.with_context(|| format!("files as they were before are in {folder}"))
    }
}

impl Drop for Backup {
    fn drop(&mut self) {
        if !self.stays {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    match fs::read_link(from) {
        Ok(target) => std::os::unix::fs::symlink(target, to),
        Err(_) => fs::copy(from, to).map(drop),
    }
}
