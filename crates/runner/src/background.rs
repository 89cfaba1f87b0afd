//! Work with the disk on threads of its own, so that a disk that hangs blocks no other task.

use std::collections::VecDeque;
use std::{io, mem};

use tokio::task::{JoinHandle, spawn_blocking};

use crate::log::FILE;
use crate::{RunLogReader, RunsError};
use teamster_api::LogLine;

/// Size of the entries that are read at once, in bytes.
const BATCH: usize = 128 * 1024;

/// Reader of a log.
#[derive(Debug)]
pub(crate) enum Reader {
    Idle(RunLogReader),
    /// A read in progress, which outlives the caller's wait for it.
    Reading(JoinHandle<(RunLogReader, Result<VecDeque<LogLine>, RunsError>)>),
    /// A read panicked.
    Lost,
}

impl Reader {
    /// Returns the next entries and whether the last entry was among them or before them. Cancel-safe.
    pub(crate) async fn next_lines(&mut self) -> Result<(VecDeque<LogLine>, bool), RunsError> {
        *self = match mem::replace(self, Self::Lost) {
            Self::Idle(mut reader) => Self::Reading(spawn_blocking(move || {
                let lines = reader.next_lines(BATCH);
                (reader, lines)
            })),
            other => other,
        };
        let Self::Reading(reading) = self else {
            return Err(lost("the log cannot be read any more"));
        };
        let read = reading.await;
        let (reader, lines) = read.map_err(|error| {
            *self = Self::Lost;
            lost(error)
        })?;
        let has_ended = reader.has_ended();
        *self = Self::Idle(reader);
        Ok((lines?, has_ended))
    }
}

fn lost(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> RunsError {
    RunsError::io("read", FILE)(io::Error::other(error))
}

/// Runs work with the disk on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RunsError> + Send + 'static,
) -> Result<T, RunsError> {
    spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(lost(error)))
}
