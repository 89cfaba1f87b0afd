//! Reader of a log that is being written.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use teamster_api::LogLine;
use teamster_core::Id;

use super::search::offset_of;
use super::{FILE, run_id_of};
use crate::{RunsError, files};

/// Size of a read, in bytes.
const PIECE: usize = 64 * 1024;
/// Attempts to read a line that is no entry: the writer may be replacing an incomplete line.
const ATTEMPTS: u32 = 3;

/// Reader of the entries of a log, in order.
///
/// It takes no lock and never writes. An incomplete last line is not returned, and neither are remains of one
/// that a killed writer left.
#[derive(Debug)]
pub struct RunLogReader {
    path: PathBuf,
    run_id: Id,
    file: File,
    /// Offset of the next read.
    offset: u64,
    /// Bytes that were read and not returned yet, from `start` on.
    buffer: Vec<u8>,
    start: usize,
    /// Number of the next entry. Smaller ones are skipped.
    next: u64,
    /// Damaged lines were skipped since the last entry.
    damaged: bool,
    /// The entry that follows a `damaged` entry.
    follows: Option<LogLine>,
    /// The last entry was returned.
    ended: bool,
}

impl RunLogReader {
    /// Opens the log in this folder after the entry with this number; 0 is the beginning.
    pub(crate) fn open(folder: &Path, after: u64) -> Result<Self, RunsError> {
        let path = folder.join(FILE);
        let next = after.saturating_add(1);
        let (file, offset) = open_at(&path, next).map_err(RunsError::io("open", &path))?;
        Ok(Self {
            path,
            run_id: run_id_of(folder),
            file,
            offset,
            buffer: Vec::new(),
            start: 0,
            next,
            damaged: false,
            follows: None,
            ended: false,
        })
    }

    /// Returns the next complete entry, or `None` if there is none yet. Entries that are missing, because their lines
    /// are damaged, are one entry `damaged` with the number of the last of them.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn next_line(&mut self) -> Result<Option<LogLine>, RunsError> {
        let line = match self.follows.take() {
            Some(line) => line,
            None => match self.next_entry()? {
                None => return Ok(None),
                Some(line) => {
                    let is_gap = std::mem::take(&mut self.damaged) && line.seq() > self.next;
                    if is_gap && let Some(damaged) = line.damaged_before(&self.run_id) {
                        self.next = line.seq();
                        self.follows = Some(line);
                        return Ok(Some(damaged));
                    }
                    line
                }
            },
        };
        self.next = line.seq().saturating_add(1);
        self.ended = line.is_end();
        Ok(Some(line))
    }

    /// Returns the next entry from `next` on that is not damaged.
    fn next_entry(&mut self) -> Result<Option<LogLine>, RunsError> {
        let mut searched = 0;
        let mut attempts = 0;
        loop {
            let unread = &self.buffer[self.start..];
            if let Some(end) = memchr::memchr(b'\n', &unread[searched..]) {
                let json = &unread[..searched + end];
                let seq = LogLine::seq_of(json);
                // Lines of entries that were returned need no check.
                let is_known = seq.is_some_and(|seq| seq < self.next);
                let line = (!is_known && LogLine::is_complete(json))
                    .then(|| LogLine::from_json(json.to_vec(), &self.run_id))
                    .flatten();
                if is_known {
                    // Damage before it was reported to who has it.
                    self.damaged = false;
                } else if line.is_none() {
                    attempts += 1;
                    if attempts < ATTEMPTS && !self.is_unchanged(searched + end + 1)? {
                        self.rewind();
                        searched = 0;
                        continue;
                    }
                    self.damaged = true;
                }
                attempts = 0;
                self.start += searched + end + 1;
                if line.is_some() {
                    return Ok(line);
                }
                searched = 0;
                continue;
            }
            searched = unread.len();
            if !self.fill()? {
                // Bytes after the last complete line may be replaced.
                self.rewind();
                if !self.reopen()? {
                    return Ok(None);
                }
                searched = 0;
            }
        }
    }

    /// Returns the next complete entries: at least one, if there is one, and no more after this many bytes.
    pub(crate) fn next_lines(&mut self, bytes: usize) -> Result<VecDeque<LogLine>, RunsError> {
        let mut lines = VecDeque::new();
        let mut taken = 0;
        while taken < bytes
            && let Some(line) = self.next_line()?
        {
            taken += line.json().len();
            lines.push_back(line);
        }
        Ok(lines)
    }

    /// Returns whether the last entry of the log was returned.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns the offset of the next line in the file.
    fn position(&self) -> u64 {
        self.offset - (self.buffer.len() - self.start) as u64
    }

    /// Discards bytes that were read and not returned.
    fn rewind(&mut self) {
        self.offset = self.position();
        self.buffer.clear();
        self.start = 0;
    }

    /// Returns whether the file still has the next bytes of the buffer. Reads no others: a log may have very many
    /// damaged lines.
    fn is_unchanged(&self, length: usize) -> Result<bool, RunsError> {
        let mut now = vec![0; length];
        match self.file.read_exact_at(&mut now, self.position()) {
            Ok(()) => Ok(now == self.buffer[self.start..][..length]),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(RunsError::io("read", &self.path)(error)),
        }
    }

    /// Reads further bytes. Returns whether there were any.
    fn fill(&mut self) -> Result<bool, RunsError> {
        self.buffer.drain(..self.start);
        self.start = 0;
        let filled = self.buffer.len();
        self.buffer.resize(filled + PIECE, 0);
        let count = self.file.read_at(&mut self.buffer[filled..], self.offset);
        self.buffer.truncate(filled + *count.as_ref().unwrap_or(&0));
        let count = count.map_err(RunsError::io("read", &self.path))?;
        self.offset += count as u64;
        Ok(count > 0)
    }

    /// Continues in the file that replaced this one when the log was pruned. Returns whether there is one.
    fn reopen(&mut self) -> Result<bool, RunsError> {
        let failed = || RunsError::io("open", &self.path);
        let now = std::fs::symlink_metadata(&self.path).map_err(failed())?;
        let mine = self.file.metadata().map_err(failed())?;
        if (now.dev(), now.ino()) == (mine.dev(), mine.ino()) {
            return Ok(false);
        }
        let (file, offset) = open_at(&self.path, self.next).map_err(failed())?;
        (self.file, self.offset) = (file, offset);
        Ok(true)
    }
}

fn open_at(path: &Path, next: u64) -> io::Result<(File, u64)> {
    let file = files::open(path)?;
    let offset = match next {
        0 | 1 => 0,
        next => offset_of(&file, file.metadata()?.len(), next)?,
    };
    Ok((file, offset))
}
