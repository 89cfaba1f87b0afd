//! The log of a loop: `agent-loop.log`, to which the agent's hooks append too.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::clock::{Clock, stamp};

/// The longest line that is written, in bytes; of a longer one the beginning.
const LONGEST_LINE: usize = 4000;

/// Appends lines with their time.
///
/// Each is written by itself to the file of this name, whichever that is then: others append to it as well,
/// and it is renamed when it has become too large. For the same reason no crate for logs is used, whose
/// files belong to one writer.
#[derive(Clone)]
pub struct Log(Arc<Inner>);

struct Inner {
    path: PathBuf,
    max_bytes: u64,
    clock: Arc<dyn Clock>,
    copy: Mutex<Option<Box<dyn Write + Send>>>,
}

impl Log {
    /// A log in this file, which begins anew when it is larger than `max_bytes`.
    pub fn new(path: PathBuf, max_bytes: u64, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner {
            path,
            max_bytes,
            clock,
            copy: Mutex::new(None),
        }))
    }

    /// Every line is written to this one too.
    pub fn copy_to(&self, copy: impl Write + Send + 'static) {
        *self.0.copy.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(copy));
    }

    /// Writes one line, or several if the text has several. That it cannot be written stops nothing.
    pub fn line(&self, text: impl fmt::Display) {
        self.lines("", &text.to_string());
    }

    /// Writes the lines of a text with something before each.
    pub fn lines(&self, before: &str, text: &str) {
        let stamp = stamp(self.0.clock.now()).to_string();
        let mut written = String::new();
        for line in text.lines() {
            let line = anstream::adapter::strip_str(line.trim_end()).to_string();
            let line = teamster_core::excerpt(&line, LONGEST_LINE);
            written.extend(["[", &stamp, "] ", before]);
            // Nothing that an agent says moves the cursor of whoever looks at it.
            written.extend(line.chars().map(|c| match c {
                '\t' => ' ',
                c if c.is_control() => char::REPLACEMENT_CHARACTER,
                c => c,
            }));
            written.push('\n');
        }
        // There is nowhere to say that it failed.
        let _ = self.append(written.as_bytes());
        let mut copy = self.0.copy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(to) = copy.as_mut()
            && (to.write_all(written.as_bytes()).and_then(|()| to.flush())).is_err()
        {
            *copy = None;
        }
    }

    fn append(&self, lines: &[u8]) -> io::Result<()> {
        let path = &self.0.path;
        let size = fs::metadata(path).map_or(0, |file| file.len());
        if size > 0 && size.saturating_add(lines.len() as u64) > self.0.max_bytes {
            let mut old = path.clone().into_os_string();
            old.push(".1");
            fs::rename(path, old)?;
        }
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        file.write_all(lines)
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
        log.lines("> ", "one\r\n\x1b[31mtwo\tx\x07\n");
        let text = fs::read_to_string(path).unwrap();
        let at = "[2026-11-21T20:00:00Z]";
        assert_eq!(text, format!("{at} tick begin\n{at} > one\n{at} > two x\n"));
    }

    #[tokio::test(start_paused = true)]
    async fn it_does_not_grow_without_bound_and_others_may_append() {
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
        assert_eq!(fs::read_to_string(path).unwrap().lines().count(), 2);
    }
}
