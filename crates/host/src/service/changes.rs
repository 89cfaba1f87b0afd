//! The current state of all runs: one snapshot, refreshed while it has watchers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use teamster_api::{Change, RunSummary, ServiceError, ViewState};
use teamster_core::sync::lock;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::index::{AT_ONCE, Index};

/// The refresh interval.
const TICK: Duration = Duration::from_millis(500);
/// The number of newest runs in a snapshot, in addition to all that have not ended.
const RECENT: usize = 50;

/// The number of older runs that a refresh reads for the first time: a runner that was killed has left no end of its log.
const UNREAD: usize = 256;

/// A snapshot of runs: the newest ones and all that have not ended, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Snapshot {
    runs: Vec<Arc<RunSummary>>,
}

/// Refreshes the snapshot while it has watchers.
#[derive(Debug)]
pub(crate) struct Changes {
    index: Arc<Index>,
    state: watch::Sender<Arc<Snapshot>>,
    /// True while a refresh task runs.
    is_refreshing: Mutex<bool>,
    /// Allows one refresh at a time. True once one has succeeded.
    refreshes: tokio::sync::Mutex<bool>,
}

impl Changes {
    pub(crate) fn new(index: Arc<Index>) -> Self {
        Self {
            index,
            state: watch::Sender::default(),
            is_refreshing: Mutex::default(),
            refreshes: tokio::sync::Mutex::default(),
        }
    }

    /// Refreshes the snapshot and returns a receiver of it and its changes.
    pub(crate) async fn watch(
        self: &Arc<Self>,
    ) -> Result<watch::Receiver<Arc<Snapshot>>, ServiceError> {
        let receiver = self.state.subscribe();
        self.refresh().await?;
        let mut is_refreshing = lock(&self.is_refreshing);
        if !std::mem::replace(&mut *is_refreshing, true) {
            tokio::spawn(self.clone().refresh_while_watched());
        }
        Ok(receiver)
    }

    async fn refresh(&self) -> Result<(), ServiceError> {
        let mut has_read = self.refreshes.lock().await;
        let mut now = Snapshot::default();
        let folders = if *has_read {
            let mut folders = self.index.folders().await?;
            // Of thousands, nearly all have ended, and nothing of them changes. A few more than are shown: one may be damaged.
            self.index.to_read(&mut folders, 2 * RECENT, UNREAD);
            folders
        } else {
            // The logs of thousands of runs, which the next refreshes read, would delay the first snapshot by seconds.
            self.index.recent(RECENT).await?
        };
        for folders in folders.chunks(AT_ONCE) {
            for run in self.index.summaries(folders, false).await {
                if now.runs.len() < RECENT || run.state != ViewState::Ended {
                    now.runs.push(run);
                }
            }
        }
        self.state.send_if_modified(|known| {
            let changed = **known != now;
            if changed {
                *known = Arc::new(now);
            }
            changed
        });
        *has_read = true;
        Ok(())
    }

    /// Refreshes the snapshot until it has no watchers.
    async fn refresh_while_watched(self: Arc<Self>) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if self.state.receiver_count() == 0 {
                // A new watcher waits for this lock and starts another task.
                let mut is_refreshing = lock(&self.is_refreshing);
                if self.state.receiver_count() == 0 {
                    *is_refreshing = false;
                    return;
                }
            }
            // The next refresh retries after an error.
            let _ = self.refresh().await;
        }
    }
}

impl Snapshot {
    /// Returns the whole snapshot as a message.
    pub(crate) fn message(&self) -> Change {
        Change::Snapshot {
            runs: self.runs.clone(),
            agents: None,
        }
    }

