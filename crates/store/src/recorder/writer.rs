//! The queue of one run's entries and the task that writes them. A run does not wait for a slow database, and a failed
//! write does not lose its entries.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

use teamster_api::Outcome;
use teamster_core::Id;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout_at};

use super::Shared;
use crate::store::Unwritten;
use crate::{NewRun, NewSession, SessionKey, SessionLock, Store, StoreError};

/// Time limit of a write that no caller waits for.
const IN_BACKGROUND: Duration = Duration::from_secs(10);

/// The first and the longest pause before a retry.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));

/// Time after the end of a run in which writes are retried.
const BEHIND_THE_END: Duration = Duration::from_mins(1);

/// Callers wait this much longer than the writer, so they receive its error instead of a timeout.
const GRACE: Duration = Duration::from_millis(100);

/// An item to write.
pub(super) enum Entry {
    Begin(Box<NewRun>),
    Session {
        provider: String,
        session_id: Id,
    },
    Beat,
    End(Box<Outcome>),
    Keep {
        key: SessionKey,
        session: NewSession,
        known_at: u64,
        /// The session that the conversation had for this recorder: no other one is replaced.
        continues: Option<Id>,
    },
    Forget {
        key: SessionKey,
        session_id: Option<String>,
        used_before: Option<u64>,
    },
    /// Releases a lock, after the session is stored.
    Unlock(SessionLock),
    /// Deletes expired sessions. No caller waits for it; the next run retries it.
    Expire,
}

impl Entry {
    /// Returns the operation, for error messages.
    fn doing(&self) -> &'static str {
        match self {
            Self::Begin(_) => "write down a run",
            Self::Session { .. } => "write down a run's session",
            Self::Beat => "keep a run alive",
            Self::End(_) => "write down the end of a run",
            Self::Keep { .. } => "keep a session",
            Self::Forget { .. } => "forget a session",
            Self::Unlock(_) => "unlock a session",
            Self::Expire => "forget expired sessions",
        }
    }

    /// Returns the index of the entry's table. Entries of one table are written in order, so a failed one delays those
    /// behind it.
    fn table(&self) -> usize {
        match self {
            Self::Begin(_) | Self::Session { .. } | Self::Beat | Self::End(_) => 0,
            Self::Keep { .. } | Self::Forget { .. } | Self::Unlock(_) | Self::Expire => 1,
        }
    }
}

/// An entry that is neither written nor given up yet.
struct Pending {
    entry: Entry,
    /// True if a write was tried: it may have succeeded nevertheless. Its error was reported.
    tried: bool,
    _unwritten: Option<Arc<Unwritten>>,
}

/// State of the row of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    /// The row is not written yet.
    Missing,
    There,
    /// This run has none: its start was not recorded, or the row belongs to another run with the same id and is
    /// left alone.
    NotOurs,
}

/// Times of a recorder.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) patience: Duration,
    pub(super) heartbeat: Duration,
}

/// The sender of one run's entries. Its task ends when the last clone is dropped and no entries are pending.
#[derive(Clone)]
pub(super) struct Queue {
    batches: mpsc::UnboundedSender<Batch>,
    /// True if the database is too slow. Calls then no longer wait for it.
    behind: Arc<AtomicBool>,
    store: Store,
    patience: Duration,
}

struct Batch {
    entries: Vec<Entry>,
    /// The caller waits until this time.
    deadline: Instant,
    is_waited_for: bool,
    unwritten: Arc<Unwritten>,
    done: oneshot::Sender<()>,
}

impl Queue {
    pub(super) fn open(
        store: Store,
        shared: Weak<Shared>,
        run_id: &Id,
        has_row: bool,
        pace: Pace,
    ) -> Self {
        let (batches, received) = mpsc::unbounded_channel();
        let behind = Arc::new(AtomicBool::new(false));
        let writer = Writer {
            store: store.clone(),
            shared,
            run_id: Arc::clone(run_id),
            row: if has_row { Row::Missing } else { Row::NotOurs },
            pending: Vec::new(),
            behind: Arc::clone(&behind),
            pace,
        };
        tokio::spawn(writer.work(received));
        Self {
            batches,
            behind,
            store,
            patience: pace.patience,
        }
    }

