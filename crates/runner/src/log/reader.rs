//! Reading a log, while it is written.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::line::{LogLine, is_end, seq_of};
use super::search::offset_of;
use super::{FILE, run_id_of};
use crate::RunsError;
use teamster_core::Id;

/// What is read at once.
const PIECE: usize = 64 * 1024;
/// How often a line that is no entry is read again: the writer may be replacing half a line just now.
const ATTEMPTS: u32 = 3;

/// Reads the entries of a log in order.
///
/// It takes no lock and never writes. A last line without its end is not there yet, and what a killed writer has
/// left of one is never seen.
#[derive(Debug)]
pub struct RunLogReader {
    path: PathBuf,
    run_id: Id,
    file: File,
    /// Where the next piece is read.
    offset: u64,
    /// What was read and not given yet, from `start` on.
    buffer: Vec<u8>,
    start: usize,
    /// Smaller numbers are skipped.
    next: u64,
    /// The last entry was given.
    ended: bool,
}

impl RunLogReader {
    /// A reader of the log in this folder that begins behind the entry of this number; 0 is the beginning.
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

    /// The next entry that is whole; `None` if there is none (yet).
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
                // What follows the last whole line may be replaced.
                self.rewind();
                if !self.reopen()? {
                    return Ok(None);
                }
                searched = 0;
            }
        }
    }

    /// Whether the last entry of the log was read.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Where the next line begins in the file.
    fn position(&self) -> u64 {
        self.offset - (self.buffer.len() - self.start) as u64
    }

    /// Forgets what was read and not given.
    fn rewind(&mut self) {
        self.offset = self.position();
        self.buffer.clear();
        self.start = 0;
    }

    /// Reads on; whether there was something.
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

    /// Continues in the file that has replaced this one, if a part was pruned.
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
