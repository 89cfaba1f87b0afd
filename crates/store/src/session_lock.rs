//! Locks of keys whose session is not known yet, so that a conversation begins once.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use sqlx::Row;
use teamster_core::sync::lock;
use teamster_core::time::millis;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{Instant, interval, sleep};

use crate::column::{figure, optional_figure, small, text, to_column};
use crate::process::{Presence, Writer};
use crate::run::{HEARTBEAT, LOST_AFTER};
use crate::{SessionKey, SessionRecord, Store, StoreError};

/// Ids of the locks that this process holds. The row of another one of this process was left by a failed release.
static HOLDERS: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

/// The first and the longest pause of a caller that waits for another one's session.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// A conversation's session, or the right to begin it.
#[derive(Debug)]
pub enum SessionOrLock {
    /// The session exists: resume it.
    Session(Box<SessionRecord>),
    /// There is no session, and no other process begins one while this lock is held.
    Lock(SessionLock),
}

/// The right to begin the session of a key. Only one process and task has it, across all that use the store.
///
/// A [`Recorder`](crate::Recorder::session_locks) releases it once a session is stored. Otherwise it is released when
/// it is dropped within a Tokio runtime, or when its process has ended, even by SIGKILL. On Linux, a lock that was
/// dropped is free for its own process in any case.
#[derive(Debug)]
pub struct SessionLock {
    store: Store,
    key: SessionKey,
    holder: Holder,
    heartbeat: AbortHandle,
    is_released: AtomicBool,
}

/// The id of a lock that this process holds, or is about to.
#[derive(Debug)]
struct Holder(String);

impl Holder {
    fn new(id: String) -> Self {
        lock(&HOLDERS).insert(id.clone());
        Self(id)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        lock(&HOLDERS).remove(&self.0);
    }
}

/// The row of a lock.
struct Held {
    holder: String,
    writer: Writer,
    heartbeat_at: u64,
}

