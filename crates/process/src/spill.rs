//! Queue of events on disk, first in, first out.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use teamster_core::{AgentError, AgentEvent, LogEntry, RawJson};

/// Size after which the next file is begun, in bytes. A file is freed after it was read, so the space on disk is
/// little more than the size of the pending events.
const FILE_BYTES: u64 = 256 << 20;
/// Size of a read, in bytes, unless one event is larger.
const READ_BYTES: usize = 128 << 10;
/// Size of a record's header in bytes: the lengths of the event and its line, and its time. Without a line, its
/// length is `u64::MAX`.
const HEADER: usize = 24;

/// A queue of events in unlinked temporary files.
#[derive(Debug)]
pub(crate) struct Spill {
    dir: PathBuf,
    limit: u64,
    files: VecDeque<SpillFile>,
    /// Size of the pending events on disk, in bytes.
    waiting: u64,
    events: u64,
    /// The errors of the pending events: read back from JSON, they would not be the same as those of the result.
    errors: VecDeque<AgentError>,
    buf: Vec<u8>,
}

#[derive(Debug)]
struct SpillFile {
    file: File,
    read: u64,
    written: u64,
}

/// Error of writing events to disk.
#[derive(Debug)]
pub(crate) enum SpillError {
    /// The events exceed the limit.
    Limit,
    /// The file could not be written, for example because the disk is full.
    Io(io::Error),
}

