//! The log of a run: the events of its agents and of the run itself, in one order.

use std::collections::VecDeque;

use serde::{Serialize, Serializer};
use teamster_core::{AbortHandle, Id, LogEntry};

use crate::runtime::Merge;
use crate::{Run, RunEvent};

/// What the consumer of a run's log wants beside the events of the run itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// The agents' events.
    pub(crate) agents: bool,
    /// The run's own events of text and tools.
    pub(crate) details: bool,
}

/// What the task of a run reports, in order.
#[derive(Debug)]
pub(crate) enum Report {
    /// An event of the attempt that goes on.
    Agent(LogEntry),
    /// An event of the run itself.
    Run(LifecycleEntry),
}

/// An event of a run itself as an entry of the run's log.
///
/// On the wire it is the event's own object after `seq`, `atMs` and `attempt`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LifecycleEntry {
    /// The entry's number in its log: from 1, without gaps.
    pub seq: u64,
    /// When it happened, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The attempt that goes on, from 1; what follows its end belongs to it.
    pub attempt: u32,
    /// What happened.
    pub event: RunEvent,
}

impl LifecycleEntry {
    pub(crate) fn new(at_ms: u64, attempt: u32, event: RunEvent) -> Self {
        Self {
            seq: 0,
            at_ms,
            attempt,
            event,
        }
    }
}

impl Serialize for LifecycleEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Line<'a> {
            seq: u64,
            at_ms: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            attempt: Option<u32>,
            #[serde(flatten)]
            event: &'a RunEvent,
        }
        // These two have the number themselves.
        let has_it = matches!(
            self.event,
            RunEvent::Retry { .. } | RunEvent::Fallback { .. }
        );
        let line = Line {
            seq: self.seq,
            at_ms: self.at_ms,
            attempt: (!has_it).then_some(self.attempt),
            event: &self.event,
        };
        line.serialize(serializer)
    }
}

/// An entry of a run's log.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum RunLogEntry {
    /// An event of an agent.
    Agent(LogEntry),
    /// An event of the run itself.
    Run(LifecycleEntry),
}

impl RunLogEntry {
    /// The entry's number in its log: from 1, without gaps.
    pub fn seq(&self) -> u64 {
        match self {
            Self::Agent(entry) => entry.seq,
            Self::Run(entry) => entry.seq,
        }
    }

    /// When it happened, in milliseconds since the Unix epoch.
    pub fn at_ms(&self) -> u64 {
        match self {
            Self::Agent(entry) => entry.at_ms,
            Self::Run(entry) => entry.at_ms,
        }
    }
}

/// The log of a run as it is written: made by [`Orchestrator::log`](crate::Orchestrator::log).
///
/// The agents' events in it are those of [`Orchestrator::execute`](crate::Orchestrator::execute), with
/// `done` as the last entry. An event of the run itself comes before the agents' events that follow from it.
/// Dropping the log before its end stops the run.
#[derive(Debug)]
pub struct RunLog {
    run: Run,
    merge: Merge,
    merged: Vec<LogEntry>,
    ready: VecDeque<RunLogEntry>,
    seq: u64,
    at_ms: u64,
    ended: bool,
}

impl RunLog {
    pub(crate) fn new(run: Run, merge: Merge) -> Self {
        Self {
            run,
            merge,
            merged: Vec::new(),
            ready: VecDeque::new(),
            seq: 0,
            at_ms: 0,
            ended: false,
        }
    }

    /// The run's id.
    pub fn id(&self) -> &Id {
        self.run.id()
    }

    /// A handle that can stop the run from elsewhere.
    pub fn abort_handle(&self) -> AbortHandle {
        self.run.abort_handle()
    }

    /// The next entry; `None` after `done`. Cancel-safe.
    pub async fn next(&mut self) -> Option<RunLogEntry> {
        loop {
            if let Some(mut entry) = self.ready.pop_front() {
                self.seq += 1;
                match &mut entry {
                    RunLogEntry::Agent(entry) => entry.seq = self.seq,
                    RunLogEntry::Run(entry) => entry.seq = self.seq,
                }
                return Some(entry);
            }
            if self.ended {
                return None;
            }
            let report = self.run.next_report().await;
            self.take(report);
        }
    }

    /// Adds what follows from a report of the run's task.
    fn take(&mut self, report: Option<Report>) {
        let attempt = self.merge.attempt();
        match report {
            Some(Report::Agent(entry)) => self.merge.agent(entry, &mut self.merged),
            Some(Report::Run(mut entry)) => {
                self.at_ms = self.at_ms.max(entry.at_ms);
                entry.at_ms = self.at_ms;
                self.ended = matches!(entry.event, RunEvent::End { .. });
                self.merge.lifecycle(&entry.event, &mut self.merged);
                self.ready.push_back(RunLogEntry::Run(entry));
            }
            // Only when the run's task is gone: the Tokio runtime shuts down, or has no clock.
            None => {
                self.ended = true;
                let aborted = self.run.abort_handle().is_aborted();
                self.merge.lost(aborted, &mut self.merged);
            }
        }
        for mut entry in self.merged.drain(..) {
            entry.run_id = Some(self.run.id().clone());
            // What ends an attempt belongs to it.
            entry.attempt = attempt;
            // An error that was held back is told at this time.
            self.at_ms = self.at_ms.max(entry.at_ms);
            entry.at_ms = self.at_ms;
            self.ready.push_back(RunLogEntry::Agent(entry));
        }
    }
}
