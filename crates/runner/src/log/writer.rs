//! Writer of a log.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Deserialize;
use teamster_api::{LifecycleEntry, LogLine, RunEvent, RunLogEntry};
use teamster_core::Id;
use teamster_core::time::epoch_ms;
use teamster_process::open_unlinked_file;

use super::frames::Frames;
use super::tail::last_entry;
use super::watch::Watch;
use super::{FILE, run_id_of};
use crate::log_sink::number;
use crate::step::{Step, before, sync};

/// Limits of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct LogLimits {
    /// Maximum size of the file, in bytes. Beyond it the older half of the entries is replaced by one `reset`
    /// entry. Default: 1 GiB.
    pub bytes: u64,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self { bytes: 1 << 30 }
    }
}

/// Position of the newest entry in a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Position {
    /// Number of the newest entry; 0 if there is none.
    pub seq: u64,
    /// The log is complete.
    pub ended: bool,
}

/// Writer of a log. The caller MUST hold the lock of the run's folder.
///
/// Deltas of one message within 100 ms are joined, except the first. Other entries are written as they come.
/// Therefore the writer numbers the entries.
#[derive(Debug)]
pub struct RunLogWriter {
    path: PathBuf,
    run_id: Id,
    file: File,
    limits: LogLimits,
    frames: Frames,
    /// Complete entries without a number.
    complete: Vec<RunLogEntry>,
    /// Lines that are not yet in the file.
    unwritten: Vec<u8>,
    /// Newest entry, unwritten ones included.
    newest: Position,
    /// Newest entry in the file.
    written: Position,
    /// Length of the file up to that entry.
    len: u64,
    /// Length beyond which the file is pruned.
    prune_at: u64,
}

impl RunLogWriter {
    /// Opens or creates the log in this folder. An incomplete last line of a killed writer is removed.
    pub(crate) fn open(folder: &Path, limits: LogLimits) -> io::Result<Self> {
        let path = folder.join(FILE);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = open_unlinked_file(options.mode(0o600), &path)?;
        let run_id = run_id_of(folder);
        let (len, last) = last_entry(&file, &run_id)?;
        let written = last.map_or_else(Position::default, |last| Position {
            seq: last.seq(),
            ended: last.is_end(),
        });
        if len < file.metadata()?.len() {
            before(Step::CutLog);
            file.set_len(len)?;
        }
        Ok(Self {
            path,
            run_id,
            file,
            limits,
            frames: Frames::default(),
            complete: Vec::new(),
            unwritten: Vec::new(),
            newest: written,
            written,
            len,
            prune_at: limits.bytes,
        })
    }

    /// Sets the folder after it was renamed.
    pub(crate) fn moved_to(mut self, folder: &Path) -> Self {
        self.path = folder.join(FILE);
        self.run_id = run_id_of(folder);
        self
    }

    /// Takes an entry. The next [`flush`](Self::flush) writes it, unless it is a delta that waits for others
    /// until [`due`](Self::due).
    pub fn push(&mut self, entry: RunLogEntry) {
        let mut complete = std::mem::take(&mut self.complete);
        self.frames.push(entry, Instant::now(), &mut complete);
        self.number(&mut complete);
        self.complete = complete;
    }

    /// Gives the next entries numbers after this one too, in a log that has larger ones than its last.
    pub(crate) fn continue_after(&mut self, seq: u64) {
        self.newest.seq = self.newest.seq.max(seq);
    }

    /// Returns when waiting deltas are due for writing.
    pub fn due(&self) -> Option<Instant> {
        self.frames.due()
    }

    /// Returns the number of bytes that [`flush`](Self::flush) has to write.
    pub fn unwritten_bytes(&self) -> usize {
        self.unwritten.len()
    }

    /// Makes waiting deltas ready for [`flush`](Self::flush).
    pub fn end_frame(&mut self) {
        let mut complete = std::mem::take(&mut self.complete);
        self.frames.end(&mut complete);
        self.number(&mut complete);
        self.complete = complete;
    }