impl Store {
    /// Returns the session of a conversation with a provider, or the right to begin it.
    ///
    /// While another process or task has that right, this waits for its session, for `at_most` this time.
    ///
    /// # Errors
    ///
    /// [`StoreError::SessionBeginning`] after the time limit. Fails if the key is invalid or the database fails.
    pub async fn session_or_lock(
        &self,
        key: &SessionKey,
        at_most: Duration,
    ) -> Result<SessionOrLock, StoreError> {
        let deadline = Instant::now() + at_most;
        let mut pause = PAUSES.0;
        loop {
            if let Some(session) = self.session(key).await? {
                return Ok(SessionOrLock::Session(Box::new(session)));
            }
            let held = self.lock_of(key).await?;
            let is_free = held.as_ref().is_none_or(|held| self.is_abandoned(held));
            if is_free && let Some(lock) = self.take_lock(key, held.as_ref()).await? {
                // The former holder may have stored its session since the lookup.
                return Ok(match self.session(key).await? {
                    Some(session) => SessionOrLock::Session(Box::new(session)),
                    None => SessionOrLock::Lock(lock),
                });
            }
            let now = Instant::now();
            if now >= deadline {
                let writer = held.map(|held| held.writer);
                return Err(StoreError::SessionBeginning {
                    key: key.to_string(),
                    host: writer
                        .as_ref()
                        .map(|writer| writer.host.clone())
                        .unwrap_or_default(),
                    pid: writer.map_or(0, |writer| writer.pid),
                    seconds: at_most.as_secs(),
                });
            }
            sleep(pause.min(deadline - now)).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    async fn lock_of(&self, key: &SessionKey) -> Result<Option<Held>, StoreError> {
        const DOING: &str = "look up the lock of a session";
        let [channel, user, thread] = key.conversation.columns();
        let query = sqlx::query(
            "SELECT holder, host, process_space, pid, process_start, heartbeat_at \
             FROM teamster_session_locks WHERE channel_id = $1 AND user_id = $2 \
             AND thread_id = $3 AND provider = $4",
        )
        .bind(channel)
        .bind(user)
        .bind(thread)
        .bind(&key.provider);
        let rows = self.fetch(DOING, query).await?;
        let held = rows.first().map(|row| {
            Ok(Held {
                holder: row.try_get("holder")?,
                writer: Writer {
                    host: row.try_get("host")?,
                    space: row.try_get("process_space")?,
                    pid: small(figure(row, "pid")?),
                    started: optional_figure(row, "process_start")?,
                },
                heartbeat_at: figure(row, "heartbeat_at")?,
            })
        });
        held.transpose().map_err(|error| self.failed(DOING, &error))
    }

    /// Returns whether the holder of a lock has ended, or no longer knows of it.
    fn is_abandoned(&self, held: &Held) -> bool {
        match held.writer.presence(&Writer::this()) {
            Presence::Running if held.writer.pid == std::process::id() => {
                !lock(&HOLDERS).contains(&held.holder)
            }
            Presence::Running => false,
            Presence::Ended => true,
            // On another machine, or where the system does not distinguish processes.
            _ => self.now().saturating_sub(held.heartbeat_at) > millis(LOST_AFTER),
        }
    }

    /// Takes a lock that is free or abandoned. `None` if another caller was faster.
    async fn take_lock(
        &self,
        key: &SessionKey,
        abandoned: Option<&Held>,
    ) -> Result<Option<SessionLock>, StoreError> {
        let (store, key) = (self.clone(), key.clone());
        let abandoned = abandoned.map(|held| held.holder.clone());
        // Closing the store waits for this.
        let unwritten = self.begin_write();
        // A task, because the database may write the row also of a caller that is dropped meanwhile. Then the lock is
        // dropped, which releases it.
        let taking = tokio::spawn(async move {
            let taken = store.write_lock(&key, abandoned.as_deref()).await;
            (taken, unwritten)
        });
        match taking.await {
            Ok((taken, _)) => taken,
            // The runtime ends.
            Err(_) => Ok(None),
        }
    }

    async fn write_lock(
        &self,
        key: &SessionKey,
        abandoned: Option<&str>,
    ) -> Result<Option<SessionLock>, StoreError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let writer = Writer::this();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // Before the row is written, so that no other task of this process takes it for abandoned.
        let holder = Holder::new(text(&format!(
            "{} {} {}-{}-{number}",
            writer.host,
            writer.space.as_deref().unwrap_or_default(),
            writer.pid,
            writer.started.unwrap_or_default(),
        )));
        let [channel, user, thread] = key.conversation.columns();
        let query = sqlx::query(
            "INSERT INTO teamster_session_locks (channel_id, user_id, thread_id, provider, holder, \
             host, process_space, pid, process_start, heartbeat_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
             ON CONFLICT (channel_id, user_id, thread_id, provider) DO UPDATE SET \
             holder = excluded.holder, host = excluded.host, \
             process_space = excluded.process_space, pid = excluded.pid, \
             process_start = excluded.process_start, heartbeat_at = excluded.heartbeat_at \
             WHERE teamster_session_locks.holder = $11",
        )
        .bind(channel)
        .bind(user)
        .bind(thread)
        .bind(&key.provider)
        .bind(&holder.0)
        .bind(text(&writer.host))
        .bind(writer.space)
        .bind(i64::from(writer.pid))
        .bind(writer.started.map(to_column))
        .bind(to_column(self.now()))
        // No lock has an empty holder.
        .bind(abandoned.unwrap_or_default());
        let taken = self.execute("lock a session", query).await?;
        Ok((taken > 0).then(|| SessionLock::new(self.clone(), key.clone(), holder)))
    }

    async fn beat_lock(&self, key: &SessionKey, holder: &str) -> Result<u64, StoreError> {
        let [channel, user, thread] = key.conversation.columns();
        let query = sqlx::query(
            "UPDATE teamster_session_locks SET heartbeat_at = $1 WHERE channel_id = $2 \
             AND user_id = $3 AND thread_id = $4 AND provider = $5 AND holder = $6",
        )
        .bind(to_column(self.now()))
        .bind(channel)
        .bind(user)
        .bind(thread)
        .bind(&key.provider)
        .bind(holder);
        self.execute("keep the lock of a session", query).await
    }

    async fn release_lock(&self, key: &SessionKey, holder: &str) -> Result<u64, StoreError> {
        let [channel, user, thread] = key.conversation.columns();
        let query = sqlx::query(
            "DELETE FROM teamster_session_locks WHERE channel_id = $1 AND user_id = $2 \
             AND thread_id = $3 AND provider = $4 AND holder = $5",
        )
        .bind(channel)
        .bind(user)
        .bind(thread)
        .bind(&key.provider)
        .bind(holder);
        self.execute("unlock a session", query).await
    }
}

impl SessionLock {
    fn new(store: Store, key: SessionKey, holder: Holder) -> Self {
        let beat = {
            let (store, key, holder) = (store.clone(), key.clone(), holder.0.clone());
            async move {
                let mut beats = interval(HEARTBEAT);
                // The first tick is immediate.
                beats.tick().await;
                loop {
                    beats.tick().await;
                    // Only other machines look at the heartbeat, and the next one may succeed.
                    let _ = store.beat_lock(&key, &holder).await;
                }
            }
        };
        Self {
            store,
            key,
            holder,
            heartbeat: tokio::spawn(beat).abort_handle(),
            is_released: AtomicBool::new(false),
        }
    }

    /// Returns the key.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Releases the lock.
    ///
    /// # Errors
    ///
    /// Fails if the database fails. The lock is then held until it is dropped.
    pub async fn release(&self) -> Result<(), StoreError> {
        self.store.release_lock(&self.key, &self.holder.0).await?;
        self.is_released.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        self.heartbeat.abort();
        if *self.is_released.get_mut() {
            return;
        }
        // Without a runtime the database cannot be reached. For other processes the lock then ends with this one.
        if let Ok(runtime) = Handle::try_current() {
            let (store, key, holder) =
                (self.store.clone(), self.key.clone(), self.holder.0.clone());
            // Closing the store waits for this.
            let unwritten = store.begin_write();
            runtime.spawn(async move {
                let _ = store.release_lock(&key, &holder).await;
                drop(unwritten);
            });
        }
    }
}
