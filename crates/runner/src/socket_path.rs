//! Short paths of sockets, which the system limits to about 100 bytes.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Path of a socket. On Linux it is short, however long the folder's path is.
pub(crate) struct ShortPath {
    path: PathBuf,
    /// The folder that the path leads through, open as long as the path is used.
    _folder: Option<File>,
}

impl ShortPath {
    pub(crate) fn of(folder: &Path, name: &str) -> io::Result<Self> {
        if !cfg!(target_os = "linux") {
            return Ok(Self {
                path: folder.join(name),
                _folder: None,
            });
        }
        let folder = File::open(folder)?;
        Ok(Self {
            path: format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()).into(),
            _folder: Some(folder),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