    /// Queues these entries, and waits until they are written unless the database does not keep up.
    pub(super) async fn submit(&self, entries: Vec<Entry>) {
        let is_end = entries.iter().any(|entry| matches!(entry, Entry::End(_)));
        let is_waited_for = !self.behind.load(Relaxed);
        let deadline = Instant::now() + self.patience * if is_end { 2 } else { 1 };
        let (done, is_done) = oneshot::channel();
        let batch = Batch {
            entries,
            deadline,
            is_waited_for,
            unwritten: Arc::new(self.store.begin_write()),
            done,
        };
        // The task lives as long as the queue, unless its runtime is gone.
        let _ = self.batches.send(batch);
        if is_waited_for && timeout_at(deadline + GRACE, is_done).await.is_err() {
            self.behind.store(true, Relaxed);
        }
    }
}

/// The task that writes to the store.
struct Writer {
    store: Store,
    shared: Weak<Shared>,
    run_id: Id,
    row: Row,
    /// Pending entries, in the order of arrival.
    pending: Vec<Pending>,
    behind: Arc<AtomicBool>,
    pace: Pace,
}

impl Writer {
    async fn work(mut self, mut batches: mpsc::UnboundedReceiver<Batch>) {
        let every = self.pace.heartbeat;
        let mut beats = interval_at(Instant::now() + every, every);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut has_ended = false;
        let mut is_open = true;
        let mut give_up = None;
        let mut pause = PAUSES.0;
        let mut again_at = Instant::now();
        loop {
            let now = Instant::now();
            let has_time = give_up.is_none_or(|give_up| now < give_up);
            if !is_open && (self.pending.is_empty() || !has_time) {
                return;
            }
            tokio::select! {
                biased;
                batch = batches.recv(), if is_open => match batch {
                    Some(batch) => {
                        has_ended |= batch.entries.iter().any(|entry| matches!(entry, Entry::End(_)));
                        self.take(batch).await;
                        pause = PAUSES.0;
                        again_at = self.after(pause);
                    }
                    None => {
                        is_open = false;
                        give_up = Some(now + BEHIND_THE_END);
                        self.pending.retain(|pending| !matches!(pending.entry, Entry::Beat));
                    }
                },
                () = sleep_until(again_at), if !self.pending.is_empty() => {
                    self.write(IN_BACKGROUND, None).await;
                    again_at = Instant::now() + pause;
                    pause = (pause * 2).min(PAUSES.1);
                }
                _ = beats.tick(), if is_open && !has_ended && self.row == Row::There => {
                    if !self.pending.iter().any(|pending| matches!(pending.entry, Entry::Beat)) {
                        self.add(Entry::Beat, None);
                        self.write(self.pace.patience, None).await;
                        again_at = self.after(pause);
                    }
                }
            }
        }
    }

    /// Returns the time of the next retry. After a timeout it is now, because the next write uses a new connection.
    fn after(&self, pause: Duration) -> Instant {
        let is_behind = self.behind.load(Relaxed);
        Instant::now() + if is_behind { Duration::ZERO } else { pause }
    }

    async fn take(&mut self, batch: Batch) {
        let is_end = |pending: &Pending| matches!(pending.entry, Entry::End(_));
        let mut expire = false;
        for entry in batch.entries {
            if matches!(entry, Entry::Expire) {
                expire = true;
            } else {
                self.add(entry, Some(&batch.unwritten));
            }
        }
        drop(batch.unwritten);
        if batch.is_waited_for {
            let (each, until) = (self.pace.patience, Some(batch.deadline));
            self.write(each, until).await;
            // The end is the last entry of a run, and possibly of this process.
            if self.pending.iter().any(is_end) {
                self.write(each, until).await;
            }
        }
        // A caller that stopped waiting has already recorded that.
        let _ = batch.done.send(());
        if expire && self.pending.is_empty() {
            self.add(Entry::Expire, None);
            self.write(self.pace.patience, None).await;
            self.pending
                .retain(|pending| !matches!(pending.entry, Entry::Expire));
        }
    }

