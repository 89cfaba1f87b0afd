//! Reading of a CLI's record files during the run and at its end.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use teamster_core::provider::RecordFiles;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::reading::Reader;
use crate::record::Record;

const READ_INTERVAL: Duration = Duration::from_millis(250);

/// Reads the record files of one run. All blocking work is done on another thread.
pub(crate) struct Follower {
    begun: SystemTime,
    /// True to read during the run too.
    live: bool,
    record: Option<Record>,
    looks: Option<Interval>,
    /// The read in progress.
    look: Option<JoinHandle<(Record, Vec<String>)>>,
}

impl Follower {
    /// Creates a follower before the start of the CLI, with the files that are known by then.
    pub(crate) async fn begin(handle: &Handle, files: Option<RecordFiles>, live: bool) -> Self {
        let begun = SystemTime::now();
        let record = match files {
            Some(files) => handle.spawn_blocking(|| Record::begin(files)).await.ok(),
            None => None,
        };
        Self {
            begun,
            live,
            record,
            looks: None,
            look: None,
        }
    }

    /// Polls the next lines during the run.
    pub(crate) fn poll(&mut self, reader: &impl Reader, cx: &mut Context<'_>) -> Poll<Vec<String>> {
        if !self.live && !reader.wants_record() {
            return Poll::Pending;
        }
        loop {
            if let Some(look) = &mut self.look {
                let looked = ready!(Pin::new(look).poll(cx));
                self.look = None;
                if let Ok((record, lines)) = looked {
                    self.record = Some(record);
                    if !lines.is_empty() {
                        return Poll::Ready(lines);
                    }
                }
            }
            let looks = self.looks.get_or_insert_with(|| {
                let mut looks = interval(READ_INTERVAL);
                looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                looks
            });
            ready!(looks.poll_tick(cx));
            if let Some(mut record) = self.take(|| reader.record_files()) {
                if reader.wants_record()
                    && let Some(files) = reader.record_files()
                {
                    // The process may have begun another session.
                    record.follow(files);
                }
                self.look = Some(spawn_blocking(move || {
                    let lines = record.lines(false);
                    (record, lines)
                }));
            }
        }
    }

    /// Returns the remaining lines after the end of the CLI. `files` are used if none were known before.
    pub(crate) async fn finish(mut self, files: Option<RecordFiles>) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(look) = self.look.take()
            && let Ok((record, looked)) = look.await
        {
            self.record = Some(record);
            lines = looked;
        }
        if let Some(mut record) = self.take(|| files) {
            let last = spawn_blocking(move || record.lines(true)).await;
            lines.extend(last.unwrap_or_default());
        }
        lines
    }

    fn take(&mut self, files: impl FnOnce() -> Option<RecordFiles>) -> Option<Record> {
        let begun = self.begun;
        (self.record.take()).or_else(|| Some(Record::since(files()?, begun)))
    }
}
