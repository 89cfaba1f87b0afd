//! `--output`: the agent's last message in a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context;
use teamster::{AgentEvent, LogEntry, RunResult};
use teamster_core::sync::lock;
use teamster_process::{FileMode, replace_file};

use crate::render::{Sink, last_message};

/// A file for the last message. It is as it was until there is one.
pub(crate) struct Output<'a> {
    path: &'a Path,
    /// One that cannot be replaced, such as a pipe or a device: it is open from the beginning.
    stream: Option<File>,
    message: Arc<Mutex<String>>,
}

impl<'a> Output<'a> {
    /// Sees whether the file can be written, and changes nothing. Every error is one of usage.
    pub(crate) fn open(path: &'a Path) -> anyhow::Result<Self> {
        let stream = can_be_written(path)
            .with_context(|| format!("--output: cannot write to {}", path.display()))?;
        Ok(Self {
            path,
            stream,
            message: Arc::default(),
        })
    }

    /// The same sink, with the last message kept on the way.
    pub(crate) fn keeping(&self, inner: Box<dyn Sink>) -> Box<dyn Sink> {
        Box::new(Keeping {
            inner,
            message: self.message.clone(),
        })
    }

    /// Keeps the last message of a run that has ended.
    pub(super) fn keep(&self, result: &RunResult) {
        *lock(&self.message) = with_newline(last_message(result));
    }

    /// Replaces the content of the file with the last message. Without one nothing is written, and the
    /// result is false.
    pub(super) fn write(mut self) -> anyhow::Result<bool> {
        let message = lock(&self.message);
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

/// Whether a message can be written to this path: the open file, if that is no regular one.
fn can_be_written(path: &Path) -> io::Result<Option<File>> {
    if fs::symlink_metadata(path).is_err() {
        // Also what this ends with, such as a slash, must fit a file.
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

/// Writes the file whole or not at all, where its folder allows that.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    // A link stays one.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match replace_file(path, content, FileMode::Kept) {
        // The file may be changed, but not the folder.
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

struct Keeping {
    inner: Box<dyn Sink>,
    message: Arc<Mutex<String>>,
}

impl Sink for Keeping {
    fn event(&mut self, entry: &LogEntry, now: Duration) -> io::Result<()> {
        if let AgentEvent::Done(done) = &entry.event {
            *lock(&self.message) = with_newline(last_message(&done.result));
        }
        self.inner.event(entry, now)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }

    fn tick(&mut self, now: Duration) {
        self.inner.tick(now);
    }

    fn stopping(&mut self, now: Duration) {
        self.inner.stopping(now);
    }

    fn make_room(&mut self) {
        self.inner.make_room();
    }
}
