//! Sessions by key, with a limit to how many processes there are.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use derive_setters::Setters;
use serde::Deserialize;
use teamster_core::sync::lock;
use teamster_core::{AgentError, AgentSession, SessionOptions, SessionRuntime};

use crate::engine::engine;

/// After how long without a turn a session's process ends, if the caller does not say.
const IDLE: Duration = Duration::from_mins(10);

/// Keeps one session for each key, such as a user or a thread.
///
/// A session that is not used loses its process after [`idle`](PoolConfig::idle), and the one that was not
/// used for the longest if there are more than [`max_live`](PoolConfig::max_live). It stays what it was: its
/// next turn starts the process again and resumes it. So a pool bounds processes, not conversations; who
/// is done with one [removes](Self::remove) it.
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
#[derive(Debug, Clone, Deserialize, Setters)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct PoolConfig {
    /// After how long without a turn a session's process ends, unless its options say so. 10 minutes.
    #[serde(with = "humantime_serde")]
    pub idle: Duration,
    /// How many processes may wait for a turn at the same time. Those that play one are never ended, so
    /// there can be more of them for a while. 16.
    pub max_live: usize,
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
    /// An empty pool of sessions with this runtime.
    pub fn new(runtime: Arc<dyn SessionRuntime>, config: PoolConfig) -> Self {
        Self {
            runtime,
            config,
            entries: Mutex::default(),
        }
    }

    /// The session of this key. If there is none yet, one is opened with these options; nothing is started
    /// before its first turn.
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

    /// Ends the processes of those that were not used for the longest, as far as there are too many.
    fn cool(&self, entries: &Entries, but: &str) {
        let mut live: Vec<_> = (entries.sessions.iter())
            .filter(|(key, entry)| *key != but && entry.session.is_live())
            .map(|(_, entry)| entry)
            .collect();
        // This one is about to have a process too.
        let too_many = (live.len() + 1).saturating_sub(self.config.max_live.max(1));
        if too_many == 0 {
            return;
        }
        live.sort_by_key(|entry| entry.last_use);
        // Without a runtime there is nothing that could have started a process.
        let Ok(handle) = engine() else { return };
        for entry in live.into_iter().take(too_many) {
            let session = entry.session.clone();
            // A turn may have been sent to it meanwhile.
            handle.spawn(async move { session.close_if_idle().await });
        }
    }

    /// Takes the session of this key out of the pool. Its process ends when its last handle is dropped.
    pub fn remove(&self, key: &str) -> Option<Arc<dyn AgentSession>> {
        let entry = self.entries().sessions.remove(key)?;
        Some(entry.session)
    }

    /// How many sessions have a process that waits for a turn.
    pub fn live(&self) -> usize {
        let entries = self.entries();
        let live = |entry: &&Entry| entry.session.is_live();
        entries.sessions.values().filter(live).count()
    }

    /// Ends all processes and waits for that. The sessions stay.
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

impl fmt::Debug for SessionPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionPool")
            .field("runtime", &self.runtime.id())
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
