//! Reader of a log that is being written.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::line::{LogLine, is_end, seq_of};
use super::search::offset_of;
use super::{FILE, run_id_of};
use crate::RunsError;
use teamster_core::Id;

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
            ended: false,
        })
    }

    /// Returns the next complete entry, or `None` if there is none yet.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or with [`RunsError::Damaged`] at a line that is no entry.
    pub fn next_line(&mut self) -> Result<Option<LogLine>, RunsError> {
        let mut searched = 0;
        let mut attempts = 0;
        loop {
            let unread = &self.buffer[self.start..];
            if let Some(end) = memchr::memchr(b'\n', &unread[searched..]) {
                let json = &unread[..searched + end];
                let Some(seq) = seq_of(json) else {
                    attempts += 1;
                    if attempts >= ATTEMPTS {
                        return Err(RunsError::Damaged {
                            path: self.path.clone(),
                            offset: self.position(),
                        });
                    }
                    self.rewind();
                    searched = 0;
                    continue;
                };
                let line = (seq >= self.next).then(|| LogLine {
                    seq,
                    json: json.to_vec(),
                    ends: is_end(json, &self.run_id),
                });
                self.start += searched + end + 1;
                searched = 0;
                let Some(line) = line else { continue };
                self.next = seq.saturating_add(1);
                self.ended = line.ends;
                return Ok(Some(line));
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
        let now = std::fs::metadata(&self.path).map_err(failed())?;
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
    let file = File::open(path)?;
    let offset = match next {
        0 | 1 => 0,
        next => offset_of(&file, file.metadata()?.len(), next)?,
    };
    Ok((file, offset))
}