    pub(crate) fn changes_since(&self, before: &Self) -> Vec<Change> {
        let find = |state: &'_ Self, id: &str| {
            state.runs.iter().find(|run| run.info.run_id == id).cloned()
        };
        let mut changes = Vec::new();
        // Oldest first, in the order of their start.
        for run in self.runs.iter().rev() {
            if find(before, &run.info.run_id).as_ref() != Some(run) {
                changes.push(Change::Run { run: run.clone() });
            }
        }
        for run in &before.runs {
            let run_id = &run.info.run_id;
            if find(self, run_id).is_none() {
                let run_id = run_id.clone();
                changes.push(Change::Gone { run_id });
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use teamster_api::RunInfo;
    use teamster_runner::{LogLimits, Runs};

    use super::*;

    #[tokio::test]
    async fn the_first_snapshot_reads_the_newest_runs_and_live_ones() {
        let dir = tempfile::tempdir().unwrap();
        let runs = Runs::at(dir.path());
        let make = |number: u64| {
            let mut info = RunInfo::new(format!("r{number}"), "claude");
            info.accepted_at_ms = number;
            let run = runs.accept(&info, LogLimits::default()).unwrap();
            let described = std::fs::File::open(run.folder.path().join("run.json")).unwrap();
            let at = std::time::UNIX_EPOCH + Duration::from_secs(number);
            described.set_modified(at).unwrap();
            run
        };
        let live = make(1);
        // Their runners are gone without an end of the log, which a reader writes.
        for number in 2..=RECENT as u64 + 2 {
            drop(make(number));
        }
        // Of a runner in another container, the process is unknown.
        std::fs::write(dir.path().join("r1/lock"), "").unwrap();
        let is_read = |id: &str| {
            let run = runs.get(id).unwrap().unwrap();
            let log = std::fs::read_to_string(run.path().join("events.ndjson")).unwrap();
            log.contains(r#""type":"done""#)
        };
        let changes = Changes::new(Arc::new(Index::new(Ok(runs.clone()))));
        changes.refresh().await.unwrap();
        let ids = || -> Vec<_> {
            let now = changes.state.borrow().clone();
            now.runs.iter().map(|run| run.info.run_id.clone()).collect()
        };
        let first = ids();
        assert_eq!((first.len(), &*first[0]), (RECENT + 1, "r52"));
        assert_eq!((&*first[RECENT - 1], &*first[RECENT]), ("r3", "r1"));
        assert_eq!((is_read("r3"), is_read("r2")), (true, false));
        changes.refresh().await.unwrap();
        assert_eq!(ids(), first);
        assert!(is_read("r2"));
        drop(live);
    }

    #[tokio::test]
    async fn older_runs_are_read_for_the_first_time_a_few_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let runs = Runs::at(dir.path());
        for number in 1..=6 {
            let mut info = RunInfo::new(format!("r{number}"), "claude");
            info.accepted_at_ms = number;
            drop(runs.accept(&info, LogLimits::default()).unwrap());
        }
        let index = Arc::new(Index::new(Ok(runs)));
        let mut read = Vec::new();
        for _ in 0..4 {
            let mut folders = index.folders().await.unwrap();
            index.to_read(&mut folders, 1, 2);
            let ids: Vec<_> = folders.iter().map(|run| run.id().to_owned()).collect();
            read.push(ids.join(" "));
            index.summaries(&folders, false).await;
        }
        assert_eq!(read, ["r6 r5 r4", "r6 r3 r2", "r6 r1", "r6"]);
    }

    #[tokio::test]
    async fn only_the_first_refresh_leaves_runs_out() {
        let dir = tempfile::tempdir().unwrap();
        let runs = Runs::at(dir.path());
        let changes = Changes::new(Arc::new(Index::new(Ok(runs.clone()))));
        changes.refresh().await.unwrap();
        for number in 1..=RECENT as u64 + 1 {
            let mut info = RunInfo::new(format!("r{number}"), "claude");
            info.accepted_at_ms = number;
            drop(runs.accept(&info, LogLimits::default()).unwrap());
        }
        changes.refresh().await.unwrap();
        let oldest = runs.get("r1").unwrap().unwrap();
        let log = std::fs::read_to_string(oldest.path().join("events.ndjson")).unwrap();
        assert!(log.contains(r#""type":"done""#), "{log}");
    }
}
