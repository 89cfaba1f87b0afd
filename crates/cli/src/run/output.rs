//! The file of `--output`, which gets the agent's last message.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use teamster::RunResult;
use teamster_process::{FileMode, replace_file};

use crate::render::last_message;

/// A file for the last message. Its content is kept until there is one.
pub(crate) struct Output<'a> {
    path: &'a Path,
    /// The open file, if it cannot be replaced, such as a pipe or a device.
    stream: Option<File>,
}

impl<'a> Output<'a> {
    /// Checks that the file can be written, without changing its content. Every error is a usage error.
    pub(crate) fn open(path: &'a Path) -> anyhow::Result<Self> {
        let stream = check_writable(path)
            .with_context(|| format!("--output: cannot write to {}", path.display()))?;
        Ok(Self { path, stream })
    }

    /// Replaces the content of the file with the last message. Returns `false`, and writes nothing, if there is none.
    pub(super) fn write(mut self, result: &RunResult) -> anyhow::Result<bool> {
        let message = with_newline(last_message(result));
        if message.is_empty() {
            return Ok(false);
        }
        let written = match &mut self.stream {
            Some(stream) => stream.write_all(message.as_bytes()),
            None => replace(self.path, message.as_bytes()),
        };
        written.with_context(|| format!("--output: cannot write to {}", self.path.display()))?;
        Ok(true)
    }
}

/// Checks that a message can be written to this path. Returns the open file unless it is a regular one.
fn check_writable(path: &Path) -> io::Result<Option<File>> {
    if fs::symlink_metadata(path).is_err() {
        // The path must name a file.
        path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        tempfile::tempfile_in(folder_of(path))?;
        return Ok(None);
    }
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    let is_regular = file.metadata()?.is_file();
    Ok((!is_regular).then_some(file))
}

/// Replaces the file atomically. Writes in place if its folder is not writable.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    // Replace the target of a symlink, not the link.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match replace_file(path, content, FileMode::Kept) {
        // The file may be writable although its folder is not.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            fs::write(path, content)
        }
        done => done,
    }
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn with_newline(mut message: String) -> String {
    if !message.is_empty() && !message.ends_with('\n') {
        message.push('\n');
    }
    message
}
