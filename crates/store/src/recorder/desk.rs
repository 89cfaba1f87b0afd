//! What is told of one run, and the task that writes it down: a run must not wait for a database that is
//! slow, and what it has told must not be lost with one failure.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

use teamster_core::Id;
use teamster_orchestrator::Outcome;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout_at};

use super::Shared;
use crate::store::Owed;
use crate::{NewRun, NewSession, SessionKey, Store, StoreError};

/// How long one thing may take that nobody waits for.
const IN_BACKGROUND: Duration = Duration::from_secs(10);

/// How long to wait before something is tried again, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));

/// How long to try behind the end of a run.
const BEHIND_THE_END: Duration = Duration::from_mins(1);

/// How much later than the desk a call gives up, so that the desk has told why.
const GRACE: Duration = Duration::from_millis(100);

/// Something to write.
pub(super) enum Note {
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
    },
    Forget {
        key: SessionKey,
        session_id: Option<String>,
        used_before: Option<u64>,
    },
    /// Sessions that have expired. Nobody waits for it, and who comes next tries it again.
    Expire,
}

impl Note {
    /// What is done, for a person.
    fn doing(&self) -> &'static str {
        match self {
            Self::Begin(_) => "write down a run",
            Self::Session { .. } => "write down a run's session",
            Self::Beat => "keep a run alive",
            Self::End(_) => "write down the end of a run",
            Self::Keep { .. } => "keep a session",
            Self::Forget { .. } => "forget a session",
            Self::Expire => "forget expired sessions",
        }
    }

    /// Notes of one table are written in their order: one that fails holds up those behind it.
    fn table(&self) -> usize {
        match self {
            Self::Begin(_) | Self::Session { .. } | Self::Beat | Self::End(_) => 0,
            Self::Keep { .. } | Self::Forget { .. } | Self::Expire => 1,
        }
    }
}

/// What was told, until it is written or given up.
struct Pending {
    note: Note,
    /// It was tried: it may have been written nevertheless. What went wrong was told.
    tried: bool,
    _owed: Option<Arc<Owed>>,
}

/// What is known of the row of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    /// It is not written yet.
    Missing,
    There,
    /// There is none of this run: it was not told of its beginning, or the row is that of another run of
    /// the same id, and is left alone.
    NotOurs,
}

/// Times of a recorder.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) patience: Duration,
    pub(super) heartbeat: Duration,
}

/// Where the notes of one run are handed in. The task behind it ends when the last of its clones is gone
/// and there is nothing left to write.
#[derive(Clone)]
pub(super) struct Desk {
    orders: mpsc::UnboundedSender<Order>,
    /// The database does not keep up: nobody waits for it.
    behind: Arc<AtomicBool>,
    store: Store,
    patience: Duration,
}

struct Order {
    notes: Vec<Note>,
    /// Until when it is waited for.
    deadline: Instant,
    is_waited_for: bool,
    owed: Arc<Owed>,
    done: oneshot::Sender<()>,
}

impl Desk {
    pub(super) fn open(
        store: Store,
        told: Weak<Shared>,
        run_id: &Id,
        has_row: bool,
        pace: Pace,
    ) -> Self {
        let (orders, received) = mpsc::unbounded_channel();
        let behind = Arc::new(AtomicBool::new(false));
        let clerk = Clerk {
            store: store.clone(),
            told,
            run_id: Arc::clone(run_id),
            row: if has_row { Row::Missing } else { Row::NotOurs },
            pending: Vec::new(),
            behind: Arc::clone(&behind),
            pace,
        };
        tokio::spawn(clerk.work(received));
        Self {
            orders,
            behind,
            store,
            patience: pace.patience,
        }
    }

    /// Have these written, and wait for it, unless the database does not keep up.
    pub(super) async fn hand_in(&self, notes: Vec<Note>) {
        let is_end = notes.iter().any(|note| matches!(note, Note::End(_)));
        let is_waited_for = !self.behind.load(Relaxed);
        let deadline = Instant::now() + self.patience * if is_end { 2 } else { 1 };
        let (done, is_done) = oneshot::channel();
        let order = Order {
            notes,
            deadline,
            is_waited_for,
            owed: Arc::new(self.store.owe()),
            done,
        };
        // The task is there for as long as there is a desk, unless its runtime is gone.
        let _ = self.orders.send(order);
        if is_waited_for && timeout_at(deadline + GRACE, is_done).await.is_err() {
            self.behind.store(true, Relaxed);
        }
    }
}

/// Who writes.
struct Clerk {
    store: Store,
    told: Weak<Shared>,
    run_id: Id,
    row: Row,
    /// In the order in which it was told.
    pending: Vec<Pending>,
    behind: Arc<AtomicBool>,
    pace: Pace,
}

