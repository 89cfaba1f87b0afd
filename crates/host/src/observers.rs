//! Two observers of one run.

use std::sync::Arc;

use teamster_core::{Id, LifecycleEntry, LogEntry, Outcome};
use teamster_orchestrator::{Accepted, RunObserver};

/// The observer of all runs, and the history of one.
pub(crate) struct Both {
    /// Called first: the history waits for its store.
    pub(crate) own: Arc<dyn RunObserver>,
    pub(crate) history: Arc<dyn RunObserver>,
}

#[async_trait::async_trait]
impl RunObserver for Both {
    async fn accepted(&self, run: Accepted<'_>) {
        self.own.accepted(run).await;
        self.history.accepted(run).await;
    }

    fn variables(&self, run_id: &Id) -> Vec<(String, String)> {
        let mut variables = self.own.variables(run_id);
        variables.extend(self.history.variables(run_id));
        variables
    }

    async fn session(&self, run_id: &Id, provider: &str, session_id: &Id) {
        self.own.session(run_id, provider, session_id).await;
        self.history.session(run_id, provider, session_id).await;
    }

    fn agent_entry(&self, entry: &LogEntry) {
        self.own.agent_entry(entry);
        self.history.agent_entry(entry);
    }

    fn run_entry(&self, entry: &LifecycleEntry) {
        self.own.run_entry(entry);
        self.history.run_entry(entry);
    }

    async fn ended(&self, outcome: &Outcome) {
        self.own.ended(outcome).await;
        self.history.ended(outcome).await;
    }
}