    /// Writes complete entries to the file and returns the new position.
    ///
    /// # Errors
    ///
    /// After an error nothing is lost: the next call writes the same bytes to the same place.
    pub fn flush(&mut self) -> io::Result<Position> {
        if !self.unwritten.is_empty() {
            before(Step::WriteLog);
            // Written in two parts, so that a test can end the process between them. The first is empty
            // otherwise.
            let half = if cfg!(feature = "test-hooks") {
                self.unwritten.len() / 2
            } else {
                0
            };
            let (first, rest) = self.unwritten.split_at(half);
            self.file.write_all_at(first, self.len)?;
            before(Step::WriteLogRest);
            self.file.write_all_at(rest, self.len + half as u64)?;
            self.len += self.unwritten.len() as u64;
            self.unwritten.clear();
            self.unwritten.shrink_to(64 * 1024);
            self.written = self.newest;
            if self.len > self.prune_at {
                // The entries are in the file. A failed prune is retried when the log has grown by another
                // quarter of its limit.
                let _ = self.prune();
                self.prune_at = self.limits.bytes.max(self.len + self.limits.bytes / 4);
            }
        }
        Ok(self.written)
    }

    /// Returns the newest entry in the file.
    pub fn written(&self) -> Position {
        self.written
    }

    /// Begins to watch whether the file is removed. MUST be called in a Tokio runtime.
    pub(crate) fn watch(&self) -> Watch {
        Watch::of(&self.path)
    }

    /// Returns whether the file was removed, and not only moved with its folder. What is written then is lost.
    pub(crate) fn is_removed(&self) -> bool {
        let has_no_name = (self.file.metadata()).is_ok_and(|about| about.nlink() == 0);
        // Some file systems do not count names.
        has_no_name
            && std::fs::symlink_metadata(&self.path)
                .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// Drops unwritten entries, so that new entries follow the last one in the file.
    pub fn discard_unwritten(&mut self) {
        self.frames = Frames::default();
        self.unwritten = Vec::new();
        self.newest = self.written;
    }

    /// Syncs written entries to disk, so that they survive a power failure.
    pub fn sync(&self) -> io::Result<()> {
        sync(Step::SyncLog, &self.file)
    }

    /// Numbers entries and serializes them to lines.
    fn number(&mut self, entries: &mut Vec<RunLogEntry>) {
        for mut entry in entries.drain(..) {
            let seq = self.newest.seq.saturating_add(1);
            number(&mut entry, seq);
            let before = self.unwritten.len();
            // Serialization of these types to a vector cannot fail.
            if entry.append_json(&mut self.unwritten).is_err() {
                continue;
            }
            self.newest = Position {
                seq,
                ended: LogLine::ends(&self.unwritten[before..], &self.run_id),
            };
            self.unwritten.push(b'\n');
        }
    }

    /// Removes the older half of the entries. Readers with the old file open read it to its end first.
    fn prune(&mut self) -> io::Result<()> {
        let half = self.len / 2;
        let Some((start, first)) = first_entry_from(&self.file, half, self.len)? else {
            return Ok(());
        };
        let draft = self.path.with_extension("new");
        before(Step::CreateCopy);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let mut file = open_unlinked_file(options.mode(0o600), &draft)?;
        let copied = (|| {
            // The `reset` has the number of the last removed entry, so there is no gap.
            let reset = LifecycleEntry::new(RunEvent::reset(self.run_id.clone()));
            let reset = RunLogEntry::from(reset.seq(first - 1).at_ms(epoch_ms()));
            let reset = reset.to_json()?;
            before(Step::WriteCopy);
            file.write_all(&reset)?;
            file.write_all(b"\n")?;
            let mut old = &self.file;
            old.seek(SeekFrom::Start(start))?;
            io::copy(&mut old.take(self.len - start), &mut file)?;
            sync(Step::SyncCopy, &file)?;
            before(Step::ReplaceLog);
            std::fs::rename(&draft, &self.path)
        })();
        if let Err(error) = copied {
            // The log is unchanged.
            let _ = std::fs::remove_file(&draft);
            return Err(error);
        }
        self.len = file.metadata()?.len();
        self.file = file;
        Ok(())
    }
}

/// Returns offset and number of the first entry after the line at `from`.
fn first_entry_from(file: &File, from: u64, len: u64) -> io::Result<Option<(u64, u64)>> {
    let mut reader = io::BufReader::new(file);
    reader.seek(SeekFrom::Start(from))?;
    let mut line = Vec::new();
    io::BufRead::read_until(&mut reader, b'\n', &mut line)?;
    let mut start = from + line.len() as u64;
    while start < len {
        line.clear();
        io::BufRead::read_until(&mut reader, b'\n', &mut line)?;
        // A damaged line has no number.
        if let Some(seq) = LogLine::seq_of(&line).filter(|seq| *seq > 1) {
            return Ok(Some((start, seq)));
        }
        start += line.len() as u64;
    }
    Ok(None)
}
