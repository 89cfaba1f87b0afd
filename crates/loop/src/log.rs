//! Log of a loop: `agent-loop.log`, to which the agent's hooks append too.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use nix::fcntl::OFlag;
use teamster_core::sync::lock;

use crate::clock::{Clock, stamp};
use crate::folder::rotate;

/// Maximum length of a line, in bytes. A longer line is cut.
const LONGEST_LINE: usize = 4000;
/// Capacity of the queue of a copy, in writes.
const QUEUE_CAPACITY: usize = 1000;
/// Time limit for the last writes of a copy.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

/// Log file whose lines have a timestamp.
///
/// Each write opens the file by its path, because other programs append to it and it is renamed when it is too
/// large. Logging crates assume a single writer.
#[derive(Clone)]
pub struct Log(Arc<Inner>);

struct Inner {
    path: PathBuf,
    max_bytes: u64,
    clock: Arc<dyn Clock>,
    copy: Mutex<Option<LossyWriter>>,
}

impl Log {
    /// Name of the file in `.orchestrator`.
    pub const NAME: &str = "agent-loop.log";

    /// Creates a log in this file. The file is rotated at `max_bytes`, and the previous one is kept with the
    /// suffix `.1`.
    pub fn new(path: PathBuf, max_bytes: u64, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner {
            path,
            max_bytes,
            clock,
            copy: Mutex::new(None),
        }))
    }

    /// Copies every line to this writer too. A slow reader does not block the log: lines that it does not read
    /// in time are only in the file.
    pub fn copy_to(&self, copy: impl Write + Send + 'static) {
        // Without a thread there is no copy.
        *self.copy() = LossyWriter::new(copy).ok();
    }

    /// Ends the copy. Queued lines have a second to be written.
    pub fn end_copy(&self) {
        let copy = self.copy().take();
        drop(copy);
    }

    fn copy(&self) -> std::sync::MutexGuard<'_, Option<LossyWriter>> {
        lock(&self.0.copy)
    }

    /// Writes a text of one or more lines. Write errors are ignored.
    pub fn line(&self, text: impl fmt::Display) {
        self.lines("", &text.to_string());
    }

    /// Writes the lines of a text, each after a prefix.
    pub fn lines(&self, before: &str, text: &str) {
        let stamp = stamp(self.0.clock.now()).to_string();
        let mut written = String::new();
        for line in text.lines() {
            let line = anstream::adapter::strip_str(line.trim_end()).to_string();
            let line = teamster_core::text::excerpt(&line, LONGEST_LINE);
            written.extend(["[", &stamp, "] ", before]);
            // Text of an agent must not move a terminal's cursor or change the text direction.
            written.extend(line.chars().map(|c| match c {
                '\t' => ' ',
                c if c.is_control() || teamster_core::text::is_bidi_control(c) => {
                    char::REPLACEMENT_CHARACTER
                }
                c => c,
            }));
            written.push('\n');
        }
        // Locked: two concurrent rotations would lose the old file.
        let mut copy = self.copy();
        // There is no place to report a write error.
        let _ = self.append(&written);
        if (copy.as_mut()).is_some_and(|copy| copy.write_lines(written.into_bytes()).is_err()) {
            *copy = None;
        }
    }

    /// Appends lines to the file. Rotates it before a line that would exceed its limit.
    fn append(&self, mut lines: &str) -> io::Result<()> {
        let path = &self.0.path;
        while !lines.is_empty() {
            let size = fs::metadata(path).map_or(0, |file| file.len());
            let mut room = self.0.max_bytes.saturating_sub(size);
            let fits = |line: &&str| {
                let left = room.checked_sub(line.len() as u64);
                room = left.unwrap_or_default();
                left.is_some()
            };
            let fitting = lines.split_inclusive('\n').take_while(fits);
            let mut bytes: usize = fitting.map(str::len).sum();
            if bytes == 0 {
                if size > 0 {
                    rotate(path)?;
                }
                bytes = lines.find('\n').map_or(lines.len(), |end| end + 1);
            }
            let (now, later) = lines.split_at(bytes);
            self.write(now)?;
            lines = later;
        }
        Ok(())
    }

    fn write(&self, lines: &str) -> io::Result<()> {
        open_to_append(&self.0.path)?.write_all(lines.as_bytes())
    }
}

/// Opens a log to append to it. A pipe without a reader does not block.
pub(crate) fn open_to_append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    options.custom_flags(OFlag::O_NONBLOCK.bits()).open(path)
}

/// Writer that never blocks. It drops what cannot be written in time and reports how often.
#[derive(Debug)]
pub struct LossyWriter {
    lines: Option<SyncSender<Vec<u8>>>,
    ended: Receiver<()>,
    missed: u64,
}

impl LossyWriter {
    /// Starts a thread that writes to `to`. On drop, queued lines have a second to be written.
    ///
    /// # Errors
    ///
    /// Fails if the thread cannot be started.
    pub fn new(mut to: impl Write + Send + 'static) -> io::Result<Self> {
        let (lines, waiting) = sync_channel::<Vec<u8>>(QUEUE_CAPACITY);
        let (end, ended) = sync_channel(1);
        thread::Builder::new()
            .name("lossy writer".to_owned())
            .spawn(move || {
                for lines in waiting {
                    if to.write_all(&lines).and_then(|()| to.flush()).is_err() {
                        break;
                    }
                }
                // The receiver may be gone.
                let _ = end.send(());
            })?;
        Ok(Self {
            lines: Some(lines),
            ended,
            missed: 0,
        })
    }

