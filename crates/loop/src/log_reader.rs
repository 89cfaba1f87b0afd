//! Reading a loop's log from one of its last lines on.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::supervisor::log_path;

/// Size of a read, in bytes.
const READ_SIZE: usize = 64 << 10;

/// Reader of a loop's log, which continues where the log is rotated.
#[derive(Debug)]
pub struct LogReader {
    path: PathBuf,
    /// The previous file, until its end was read.
    before: Option<File>,
    file: File,
    piece: Vec<u8>,
}

impl LogReader {
    /// Opens the log of the loop in this directory at the last `lines` lines, some of which may be in the file before its
    /// rotation. At most the last `limit` bytes of a file are searched for them.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be read. It is missing until the first loop in the directory has started.
    pub fn open(working_dir: &Path, lines: usize, limit: u64) -> io::Result<Self> {
        let path = log_path(working_dir);
        let mut file = File::open(&path)?;
        let missing = seek_to_last_lines(&mut file, lines, limit)?;
        let mut before = File::open(path.with_extension("log.1"))
            .ok()
            // A rotation in between has made one of the two.
            .filter(|before| missing > 0 && !is_same(before, &file).unwrap_or(true));
        if let Some(before) = &mut before {
            seek_to_last_lines(before, missing, limit)?;
        }
        Ok(Self {
            path,
            before,
            file,
            piece: vec![0; READ_SIZE],
        })
    }

    /// Reads what comes next. It is empty at the end of what was written so far.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be read.
    pub fn read(&mut self) -> io::Result<&[u8]> {
        let count = loop {
            let file = self.before.as_mut().unwrap_or(&mut self.file);
            let count = file.read(&mut self.piece)?;
            if count > 0 || (self.before.take().is_none() && !self.has_moved()?) {
                break count;
            }
        };
        Ok(&self.piece[..count])
    }

    /// Returns whether the log was rotated or truncated, and continues at its beginning if it was.
    fn has_moved(&mut self) -> io::Result<bool> {
        // Opened first: the previous file gets no more lines once there is a new one.
        let new = File::open(&self.path);
        let length = self.file.metadata()?.len();
        let position = self.file.stream_position()?;
        if length < position {
            self.file.rewind()?;
            return Ok(true);
        }
        match new {
            Ok(new) if !is_same(&new, &self.file)? => {
                // Else it has lines that were written after the last read.
                if length == position {
                    self.file = new;
                }
                Ok(true)
            }
            // The log is about to be written again, or has nothing more.
            _ => Ok(length > position),
        }
    }
}

fn is_same(one: &File, other: &File) -> io::Result<bool> {
    let (one, other) = (one.metadata()?, other.metadata()?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// Seeks to the last `lines` lines of a file, and returns how many it is short of.
fn seek_to_last_lines(file: &mut File, lines: usize, limit: u64) -> io::Result<usize> {
    let end = file.seek(SeekFrom::End(0))?;
    if lines == 0 || end == 0 {
        return Ok(lines);
    }
    let mut at = end;
    let mut found = 0;
    // The beginning of the first whole line that was found.
    let mut first = None;
    let mut piece = vec![0; READ_SIZE];
    while at > 0 && end - at < limit {
        let length = at.min(READ_SIZE as u64);
        at -= length;
        let piece = &mut piece[..usize::try_from(length).unwrap_or(READ_SIZE)];
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(piece)?;
        for (index, _) in piece.iter().enumerate().rev().filter(|(_, b)| **b == b'\n') {
            let behind = at + index as u64 + 1;
            // A newline at the end of the file ends the last line.
            if behind < end {
                found += 1;
                first = Some(behind);
            }
            if found == lines {
                file.seek(SeekFrom::Start(behind))?;
                return Ok(0);
            }
        }
    }
    if at > 0 {
        file.seek(SeekFrom::Start(first.unwrap_or(at)))?;
        return Ok(0);
    }
    file.rewind()?;
    // The first line has no newline before it, so it is not in `found`.
    Ok(lines - found - 1)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::ORCHESTRATOR;

    const LIMIT: u64 = 1 << 20;

    /// Returns the folder of a loop with this log.
    fn folder(log: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(ORCHESTRATOR)).unwrap();
        fs::write(log_path(folder.path()), log).unwrap();
        folder
    }

    fn rest(reader: &mut LogReader) -> String {
        let mut text = String::new();
        loop {
            let piece = reader.read().unwrap();
            if piece.is_empty() {
                return text;
            }
            text.push_str(std::str::from_utf8(piece).unwrap());
        }
    }

    fn last(text: &str, lines: usize) -> String {
        let folder = folder(text);
        rest(&mut LogReader::open(folder.path(), lines, LIMIT).unwrap())
    }

    #[test]
    fn the_last_lines() {
        assert_eq!(last("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(last("a\nb\nc", 2), "b\nc");
        assert_eq!(last("a\nb\nc\n", 3), "a\nb\nc\n");
        assert_eq!(last("a\nb\nc\n", 9), "a\nb\nc\n");
        assert_eq!(last("a\n\n\n", 2), "\n\n");
        assert_eq!(last("a\nb\n", 0), "");
        assert_eq!(last("a", 0), "");
        assert_eq!(last("", 5), "");
        // More than one piece.
        let long = format!("{}\n", "x".repeat(READ_SIZE));
        assert_eq!(
            last(&format!("{long}{long}{long}"), 2),
            format!("{long}{long}")
        );
    }

    #[test]
    fn a_search_that_ends_at_its_limit_begins_at_a_whole_line() {
        let text = "0123456789\n".repeat(READ_SIZE / 5);
        let folder = folder(&text);
        let limit = READ_SIZE as u64;
        let found = rest(&mut LogReader::open(folder.path(), usize::MAX, limit).unwrap());
        assert!(found.starts_with("0123456789\n"), "{}", &found[..20]);
        assert_eq!(found.len(), READ_SIZE - READ_SIZE % 11);
    }

    #[test]
    fn a_rotated_log_is_read_on() {
        let folder = folder("a\nb\n");
        let path = log_path(folder.path());
        let mut reader = LogReader::open(folder.path(), 1, LIMIT).unwrap();
        assert_eq!(rest(&mut reader), "b\n");
        fs::rename(&path, path.with_extension("log.1")).unwrap();
        assert_eq!(rest(&mut reader), "");
        fs::write(&path, "c\n").unwrap();
        assert_eq!(rest(&mut reader), "c\n");
        // Lines that were written before the rotation are in the previous file.
        let mut reader = LogReader::open(folder.path(), 2, LIMIT).unwrap();
        assert_eq!(rest(&mut reader), "b\nc\n");
        fs::write(&path, "").unwrap();
        assert_eq!(rest(&mut reader), "");
        fs::write(&path, "d\n").unwrap();
        assert_eq!(rest(&mut reader), "d\n");
    }

    #[test]
    fn lines_written_between_the_last_read_and_a_rotation_are_read() {
        let folder = folder("a\n");
        let path = log_path(folder.path());
        let mut reader = LogReader::open(folder.path(), 1, LIMIT).unwrap();
        assert_eq!(rest(&mut reader), "a\n");
        // After a read that found the end, and before the look for a new file.
        fs::write(&path, "a\nb\n").unwrap();
        fs::rename(&path, path.with_extension("log.1")).unwrap();
        fs::write(&path, "c\n").unwrap();
        assert!(reader.has_moved().unwrap());
        assert_eq!(rest(&mut reader), "b\nc\n");
    }
}