    fn add(&mut self, entry: Entry, unwritten: Option<&Arc<Unwritten>>) {
        self.pending.push(Pending {
            entry,
            tried: false,
            _unwritten: unwritten.cloned(),
        });
    }

    /// Writes all pending entries, until one is not answered in time.
    async fn write(&mut self, each: Duration, until: Option<Instant>) {
        let mut is_stuck = false;
        let mut held_up = [false; 2];
        let mut left = Vec::new();
        // Written entries count as unwritten until it is known whether the database keeps up: a caller that waits for
        // the last one then submits the next.
        let mut done = Vec::new();
        for mut pending in mem::take(&mut self.pending) {
            let table = pending.entry.table();
            if is_stuck || held_up[table] {
                left.push(pending);
                continue;
            }
            let deadline = Instant::now() + each;
            let deadline = until.map_or(deadline, |until| deadline.min(until));
            let written = timeout_at(deadline, self.write_one(&pending)).await;
            let error = match written {
                Ok(Ok(row)) => {
                    self.row = row;
                    done.push(pending);
                    continue;
                }
                Ok(Err(error)) => error,
                Err(_) => {
                    is_stuck = true;
                    StoreError::Slow {
                        doing: pending.entry.doing(),
                        location: self.store.location(),
                        seconds: each.as_secs(),
                    }
                }
            };
            let is_final = !matches!(error, StoreError::Query { .. } | StoreError::Slow { .. });
            if is_final && matches!(pending.entry, Entry::Begin(_)) {
                self.row = Row::NotOurs;
            }
            if !mem::replace(&mut pending.tried, true)
                && let Some(shared) = self.shared.upgrade()
            {
                shared.report(error);
            }
            if is_final {
                done.push(pending);
            } else {
                held_up[table] = true;
                left.push(pending);
            }
        }
        self.pending = left;
        self.behind.store(is_stuck, Relaxed);
        drop(done);
    }

    /// Writes one entry and returns the new state of the row.
    async fn write_one(&self, pending: &Pending) -> Result<Row, StoreError> {
        let store = &self.store;
        let row = self.row;
        match &pending.entry {
            Entry::Begin(new) => match store.begin_run(new).await {
                Err(StoreError::RunExists { .. }) if pending.tried => Ok(Row::There),
                begun => begun.map(|()| Row::There),
            },
            _ if row != Row::There && pending.entry.table() == 0 => Ok(row),
            Entry::Session {
                provider,
                session_id,
            } => {
                let set = store.set_run_session(&self.run_id, provider, session_id);
                set.await.map(|_| row)
            }
            Entry::Beat => store.heartbeat(&self.run_id).await.map(|_| row),
            Entry::End(outcome) => match store.end_run(outcome).await {
                Err(StoreError::NotRunning { .. }) if pending.tried => Ok(row),
                ended => ended.map(|()| row),
            },
            Entry::Keep {
                key,
                session,
                known_at,
                continues,
            } => {
                let continues = continues.as_deref();
                let kept = store.put_session_of(key, session, Some(*known_at), continues);
                kept.await.map(|()| row)
            }
            Entry::Forget {
                key,
                session_id,
                used_before,
            } => {
                let removed = store.remove(key, session_id.as_deref(), *used_before);
                removed.await.map(|_| row)
            }
            Entry::Unlock(lock) => lock.release().await.map(|()| row),
            Entry::Expire => store.expire().await.map(|_| row),
        }
    }
}
