//! The log of a run while it is written.

use std::vec;

use teamster_core::{AbortHandle, Id, LogEntry, RunLogEntry};

use crate::Run;
use crate::log::Part;

/// The log of a run, readable while the run is in progress. Created by
/// [`Orchestrator::start_log`](crate::Orchestrator::start_log).
///
/// Its entries are the agents' events and the `run:` events, numbered from 1 without gaps, with `done` as the
/// last. An event of the run itself comes before the agents' events that follow from it. The text of the result
/// can be long, so only `done` has it, and the preceding `run:end` does not.
///
/// Every other way to read a run is a view of its log with the same numbers, times and attempts.
/// [`Orchestrator::execute`](crate::Orchestrator::execute) returns the agents' entries.
/// [`Orchestrator::start`](crate::Orchestrator::start) returns the `run:` entries and the events derived from the
/// agents' entries.
///
/// Dropping the log before its end stops the run.
#[must_use = "dropping it stops the run"]
#[derive(Debug)]
pub struct RunLog {
    run: Run,
    parts: vec::IntoIter<Part>,
    /// The unread entries of the last part.
    agents: vec::IntoIter<LogEntry>,
}

impl RunLog {
    pub(crate) fn new(run: Run) -> Self {
        Self {
            run,
            parts: Vec::new().into_iter(),
            agents: Vec::new().into_iter(),
        }
    }

    /// Returns the run's id.
    pub fn id(&self) -> &Id {
        self.run.id()
    }

    /// Returns a handle that can stop the run.
    pub fn abort_handle(&self) -> AbortHandle {
        self.run.abort_handle()
    }

    /// Asks the run to report its start now. Otherwise `run:start` comes with the agent's first event, which usually has
    /// the id of the session. This is for a caller that has an entry of its own to add after the start, such as a request
    /// of an agent that waits for the answer before it reports anything. No effect once the run has started.
    pub fn report_start(&self) {
        self.run.report_start();
    }

    /// Returns the next entry, or `None` after `done`. Cancel-safe.
    pub async fn next(&mut self) -> Option<RunLogEntry> {
        loop {
            if let Some(entry) = self.next_arrived() {
                return Some(entry);
            }
            match self.next_part().await? {
                Part::Agents(entries) => self.agents = entries.into_iter(),
                Part::Run(entry) => return Some(RunLogEntry::Run(entry)),
            }
        }
    }

    /// Returns the next entry if it has arrived together with the last one. [`next`](Self::next) returns it as well,
    /// at a higher cost.
    pub fn next_arrived(&mut self) -> Option<RunLogEntry> {
        self.agents.next().map(RunLogEntry::Agent)
    }

    /// Returns the next part, or `None` after `done`. Cancel-safe.
    pub(crate) async fn next_part(&mut self) -> Option<Part> {
        loop {
            if let Some(part) = self.parts.next() {
                return Some(part);
            }
            self.parts = self.run.next_parts().await?.into_iter();
        }
    }
}
