//! Destinations of a session's entries: the log in its folder, or the one reader of a session without a folder.

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use teamster_api::RunLogEntry;
use tokio::sync::{Semaphore, mpsc};

use crate::log::Watch;
use crate::{Position, RunLogWriter};

/// Room for entries that the reader has not fetched. Beyond it, the engine keeps the agent's output on disk.
const ROOM: u32 = 1024;
/// Bytes of an entry that take the room of one more entry.
const BYTES: usize = 1024;

/// Destination of entries.
pub(crate) enum LogSink {
    /// The log of a folder.
    Log(RunLogWriter),
    /// The one reader of a session without a folder.
    Reader(Outbox),
}

/// Entries on their way to a reader. They are numbered as those of a log are, but each is sent at once and as it is.
pub(crate) struct Outbox {
    reader: mpsc::UnboundedSender<(RunLogEntry, u32)>,
    room: Arc<Semaphore>,
    /// Entries that the reader has no room for, and the room that they take.
    waiting: VecDeque<(RunLogEntry, u32)>,
    /// Number of the newest entry.
    seq: u64,
}

/// Reader of the entries of a session without a folder.
#[derive(Debug)]
pub struct EntryReader {
    entries: mpsc::UnboundedReceiver<(RunLogEntry, u32)>,
    room: Arc<Semaphore>,
}

impl EntryReader {
    /// Returns the next entry; `None` after the last. Cancel-safe.
    pub async fn recv(&mut self) -> Option<RunLogEntry> {
        let (entry, room) = self.entries.recv().await?;
        self.room.add_permits(room as usize);
        Some(entry)
    }
}

impl Drop for EntryReader {
    fn drop(&mut self) {
        // The session sees that its reader is gone when it is woken.
        self.entries.close();
        self.room.close();
    }
}

impl Outbox {
    fn push(&mut self, mut entry: RunLogEntry) {
        self.seq += 1;
        number(&mut entry, self.seq);
        let room = u32::try_from(entry.approximate_bytes() / BYTES).unwrap_or(ROOM);
        let room = room.saturating_add(1).min(ROOM);
        self.waiting.push_back((entry, room));
        self.send();
    }

    /// Sends the entries that the reader has room for.
    fn send(&mut self) {
        while let Some((_, room)) = self.waiting.front()
            && let Ok(taken) = self.room.try_acquire_many(*room)
            && let Some(entry) = self.waiting.pop_front()
        {
            // The reader returns the permits when it fetches the entry.
            taken.forget();
            // Without a reader it is dropped, and the next flush fails.
            let _ = self.reader.send(entry);
        }
    }

    /// Waits until the first waiting entry has room, or the reader is gone. Cancel-safe.
    async fn room(&self) {
        match self.waiting.front() {
            None => self.reader.closed().await,
            Some((_, room)) => drop(self.room.acquire_many(*room).await),
        }
    }
}

impl LogSink {
    pub(crate) fn to_reader() -> (Self, EntryReader) {
        let (reader, entries) = mpsc::unbounded_channel();
        let room = Arc::new(Semaphore::new(ROOM as usize));
        let outbox = Outbox {
            reader,
            room: room.clone(),
            waiting: VecDeque::new(),
            seq: 0,
        };
        (Self::Reader(outbox), EntryReader { entries, room })
    }

    pub(crate) fn push(&mut self, entry: RunLogEntry) {
        match self {
            Self::Log(writer) => writer.push(entry),
            Self::Reader(outbox) => outbox.push(entry),
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

    /// Writes what can be written now, and returns the new position. Fails if the log cannot be written, or if the
    /// reader is gone.
    pub(crate) fn flush(&mut self) -> io::Result<Position> {
        match self {
            Self::Log(writer) => writer.flush(),
            Self::Reader(outbox) => {
                outbox.send();
                if outbox.reader.is_closed() {
                    outbox.waiting.clear();
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                Ok(self.written())
            }
        }
    }

    /// Begins to watch whether the log is removed; `None` for a reader. MUST be called in a Tokio runtime.
    pub(crate) fn watch(&self) -> Option<Watch> {
        match self {
            Self::Log(writer) => Some(writer.watch()),
            Self::Reader(_) => None,
        }
    }

    pub(crate) fn is_removed(&self) -> bool {
        matches!(self, Self::Log(writer) if writer.is_removed())
    }

    /// Returns whether the reader has to catch up before the next entries are fetched.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Self::Reader(outbox) if !outbox.waiting.is_empty())
    }

    /// Waits until a full sink has room, or the reader is gone, so that the next write fails. Cancel-safe.
    pub(crate) async fn room(&self) {
        match self {
            Self::Log(_) => pending().await,
            Self::Reader(outbox) => outbox.room().await,
        }
    }

    /// Returns the number of bytes that wait to be written to a file.
    pub(crate) fn unwritten_bytes(&self) -> usize {
        match self {
            Self::Log(writer) => writer.unwritten_bytes(),
            Self::Reader(_) => 0,
        }
    }

    pub(crate) fn discard_unwritten(&mut self) {
        match self {
            Self::Log(writer) => writer.discard_unwritten(),
            Self::Reader(outbox) => outbox.waiting.clear(),
        }
    }

    /// Makes what is written outlive a power failure; for a reader, waits until it has room for all entries. Fails as
    /// [`flush`](Self::flush) does.
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
