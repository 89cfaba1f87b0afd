//! Pool of sessions by key, with a limit of processes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde::Deserialize;
use teamster_core::sync::lock;
use teamster_core::{AgentError, AgentSession, SessionOptions, SessionRuntime};

use crate::engine::engine;

/// Default time without a turn after which a session's process ends.
const IDLE: Duration = Duration::from_mins(10);

/// A pool with one session for each key, such as a user or a thread.
///
/// The process of a session ends after [`idle`](PoolConfig::idle) without a turn. If there are more than
/// [`max_live`](PoolConfig::max_live) processes, those of the least recently used sessions end. The session itself
/// stays in the pool: its next turn starts a process and resumes it. So a pool limits processes, not conversations.
/// Callers [remove](Self::remove) sessions that they do not need any more.
///
/// ```no_run
/// use std::sync::Arc;
/// use teamster_core::{SessionOptions, SessionRuntime, Turn};
/// use teamster_process::{PoolConfig, SessionPool};
///
/// # async fn example(runtime: Arc<dyn SessionRuntime>) -> Result<(), teamster_core::AgentError> {
/// let pool = SessionPool::new(runtime, PoolConfig::default());
/// let session = pool.session("user-7", SessionOptions::default)?;
/// let answer = session.send(Turn::new("Where were we?")).result().await;
/// # drop(answer);
/// # Ok(())
/// # }
/// ```
pub struct SessionPool {
    runtime: Arc<dyn SessionRuntime>,
    config: PoolConfig,
    entries: Mutex<Entries>,
}

/// Settings of a [`SessionPool`].
///
/// ```
/// # use std::time::Duration;
/// use teamster_process::PoolConfig;
///
/// let config = PoolConfig::default().max_live(4).idle(Duration::from_secs(60));
/// assert_eq!(config.max_live, 4);
/// ```
#[derive(Debug, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct PoolConfig {
    /// Time without a turn after which a session's process ends, unless the session's options set another. Default: 10
    /// minutes.
    #[serde(with = "humantime_serde")]
    pub idle: Duration,
    /// Limit of processes that wait for a turn. Processes with a turn in progress are never ended, so there can
    /// temporarily be more. Default: 16.
    pub max_live: usize,
}

teamster_core::setters! {
    PoolConfig {
        set idle: Duration,
        set max_live: usize,
    }
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            idle: IDLE,
            max_live: 16,
        }
    }
}

#[derive(Default)]
struct Entries {
    sessions: HashMap<String, Entry>,
    uses: u64,
}

struct Entry {
    session: Arc<dyn AgentSession>,
    last_use: u64,
}

impl SessionPool {
    /// Creates an empty pool of sessions with this runtime.
    pub fn new(runtime: Arc<dyn SessionRuntime>, config: PoolConfig) -> Self {
        Self {
            runtime,
            config,
            entries: Mutex::default(),
        }
    }

    /// Returns the session of this key. If there is none, opens one with these options; its process is started with the
    /// first turn.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be opened.
    pub fn session(
        &self,
        key: &str,
        options: impl FnOnce() -> SessionOptions,
    ) -> Result<Arc<dyn AgentSession>, AgentError> {
        let mut entries = self.entries();
        entries.uses += 1;
        let now = entries.uses;
        let session = if let Some(entry) = entries.sessions.get_mut(key) {
            entry.last_use = now;
            entry.session.clone()
        } else {
            let mut options = options();
            options.idle.get_or_insert(self.config.idle);
            let session: Arc<dyn AgentSession> = self.runtime.open(options)?.into();
            let entry = Entry {
                session: session.clone(),
                last_use: now,
            };
            entries.sessions.insert(key.to_owned(), entry);
            session
        };
        self.cool(&entries, key);
        Ok(session)
    }

    /// Ends the processes of the least recently used sessions while there are too many. Skips the session `but`.
    fn cool(&self, entries: &Entries, but: &str) {
        let mut live: Vec<_> = (entries.sessions.iter())
            .filter(|(key, entry)| *key != but && entry.session.is_live())
            .map(|(_, entry)| entry)
            .collect();
        // The session `but` is about to have a process too.
        let too_many = (live.len() + 1).saturating_sub(self.config.max_live);
        if too_many == 0 {
            return;
        }
        live.sort_by_key(|entry| entry.last_use);
        // Without a runtime no process can have been started.
        let Ok(handle) = engine() else { return };
        for entry in live.into_iter().take(too_many) {
            let session = entry.session.clone();
            // A turn may have been sent to it meanwhile.
            handle.spawn(async move { session.close_if_idle().await });
        }
    }

    /// Removes and returns the session of this key. Its process ends when its last handle is dropped.
    pub fn remove(&self, key: &str) -> Option<Arc<dyn AgentSession>> {
        let entry = self.entries().sessions.remove(key)?;
        Some(entry.session)
    }

    /// Returns the number of sessions whose process waits for a turn.
    pub fn live(&self) -> usize {
        let entries = self.entries();
        let live = |entry: &&Entry| entry.session.is_live();
        entries.sessions.values().filter(live).count()
    }

    /// Ends all processes and waits for their end. The sessions stay in the pool.
    pub async fn close(&self) {
        let sessions: Vec<_> = (self.entries().sessions.values())
            .map(|entry| entry.session.clone())
            .collect();
        for session in sessions {
            session.close().await;
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        lock(&self.entries)
    }
}

teamster_core::debug_fields!(SessionPool |it| { runtime: it.runtime.id(), config: it.config });
