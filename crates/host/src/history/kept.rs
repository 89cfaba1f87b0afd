//! The history of runs while its store is open.

use std::sync::Arc;

use teamster_loop::Log;
use teamster_orchestrator::{RunObserver, SharedHolds};
use teamster_store::{Recorder, Store};

use super::{History, OPEN_LIMIT_WITH_KEY};
use crate::shared_holds::StoredHolds;
use crate::{Host, Warning, store};

/// An open store and the recorder that writes to it.
pub(crate) struct OpenHistory {
    pub(crate) store: Store,
    pub(crate) recorder: Recorder,
}

/// The history of a run or of sessions, if it is kept.
pub struct KeptHistory {
    pub(crate) history: History,
    pub(crate) open: Option<OpenHistory>,
}

teamster_core::debug_fields!(KeptHistory |it| { is_open: it.open.is_some() });

impl KeptHistory {
    pub(crate) async fn open(history: History) -> Self {
        let open = history.open_for_session().await;
        Self { history, open }
    }

    /// Returns the store, if it is open.
    pub fn store(&self) -> Option<&Store> {
        self.open.as_ref().map(|open| &open.store)
    }

    /// Returns the warnings since the last call, such as of a store that cannot be used.
    pub fn take_warnings(&self) -> Vec<Warning> {
        self.history.take_warnings()
    }

    /// Returns the limits of accounts that the store has, for the agents of this host. With `clean_env`, they do not have
    /// all variables of this process.
    pub(crate) fn holds(&self, host: &Host, clean_env: bool) -> Option<Arc<dyn SharedHolds>> {
        let open = self.open.as_ref()?;
        let holds = StoredHolds::new(host, open.store.clone(), clean_env);
        Some(Arc::new(holds))
    }

    /// Returns the observer that writes runs to the history.
    pub(crate) fn observer(&self) -> Option<Arc<dyn RunObserver>> {
        let open = self.open.as_ref()?;
        Some(Arc::new(open.recorder.clone()))
    }

    /// Writes the errors of the history to the log of a loop at once.
    pub(crate) fn log_errors_to(&self, log: &Log) {
        if let Some(open) = &self.open {
            let log = log.clone();
            // All recorders of a history share this callback.
            let _ = (open.recorder.clone())
                .on_error(move |error| log.line(format!("the history of runs: {error}")));
        }
    }

    /// Closes the store after the end of what it keeps. A run with a session key first waits until its session is stored.
    /// Returns warnings.
    pub async fn close(&self) -> Vec<Warning> {
        self.settle().await;
        self.take_warnings()
    }

    /// Closes or leaves the store, and keeps the warnings.
    pub(crate) async fn settle(&self) {
        if let Some(open) = &self.open {
            if let Some(key) = &self.history.conversation
                && !open.recorder.settled(OPEN_LIMIT_WITH_KEY).await
            {
                self.history.add(Warning::important(format!(
                    "the session of \"{key}\" was not stored: unless the next run with this key names it with \
                     `session_id`, it starts a new one"
                )));
            }
            if self.history.is_left {
                store::leave(&open.store).await;
            } else {
                store::close(&open.store).await;
            }
            self.history.warn(&open.recorder.take_errors());
        }
    }
}
