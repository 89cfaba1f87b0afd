//! The log of a run: the events of its agents and of the run itself, in one order.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use teamster_core::{Id, LogEntry};

use crate::RunEvent;

/// The part of a run's log that its consumer gets. The numbers of the entries are the same in each view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// All of it. The result of `run:end` is without its text, which `done` has.
    Log,
    /// The events of the run itself, and [those that follow from the agents'](RunEvent::is_derived).
    Lifecycle,
}

impl View {
    /// The agents' events are in it.
    pub(crate) fn has_agents(self) -> bool {
        self == Self::Log
    }
}

/// A part of a run's log.
#[derive(Debug)]
pub(crate) enum Part {
    /// Events of an agent.
    Agents(Vec<LogEntry>),
    /// An event of the run itself.
    Run(LifecycleEntry),
}

impl Part {
    /// It is the end of the run.
    pub(crate) fn is_end(&self) -> bool {
        matches!(self, Self::Run(entry) if matches!(entry.event, RunEvent::End(_)))
    }

    /// How many events it has, and about how many bytes of memory they hold.
    pub(crate) fn size(&self) -> (usize, usize) {
        match self {
            Self::Agents(entries) => {
                let bytes = entries.iter().map(LogEntry::approximate_bytes);
                (entries.len(), bytes.sum())
            }
            Self::Run(entry) => match &entry.event {
                RunEvent::Chunk { content, .. } | RunEvent::Message { content, .. } => {
                    (1, content.len())
                }
                _ => (1, 0),
            },
        }
    }
}

/// An event of a run itself as an entry of the run's log.
///
/// On the wire it is the event's own object after `seq`, `atMs` and `attempt`.
///
/// The log has the `run:` events. A `tool:` or `assistant:` event repeats the agents' entries, so
/// it is only in a [`Run`](crate::Run), with the number of the log's last entry before it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LifecycleEntry {
    /// The entry's number in the run's log.
    pub seq: u64,
    /// When it happened, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The current attempt, from 1; entries after its end belong to it.
    pub attempt: u32,
    /// The event.
    pub event: RunEvent,
}

impl LifecycleEntry {
    /// An entry of a log.
    pub fn new(seq: u64, at_ms: u64, attempt: u32, event: RunEvent) -> Self {
        Self {
            seq,
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
        // It has the number itself.
        let has_it = matches!(self.event, RunEvent::Attempt { .. });
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
            attempt: u32,
        }
        // `attempt` may be a field of both, so each part reads the whole line.
        let line = Value::deserialize(deserializer)?;
        let position = Position::deserialize(&line).map_err(D::Error::custom)?;
        let event = match RunEvent::deserialize(line).map_err(D::Error::custom)? {
            RunEvent::Newer(event) => RunEvent::Newer(event.without(&["seq", "atMs", "attempt"])),
            event => event,
        };
        Ok(Self {
            seq: position.seq,
            at_ms: position.at_ms,
            attempt: position.attempt,
            event,
        })
    }
}

/// An entry of a run's log.
///
/// The `type` of an event of the run itself has a colon in it on the wire, and that of an agent's has none;
/// [`RunEvent::Reset`] is `reset`. An event that only a newer version knows is read as [`RunEvent::Newer`] or [`AgentEvent::Newer`].
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
        if name.is_some_and(|name| name.contains(':') || name == "reset") {
            LifecycleEntry::deserialize(line).map(Self::Run)
        } else {
            LogEntry::deserialize(line).map(Self::Agent)
        }
        .map_err(D::Error::custom)
    }
}

impl RunLogEntry {
    /// An entry that stands for those up to this number, which were removed.
    pub fn reset(seq: u64, at_ms: u64, run_id: Id) -> Self {
        Self::Run(LifecycleEntry {
            seq,
            at_ms,
            attempt: 1,
            event: RunEvent::reset(run_id),
        })
    }

    /// An event of a run itself, as an entry of a log that numbers it.
    pub fn of_run(event: RunEvent, at_ms: u64, attempt: u32) -> Self {
        Self::Run(LifecycleEntry {
            seq: 0,
            at_ms,
            attempt,
            event,
        })
    }

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