impl Spill {
    pub(crate) fn new(dir: Option<&Path>, limit: u64) -> Self {
        Self {
            dir: dir.map_or_else(std::env::temp_dir, Path::to_owned),
            limit,
            files: VecDeque::new(),
            waiting: 0,
            events: 0,
            errors: VecDeque::new(),
            buf: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Returns the directory of the files.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Moves all events out of `batch`. On an error `batch` is unchanged.
    pub(crate) fn push(&mut self, batch: &mut Vec<LogEntry>) -> Result<(), SpillError> {
        let mut records = std::mem::take(&mut self.buf);
        records.clear();
        let result = self.write(batch, &mut records);
        self.buf = records;
        self.buf.shrink_to(READ_BYTES);
        result
    }

    fn write(
        &mut self,
        batch: &mut Vec<LogEntry>,
        records: &mut Vec<u8>,
    ) -> Result<(), SpillError> {
        for entry in batch.iter_mut() {
            append(entry, records).map_err(SpillError::Io)?;
        }
        let bytes = records.len() as u64;
        if self.waiting + bytes > self.limit {
            return Err(SpillError::Limit);
        }
        if self
            .files
            .back()
            .is_none_or(|file| file.written >= FILE_BYTES)
        {
            let file = tempfile::tempfile_in(&self.dir).map_err(SpillError::Io)?;
            self.files.push_back(SpillFile {
                file,
                read: 0,
                written: 0,
            });
        }
        let Some(last) = self.files.back_mut() else {
            return Ok(());
        };
        last.file
            .seek(SeekFrom::Start(last.written))
            .and_then(|_| last.file.write_all(records))
            .map_err(SpillError::Io)?;
        last.written += bytes;
        self.waiting += bytes;
        self.events += batch.len() as u64;
        for entry in batch.drain(..) {
            if let AgentEvent::Error(event) = entry.event {
                self.errors.push_back(event.error);
            }
        }
        Ok(())
    }

    /// Moves the oldest events to `out`: at least one if there is any, and not much more than [`READ_BYTES`].
    pub(crate) fn pop(&mut self, out: &mut Vec<LogEntry>) -> io::Result<()> {
        let only = self.files.len() == 1;
        let Some(first) = self.files.front_mut().filter(|_| self.events > 0) else {
            return Ok(());
        };
        let left = usize::try_from(first.written - first.read).unwrap_or(usize::MAX);
        self.buf.resize(left.min(READ_BYTES), 0);
        first.file.seek(SeekFrom::Start(first.read))?;
        first.file.read_exact(&mut self.buf)?;
        let length = record_bytes(&self.buf)?;
        if length > self.buf.len() {
            let have = self.buf.len();
            self.buf.resize(length, 0);
            first.file.read_exact(&mut self.buf[have..])?;
        }
        let mut at = 0;
        while self.buf.len() - at >= HEADER {
            let bytes = record_bytes(&self.buf[at..])?;
            let Some(record) = self.buf.get(at..at + bytes) else {
                break;
            };
            let mut entry = parse(record)?;
            if let AgentEvent::Error(event) = &mut entry.event
                && let Some(error) = self.errors.pop_front()
            {
                event.error = error;
            }
            out.push(entry);
            self.events -= 1;
            at += bytes;
        }
        first.read += at as u64;
        self.waiting -= at as u64;
        if first.read == first.written {
            if first.written >= FILE_BYTES || !only {
                self.files.pop_front();
            } else {
                first.file.set_len(0)?;
                first.read = 0;
                first.written = 0;
            }
        }
        self.buf.clear();
        self.buf.shrink_to(READ_BYTES);
        Ok(())
    }
}

fn append(entry: &LogEntry, records: &mut Vec<u8>) -> io::Result<()> {
    let start = records.len();
    records.extend_from_slice(&[0; HEADER]);
    match &entry.event {
        // Its only other content is its line.
        AgentEvent::Unknown(_) => records.extend_from_slice(br#"{"type":"unknown"}"#),
        event => serde_json::to_writer(&mut *records, event)?,
    }
    let event_bytes = (records.len() - start - HEADER) as u64;
    // Stored separately from the event: parsed from JSON, the line would not have the same text.
    let native = entry.native().map(|line| line.get().as_bytes());
    let native_bytes = native.map_or(u64::MAX, |line| line.len() as u64);
    records.extend_from_slice(native.unwrap_or_default());
    records[start..start + 8].copy_from_slice(&event_bytes.to_le_bytes());
    records[start + 8..start + 16].copy_from_slice(&native_bytes.to_le_bytes());
    records[start + 16..start + HEADER].copy_from_slice(&entry.at_ms.to_le_bytes());
    Ok(())
}

/// Header of a record.
struct Header {
    event: usize,
    native: Option<usize>,
    at_ms: u64,
}

fn header(record: &[u8]) -> io::Result<Header> {
    let number = |at: usize| {
        let bytes: [u8; 8] = record.get(at..at + 8)?.try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    };
    let (Some(event), Some(native), Some(at_ms)) = (number(0), number(8), number(16)) else {
        return Err(damaged());
    };
    let event = usize::try_from(event).map_err(|_| damaged())?;
    let native = match native {
        u64::MAX => None,
        bytes => Some(usize::try_from(bytes).map_err(|_| damaged())?),
    };
    Ok(Header {
        event,
        native,
        at_ms,
    })
}

fn record_bytes(record: &[u8]) -> io::Result<usize> {
    let header = header(record)?;
    HEADER
        .checked_add(header.event)
        .and_then(|bytes| bytes.checked_add(header.native.unwrap_or(0)))
        .ok_or_else(damaged)
}

fn parse(record: &[u8]) -> io::Result<LogEntry> {
    let header = header(record)?;
    let (event, native) = record[HEADER..].split_at(header.event);
    let mut entry = LogEntry::from(serde_json::from_slice::<AgentEvent>(event)?);
    entry.at_ms = header.at_ms;
    if header.native.is_some() {
        let line = RawJson::from_bytes(native)?;
        match &mut entry.event {
            AgentEvent::Unknown(unknown) => unknown.native = line,
            _ => entry.native = Some(line),
        }
    }
    Ok(entry)
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file was changed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use teamster_core::{
        ErrorCode, ErrorKind, NoticeLevel, NoticeSource, Text, ToolKind, ToolUse, Unknown,
    };

    fn text(text: &str) -> LogEntry {
        let event = AgentEvent::Text(Text::new(text).message_id("m"));
        event.into()
    }

    fn all(spill: &mut Spill) -> Vec<LogEntry> {
        let mut out = Vec::new();
        while !spill.is_empty() {
            spill.pop(&mut out).unwrap();
        }
        out
    }

    #[test]
    fn entries_come_out_unchanged() {
        let noted = AgentEvent::notice(NoticeLevel::Info, NoticeSource::Runtime, "x\u{2028}");
        let mut noted = LogEntry::from(noted);
        noted.at_ms = 1_760_000_000_123;
        noted.native = Some(RawJson::new(r#"{"z":  1.10, "a": "\ud83d"}"#.into()).unwrap());
        let events = vec![
            noted,
            AgentEvent::Unknown(Unknown::new(
                RawJson::new(r#"{"new": [1,  2]}"#.into()).unwrap(),
            ))
            .into(),
            AgentEvent::ToolUse(Box::new(ToolUse::new(
                "t",
                "1",
                ToolKind::Other,
                json!({"b": 0.123_456_789_012_345_68, "a": [1e300, u64::MAX, -1], "": null}),
            )))
            .into(),
            text(""),
        ];
        let mut spill = Spill::new(None, 1 << 20);
        spill.push(&mut events.clone()).unwrap();
        assert_eq!(all(&mut spill), events);
        assert_eq!(spill.waiting, 0);
    }

    #[test]
    fn errors_come_out_as_the_same_errors() {
        let error = || AgentError::new(ErrorCode::CliError, ErrorKind::Network, "lost");
        let errors = [error(), error()];
        let mut spill = Spill::new(None, 1 << 20);
        let mut events: Vec<LogEntry> = (errors.iter().cloned())
            .map(|error| AgentEvent::error(error).into())
            .collect();
        spill.push(&mut events).unwrap();
        let read = all(&mut spill);
        let same: Vec<_> = (read.iter().zip(&errors))
            .filter_map(|(entry, error)| match &entry.event {
                AgentEvent::Error(event) => Some(event.error.is_same(error)),
                _ => None,
            })
            .collect();
        assert_eq!(same, [true, true]);
    }

    #[test]
    fn order_is_kept_when_writing_and_reading_take_turns() {
        let mut spill = Spill::new(None, 1 << 30);
        let mut out = Vec::new();
        let mut next = 0;
        for round in 0..50 {
            let mut batch: Vec<_> = (0..1000)
                .map(|_| {
                    next += 1;
                    text(&format!("{next} {}", "x".repeat(round * 10)))
                })
                .collect();
            spill.push(&mut batch).unwrap();
            assert!(batch.is_empty());
            spill.pop(&mut out).unwrap();
        }
        out.extend(all(&mut spill));
        assert_eq!(out.len(), 50_000);
        for (index, event) in out.iter().enumerate() {
            let AgentEvent::Text(event) = &event.event else {
                panic!("{event:?}")
            };
            assert!(event.text.starts_with(&format!("{} ", index + 1)));
        }
    }

    #[test]
    fn an_event_larger_than_the_buffer_comes_back() {
        let mut spill = Spill::new(None, 1 << 30);
        let big = text(&"x".repeat(5 * READ_BYTES));
        spill
            .push(&mut vec![text("a"), big.clone(), text("b")])
            .unwrap();
        assert_eq!(all(&mut spill), [text("a"), big, text("b")]);
    }

    #[test]
    fn beyond_the_limit_nothing_of_the_batch_is_taken() {
        let mut spill = Spill::new(None, 1000);
        spill.push(&mut vec![text("first")]).unwrap();
        let mut batch = vec![text("second"), text(&"x".repeat(1000))];
        let before = batch.clone();
        assert!(matches!(spill.push(&mut batch), Err(SpillError::Limit)));
        assert_eq!(batch, before);
        assert_eq!(all(&mut spill), [text("first")]);
    }

    #[test]
    fn the_limit_is_the_size_of_all_that_waits() {
        let mut spill = Spill::new(None, 1000);
        spill.push(&mut vec![text("a")]).unwrap();
        let size = spill.waiting;
        for (limit, fits) in [(size, true), (size - 1, false)] {
            let mut spill = Spill::new(None, limit);
            assert_eq!(spill.push(&mut vec![text("a")]).is_ok(), fits, "{limit}");
        }
    }

    #[test]
    fn a_place_that_cannot_be_written_is_an_error() {
        let mut spill = Spill::new(Some(Path::new("/nowhere")), 1000);
        let mut batch = vec![text("a")];
        assert!(matches!(spill.push(&mut batch), Err(SpillError::Io(_))));
        assert_eq!(batch, [text("a")]);
    }
}