    /// Queues complete lines for the thread.
    ///
    /// # Errors
    ///
    /// Fails after a write error of the thread.
    pub fn write_lines(&mut self, mut lines: Vec<u8>) -> io::Result<()> {
        let Some(to) = &self.lines else {
            return Ok(());
        };
        if self.missed > 0 {
            let mut all = format!(
                "({} writes were not read in time and are missing)\n",
                self.missed
            );
            all.push_str(&String::from_utf8_lossy(&lines));
            lines = all.into_bytes();
        }
        match to.try_send(lines) {
            Ok(()) => self.missed = 0,
            Err(TrySendError::Full(_)) => self.missed += 1,
            Err(TrySendError::Disconnected(_)) => return Err(io::ErrorKind::BrokenPipe.into()),
        }
        Ok(())
    }
}

impl Drop for LossyWriter {
    fn drop(&mut self) {
        self.lines = None;
        // Waits for the last lines.
        let _ = self.ended.recv_timeout(FLUSH_LIMIT);
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("path", &self.0.path).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::TokioClock;

    fn log(max_bytes: u64) -> (tempfile::TempDir, PathBuf, Log) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent-loop.log");
        let clock = TokioClock::new("2026-11-21T20:00:00Z".parse().unwrap());
        let log = Log::new(path.clone(), max_bytes, Arc::new(clock));
        (directory, path, log)
    }

    #[tokio::test(start_paused = true)]
    async fn lines_have_their_time_and_no_control_characters() {
        let (_directory, path, log) = log(1 << 20);
        log.line("tick begin");
        log.lines("> ", "one\r\n\x1b[31mtwo\tx\x07\ngnp\u{202e}exe\n");
        let text = fs::read_to_string(path).unwrap();
        let at = "[2026-11-21T20:00:00Z]";
        assert_eq!(
            text,
            format!("{at} tick begin\n{at} > one\n{at} > two x\n{at} > gnp\u{fffd}exe\n")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_log_is_rotated_while_others_append() {
        let (directory, path, log) = log(1000);
        for n in 0..200 {
            log.line(format!("line {n}"));
            let mut other = OpenOptions::new().append(true).open(&path).unwrap();
            other.write_all(b"hook\n").unwrap();
        }
        let sizes: Vec<_> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .collect();
        assert_eq!(sizes.len(), 2);
        assert!(sizes.iter().all(|size| *size <= 1005), "{sizes:?}");
        let last = fs::read_to_string(path).unwrap();
        assert!(last.contains("line 199\nhook\n"), "{last}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_of_many_lines_is_rotated_too() {
        let (directory, path, log) = log(1000);
        let lines: Vec<_> = (0..1000).map(|n| format!("line {n:03}")).collect();
        log.line("before");
        log.lines("> ", &lines.join("\n"));
        let old = fs::read_to_string(directory.path().join("agent-loop.log.1")).unwrap();
        let new = fs::read_to_string(path).unwrap();
        assert!(old.len() <= 1000 && new.len() <= 1000, "{old}{new}");
        // The last lines are kept in order, as many as fit.
        let kept: Vec<_> = (old.lines().chain(new.lines()))
            .map(|line| line.split_once("> ").unwrap().1)
            .collect();
        assert_eq!(kept, lines[lines.len() - kept.len()..]);
        assert!(kept.len() > 1000 / 32, "{}", kept.len());
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_writers_lose_no_line_at_a_rotation() {
        const EACH: usize = 20;
        for _ in 0..50 {
            let (directory, path, log) = log(2000);
            thread::scope(|scope| {
                for writer in 0..4 {
                    let log = &log;
                    let lines =
                        move || (0..EACH).for_each(|n| log.line(format!("{writer} {n:012}")));
                    scope.spawn(lines);
                }
            });
            // All lines fill more than one file and less than two.
            let old = fs::read_to_string(directory.path().join("agent-loop.log.1")).unwrap();
            let new = fs::read_to_string(path).unwrap();
            assert_eq!(old.lines().count() + new.lines().count(), 4 * EACH);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_copy_that_cannot_be_written_is_given_up() {
        struct Broken;
        impl Write for Broken {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (_directory, path, log) = log(1 << 20);
        log.copy_to(Broken);
        log.line("one");
        log.line("two");
        log.end_copy();
        assert_eq!(fs::read_to_string(path).unwrap().lines().count(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_of_the_copy_holds_up_nothing() {
        struct Gate(Receiver<()>, SyncSender<Vec<u8>>);
        impl Write for Gate {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                // Returns an error once the gate is dropped.
                let _ = self.0.recv();
                self.1.send(bytes.to_owned()).unwrap();
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (_directory, path, log) = log(1 << 20);
        let (gate, closed) = sync_channel(0);
        let (copied, copy) = sync_channel(QUEUE_CAPACITY * 2);
        log.copy_to(Gate(closed, copied));
        for n in 0..QUEUE_CAPACITY + 500 {
            log.line(format!("line {n}"));
        }
        let text = fs::read_to_string(path).unwrap();
        assert_eq!(text.lines().count(), QUEUE_CAPACITY + 500);
        drop(gate);
        while copy.recv().unwrap() != b"[2026-11-21T20:00:00Z] line 900\n" {}
        log.line("read again");
        log.end_copy();
        let last = copy.try_iter().last().unwrap();
        let last = String::from_utf8(last).unwrap();
        assert!(last.starts_with('('), "{last}");
        assert!(last.ends_with("read again\n"), "{last}");
    }

    #[tokio::test(start_paused = true)]
    async fn directory_or_pipe_does_not_block_the_log() {
        let (directory, path, log) = log(100);
        fs::create_dir(directory.path().join("agent-loop.log.1")).unwrap();
        for n in 0..20 {
            log.line(format!("line {n}"));
        }
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.ends_with("line 19\n") && text.len() <= 100, "{text}");
        fs::remove_file(&path).unwrap();
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        log.line("this has no reader");
    }
}
