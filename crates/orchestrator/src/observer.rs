//! Observers of runs.

use teamster_core::{ExecuteParams, Id, LifecycleEntry, LogEntry, Outcome};

/// Records runs, for example in a database.
///
/// The run itself calls the observer, so it is notified of the end even if no consumer reads the run's events. The
/// run waits for each call for at most 30 s (3 s once it is being stopped). A failing or panicking call does not
/// fail the run: an observer handles and reports its own errors.
#[async_trait::async_trait]
pub trait RunObserver: Send + Sync {
    /// Called once when a run is accepted, before its first attempt.
    async fn accepted(&self, run: Accepted<'_>) {
        let _ = run;
    }

    /// Returns environment variables for the agents of an accepted run. They override those of its parameters. Turns of a
    /// live session do not get them: its process has started before. MUST be quick.
    fn variables(&self, run_id: &Id) -> Vec<(String, String)> {
        let _ = run_id;
        Vec::new()
    }

    /// Called when the session in which a run works is known or has changed.
    async fn session(&self, run_id: &Id, provider: &str, session_id: &Id) {
        let _ = (run_id, provider, session_id);
    }

    /// Called with each event of the agents, as the run's log has it. The run does not wait, so the call MUST be quick.
    ///
    /// This and [`run_entry`](Self::run_entry) are called in the order of the log, whether or not a consumer reads it, from
    /// [`accepted`](Self::accepted) on: not for a run that was refused.
    fn agent_entry(&self, entry: &LogEntry) {
        let _ = entry;
    }

    /// Called with each event of the run itself, as [`agent_entry`](Self::agent_entry) is with those of the agents. Not
    /// called with [derived](teamster_core::RunEvent::is_derived) events, which are no entries of the log.
    fn run_entry(&self, entry: &LifecycleEntry) {
        let _ = entry;
    }

    /// Called once when a run has ended, before its last event.
    async fn ended(&self, outcome: &Outcome) {
        let _ = outcome;
    }
}

/// A run that was accepted.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Accepted<'a> {
    /// Id of the run.
    pub run_id: &'a Id,
    /// The provider that is tried first.
    pub provider: &'a str,
    /// Parameters of the run.
    pub params: &'a ExecuteParams,
    /// Time of acceptance, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

impl<'a> Accepted<'a> {
    /// Creates an accepted run, for the tests of an observer. It was accepted at time 0.
    pub fn new(run_id: &'a Id, provider: &'a str, params: &'a ExecuteParams) -> Self {
        Self {
            run_id,
            provider,
            params,
            at_ms: 0,
        }
    }

    /// Sets the time of acceptance, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn at_ms(mut self, at_ms: u64) -> Self {
        self.at_ms = at_ms;
        self
    }
}
