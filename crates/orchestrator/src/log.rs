//! The log of a run: the events of its agents and of the run itself, in one order.

use std::collections::VecDeque;
use std::{mem, vec};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
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
    /// Events of the attempt that goes on.
    Agents(Vec<LogEntry>),
    /// An event of the run itself.
    Run(LifecycleEntry),
    /// What the agents have said, as far as it stands: before the end of the run, and the last report of a run
    /// whose task is gone.
    Said(Said),
}

/// What the agents have said.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) text: String,
    /// Their last message, if the last attempt broke off without a result that has it.
    pub(crate) last_message: Option<String>,
}

impl Report {
    /// It is the end of the run.
    pub(crate) fn is_end(&self) -> bool {
        matches!(self, Self::Run(entry) if matches!(entry.event, RunEvent::End { .. }))
    }

    /// How many events it has, and about how many bytes of memory they hold.
    pub(crate) fn size(&self) -> (usize, usize) {
        let bytes = match self {
            Self::Agents(entries) => {
                let bytes = entries.iter().map(LogEntry::approximate_bytes);
                return (entries.len(), bytes.sum());
            }
            Self::Run(entry) => match &entry.event {
                RunEvent::Chunk { content, .. } | RunEvent::Message { content, .. } => {
                    content.len()
                }
                _ => 0,
            },
            Self::Said(_) => 0,
        };
        (1, bytes)
    }
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

impl<'de> Deserialize<'de> for LifecycleEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Position {
            seq: u64,
            at_ms: u64,
            #[serde(default)]
            attempt: Option<u32>,
        }
        // Two events have an `attempt` of their own, so each part reads the whole line.
        let line = Value::deserialize(deserializer)?;
        let position = Position::deserialize(&line).map_err(D::Error::custom)?;
        let event = RunEvent::deserialize(line).map_err(D::Error::custom)?;
        let attempt = match &event {
            // It belongs to the attempt before the one that comes, if there was any.
            RunEvent::Retry { attempt, .. } | RunEvent::Fallback { attempt, .. } => {
                attempt.saturating_sub(1).max(1)
            }
            _ => position.attempt.unwrap_or(1),
        };
        Ok(Self {
            seq: position.seq,
            at_ms: position.at_ms,
            attempt,
            event,
        })
    }
}

/// An entry of a run's log.
///
/// The `type` of an event of the run itself has a colon in it on the wire, and that of an agent's has none. An
/// event that only a newer version knows is read as [`RunEvent::Newer`] or [`AgentEvent::Newer`].
///
/// [`AgentEvent::Newer`]: teamster_core::AgentEvent::Newer
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum RunLogEntry {
    /// An event of an agent.
    Agent(LogEntry),
    /// An event of the run itself.
    Run(LifecycleEntry),
}

impl<'de> Deserialize<'de> for RunLogEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let line = Value::deserialize(deserializer)?;
        let name = line.get("type").and_then(Value::as_str);
        if name.is_some_and(|name| name.contains(':')) {
            LifecycleEntry::deserialize(line).map(Self::Run)
        } else {
            LogEntry::deserialize(line).map(Self::Agent)
        }
        .map_err(D::Error::custom)
    }
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
    parts: VecDeque<Part>,
    /// What is left of the last part.
    agents: vec::IntoIter<LogEntry>,
    seq: u64,
    at_ms: u64,
    ended: bool,
}

/// Some of a log.
#[derive(Debug)]
pub(crate) enum Part {
    Agents(Vec<LogEntry>),
    Run(LifecycleEntry),
}

impl RunLog {
    pub(crate) fn new(run: Run, merge: Merge) -> Self {
        Self {
            run,
            merge,
            parts: VecDeque::new(),
            agents: Vec::new().into_iter(),
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
            if let Some(entry) = self.agents.next() {
                return Some(RunLogEntry::Agent(entry));
            }
            match self.next_part().await? {
                Part::Agents(entries) => self.agents = entries.into_iter(),
                Part::Run(entry) => return Some(RunLogEntry::Run(entry)),
            }
        }
    }

    /// What comes next; `None` after `done`. Cancel-safe.
    pub(crate) async fn next_part(&mut self) -> Option<Part> {
        loop {
            if let Some(part) = self.parts.pop_front() {
                return Some(part);
            }
            if self.ended {
                return None;
            }
            match self.run.next_reports().await {
                Some(reports) => self.take(reports),
                None => self.lost(),
            }
        }
    }

    /// Adds what follows from reports of the run's task.
    fn take(&mut self, reports: Vec<Report>) {
        let mut merged = Vec::new();
        for report in reports {
            match report {
                Report::Agents(entries) => self.merge.agents(entries, &mut merged),
                Report::Said(said) => self.merge.said(said),
                Report::Run(mut entry) => {
                    let attempt = self.merge.attempt();
                    self.add(mem::take(&mut merged), attempt);
                    self.at_ms = self.at_ms.max(entry.at_ms);
                    self.seq += 1;
                    (entry.seq, entry.at_ms) = (self.seq, self.at_ms);
                    self.ended = matches!(entry.event, RunEvent::End { .. });
                    self.merge.lifecycle(&entry.event, &mut merged);
                    self.parts.push_back(Part::Run(entry));
                    // What ends an attempt belongs to it.
                    self.add(mem::take(&mut merged), attempt);
                }
            }
        }
        let attempt = self.merge.attempt();
        self.add(merged, attempt);
    }

    /// The run's task is gone: the Tokio runtime shuts down, or has no clock.
    fn lost(&mut self) {
        self.ended = true;
        let aborted = self.run.abort_handle().is_aborted();
        let attempt = self.merge.attempt();
        let mut merged = Vec::new();
        self.merge.lost(aborted, &mut merged);
        self.add(merged, attempt);
    }

    /// Adds events of an attempt.
    fn add(&mut self, mut entries: Vec<LogEntry>, attempt: u32) {
        if entries.is_empty() {
            return;
        }
        for entry in &mut entries {
            self.seq += 1;
            entry.seq = self.seq;
            entry.run_id = Some(self.run.id().clone());
            entry.attempt = attempt;
            // An error that was held back is told at this time.
            self.at_ms = self.at_ms.max(entry.at_ms);
            entry.at_ms = self.at_ms;
        }
        self.parts.push_back(Part::Agents(entries));
    }
}
