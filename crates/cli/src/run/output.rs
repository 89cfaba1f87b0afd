//! `--output`: the agent's last message in a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context;
use teamster::{AgentEvent, LogEntry};
use teamster_core::sync::lock;

use crate::render::{Sink, last_message};

/// A file for the last message.
pub(super) struct Output<'a> {
    path: &'a Path,
    file: File,
    message: Arc<Mutex<String>>,
}

impl<'a> Output<'a> {
    /// Opens the file without changing its content yet. Every error is one of usage.
    pub(super) fn open(path: &'a Path) -> anyhow::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).open(path);
        let file = file.with_context(|| format!("--output: cannot write to {}", path.display()))?;
        Ok(Self {
            path,
            file,
            message: Arc::default(),
        })
    }

    /// The same sink, with the last message kept on the way.
    pub(super) fn keeping(&self, inner: Box<dyn Sink>) -> Box<dyn Sink> {
        Box::new(Keeping {
            inner,
            message: self.message.clone(),
        })
    }

    /// Replaces the content of the file with the last message.
    pub(super) fn write(mut self) -> anyhow::Result<()> {
        let message = lock(&self.message);
        // A pipe or a device has no length.
        let _ = self.file.set_len(0);
        let written = self.file.write_all(message.as_bytes());
        written.with_context(|| format!("--output: cannot write to {}", self.path.display()))
    }
}

struct Keeping {
    inner: Box<dyn Sink>,
    message: Arc<Mutex<String>>,
}

impl Sink for Keeping {
    fn event(&mut self, entry: &LogEntry, now: Duration) -> io::Result<()> {
        if let AgentEvent::Done(done) = &entry.event {
            let mut message = last_message(&done.result);
            if !message.is_empty() && !message.ends_with('\n') {
                message.push('\n');
            }
            *lock(&self.message) = message;
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