impl Clerk {
    async fn work(mut self, mut orders: mpsc::UnboundedReceiver<Order>) {
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
                order = orders.recv(), if is_open => match order {
                    Some(order) => {
                        has_ended |= order.notes.iter().any(|note| matches!(note, Note::End(_)));
                        self.take(order).await;
                        pause = PAUSES.0;
                        again_at = self.after(pause);
                    }
                    None => {
                        is_open = false;
                        give_up = Some(now + BEHIND_THE_END);
                        self.pending.retain(|pending| !matches!(pending.note, Note::Beat));
                    }
                },
                () = sleep_until(again_at), if !self.pending.is_empty() => {
                    self.write(IN_BACKGROUND, None).await;
                    again_at = Instant::now() + pause;
                    pause = (pause * 2).min(PAUSES.1);
                }
                _ = beats.tick(), if is_open && !has_ended && self.row == Row::There => {
                    if !self.pending.iter().any(|pending| matches!(pending.note, Note::Beat)) {
                        self.add(Note::Beat, None);
                        self.write(self.pace.patience, None).await;
                        again_at = self.after(pause);
                    }
                }
            }
        }
    }

    /// When to go on with what is left. Where an answer was given up there is a fresh connection now.
    fn after(&self, pause: Duration) -> Instant {
        let is_behind = self.behind.load(Relaxed);
        Instant::now() + if is_behind { Duration::ZERO } else { pause }
    }

    async fn take(&mut self, order: Order) {
        let is_end = |pending: &Pending| matches!(pending.note, Note::End(_));
        let mut expire = false;
        for note in order.notes {
            if matches!(note, Note::Expire) {
                expire = true;
            } else {
                self.add(note, Some(&order.owed));
            }
        }
        drop(order.owed);
        if order.is_waited_for {
            let (each, until) = (self.pace.patience, Some(order.deadline));
            self.write(each, until).await;
            // The end of a run is the last that is told of it, and perhaps of this process.
            if self.pending.iter().any(is_end) {
                self.write(each, until).await;
            }
        }
        // If nobody waits any more that is known already.
        let _ = order.done.send(());
        if expire && self.pending.is_empty() {
            self.add(Note::Expire, None);
            self.write(self.pace.patience, None).await;
            self.pending
                .retain(|pending| !matches!(pending.note, Note::Expire));
        }
    }

    fn add(&mut self, note: Note, owed: Option<&Arc<Owed>>) {
        self.pending.push(Pending {
            note,
            tried: false,
            _owed: owed.cloned(),
        });
    }

    /// Try all that is to be written. Behind one that is not answered in time, nothing more.
    async fn write(&mut self, each: Duration, until: Option<Instant>) {
        let mut is_stuck = false;
        let mut held_up = [false; 2];
        let mut left = Vec::new();
        // Owed until it is known whether the database keeps up: who waits for the last of it then hands
        // in the next.
        let mut done = Vec::new();
        for mut pending in mem::take(&mut self.pending) {
            let table = pending.note.table();
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
                        doing: pending.note.doing(),
                        place: self.store.place(),
                        seconds: each.as_secs(),
                    }
                }
            };
            let is_final = !matches!(error, StoreError::Query { .. } | StoreError::Slow { .. });
            if is_final && matches!(pending.note, Note::Begin(_)) {
                self.row = Row::NotOurs;
            }
            if !mem::replace(&mut pending.tried, true)
                && let Some(told) = self.told.upgrade()
            {
                told.tell(error);
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

    /// Tells what is then known of the row.
    async fn write_one(&self, pending: &Pending) -> Result<Row, StoreError> {
        let store = &self.store;
        let row = self.row;
        match &pending.note {
            Note::Begin(new) => match store.begin_run(new).await {
                Err(StoreError::RunExists { .. }) if pending.tried => Ok(Row::There),
                begun => begun.map(|()| Row::There),
            },
            _ if row != Row::There && pending.note.table() == 0 => Ok(row),
            Note::Session {
                provider,
                session_id,
            } => {
                let set = store.set_run_session(&self.run_id, provider, session_id);
                set.await.map(|_| row)
            }
            Note::Beat => store.heartbeat(&self.run_id).await.map(|_| row),
            Note::End(outcome) => match store.end_run(outcome).await {
                Err(StoreError::NotRunning { .. }) if pending.tried => Ok(row),
                ended => ended.map(|()| row),
            },
            Note::Keep {
                key,
                session,
                known_at,
            } => {
                let kept = store.put_session_of(key, session, Some(*known_at));
                kept.await.map(|()| row)
            }
            Note::Forget {
                key,
                session_id,
                used_before,
            } => {
                let removed = store.remove(key, session_id.as_deref(), *used_before);
                removed.await.map(|_| row)
            }
            Note::Expire => store.expire().await.map(|_| row),
        }
    }
}
