//! Destinations of a session's entries: the log in its folder, or the one reader of a session without a folder.

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::time::Instant;

use teamster_api::RunLogEntry;
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::{Position, RunLogWriter};

/// Number of entries that a reader can be behind before the agent waits for it.
const AHEAD: usize = 1024;

/// Destination of entries.
pub(crate) enum Journal {
    /// The log of a folder.
    Log(RunLogWriter),
    /// The one reader of a session without a folder.
    Reader(Outbox),
}

/// Entries on their way to a reader. They are numbered as those of a log are, but each is sent at once and as it is.
pub(crate) struct Outbox {
    reader: mpsc::Sender<RunLogEntry>,
    /// Entries that the reader has no room for.
    waiting: VecDeque<RunLogEntry>,
    /// Number of the newest entry.
    seq: u64,
}

impl Journal {
    /// Creates a journal and its reader.
    pub(crate) fn to_reader() -> (Self, mpsc::Receiver<RunLogEntry>) {
        let (reader, entries) = mpsc::channel(AHEAD);
        let outbox = Outbox {
            reader,
            waiting: VecDeque::new(),
            seq: 0,
        };
        (Self::Reader(outbox), entries)
    }

    pub(crate) fn push(&mut self, mut entry: RunLogEntry) {
        match self {
            Self::Log(writer) => writer.push(entry),
            Self::Reader(outbox) => {
                outbox.seq += 1;
                number(&mut entry, outbox.seq);
                outbox.waiting.push_back(entry);
            }
        }
    }

    /// Returns the position of the newest entry that has reached its destination or, for a reader, is on its way to it.
    pub(crate) fn written(&self) -> Position {
        match self {
            Self::Log(writer) => writer.written(),
            Self::Reader(outbox) => Position {
                seq: outbox.seq,
                ended: false,
            },
        }
    }

    /// Returns when entries that wait for others are due.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self {
            Self::Log(writer) => writer.due(),
            Self::Reader(_) => None,
        }
    }

    pub(crate) fn end_frame(&mut self) {
        if let Self::Log(writer) = self {
            writer.end_frame();
        }
    }

    /// Writes what can be written now, and returns the new position.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be written, or if the reader is gone.
    pub(crate) fn flush(&mut self) -> io::Result<Position> {
        match self {
            Self::Log(writer) => writer.flush(),
            Self::Reader(outbox) => {
                while let Some(entry) = outbox.waiting.pop_front() {
                    if let Err(TrySendError::Full(entry)) = outbox.reader.try_send(entry) {
                        outbox.waiting.push_front(entry);
                        break;
                    }
                }
                if outbox.reader.is_closed() {
                    outbox.waiting.clear();
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                Ok(self.written())
            }
        }
    }

    /// Returns whether the reader has to catch up before the next entries are fetched.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Self::Reader(outbox) if !outbox.waiting.is_empty())
    }

    /// Waits until a full journal has room, or the reader is gone, so that the next write fails. Cancel-safe.
    pub(crate) async fn room(&self) {
        match self {
            Self::Log(_) => pending().await,
            Self::Reader(outbox) if outbox.waiting.is_empty() => outbox.reader.closed().await,
            Self::Reader(outbox) => drop(outbox.reader.reserve().await),
        }
    }

    pub(crate) fn discard_unwritten(&mut self) {
        match self {
            Self::Log(writer) => writer.discard_unwritten(),
            Self::Reader(outbox) => outbox.waiting.clear(),
        }
    }

    /// Makes what is written outlive a power failure; for a reader, waits until it has room for all entries.
    ///
    /// # Errors
    ///
    /// Fails as [`flush`](Self::flush) does.
    pub(crate) async fn finish(&mut self) -> io::Result<()> {
        while self.is_full() {
            self.room().await;
            self.flush()?;
        }
        match self {
            Self::Log(writer) => writer.sync(),
            Self::Reader(_) => Ok(()),
        }
    }
}

/// Gives an entry this number.
pub(crate) fn number(entry: &mut RunLogEntry, seq: u64) {
    match entry {
        RunLogEntry::Agent(entry) => entry.seq = seq,
        RunLogEntry::Run(entry) => entry.seq = seq,
        _ => {}
    }
}
