//! Entries of a log: the events of the agents and of the run itself, in one order.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::event::RunEvent;
use crate::LogEntry;
use crate::setters::setters;

/// An event of a run itself as an entry of the run's log.
///
/// On the wire it is the event's own object after `seq`, `atMs` and `attempt`.
///
/// The log contains only the `run:` events. A `tool:` or `assistant:` event repeats the agents' entries, so only a
/// stream of events of a run returns it, with the number of the last log entry before it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LifecycleEntry {
    /// The entry's number in the run's log.
    pub seq: u64,
    /// Time of the event, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The current attempt, from 1. Entries after the end of an attempt belong to that attempt.
    pub attempt: u32,
    /// The event.
    pub event: RunEvent,
}

setters! {
    #[doc(hidden)]
    LifecycleEntry { set seq: u64, set at_ms: u64, set attempt: u32 }
}

impl LifecycleEntry {
    /// Creates an entry of attempt 1. Its number and its time are 0 until they are set.
    pub fn new(event: RunEvent) -> Self {
        Self {
            seq: 0,
            at_ms: 0,
            attempt: 1,
            event,
        }
    }

    /// Returns the approximate size of the entry in memory, in bytes.
    pub fn approximate_bytes(&self) -> usize {
        let text = match &self.event {
            RunEvent::Chunk { content, .. } | RunEvent::Message { content, .. } => content.len(),
            RunEvent::UserMessage { text, .. } => text.len(),
            _ => 0,
        };
        size_of::<Self>() + text
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
        // The event has the attempt's number itself.
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
        let line = Value::deserialize(deserializer)?;
        Self::from_line(line).map_err(D::Error::custom)
    }
}

impl LifecycleEntry {
    /// Reads an entry from its JSON object.
    fn from_line(line: Value) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Position {
            seq: u64,
            at_ms: u64,
            attempt: u32,
        }
        // Both parts may have the field `attempt`, so each is deserialized from the whole line.
        let position = Position::deserialize(&line)?;
        let event = match RunEvent::deserialize(line)? {
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
/// On the wire, the `type` of an event of the run itself contains a colon, and that of an agent's event does not.
/// The exceptions are [`RunEvent::Reset`] and [`RunEvent::Damaged`], which are `reset` and `damaged`. An event that only
/// a newer version knows is read as [`RunEvent::Newer`] or [`AgentEvent::Newer`].
///
/// [`AgentEvent::Newer`]: crate::AgentEvent::Newer
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
        let fields = Map::<String, Value>::deserialize(deserializer)?;
        let name = fields.get("type").and_then(Value::as_str);
        if name.is_some_and(|name| name.contains(':') || ["reset", "damaged"].contains(&name)) {
            LifecycleEntry::from_line(Value::Object(fields)).map(Self::Run)
        } else {
            LogEntry::from_fields(fields).map(Self::Agent)
        }
        .map_err(D::Error::custom)
    }
}

impl From<LifecycleEntry> for RunLogEntry {
    fn from(entry: LifecycleEntry) -> Self {
        Self::Run(entry)
    }
}

impl RunLogEntry {
    /// Returns the entry's number in its log, from 1 without gaps.
    pub fn seq(&self) -> u64 {
        match self {
            Self::Agent(entry) => entry.seq,
            Self::Run(entry) => entry.seq,
        }
    }

    /// Returns the entry as JSON, in the bytes that its `Serialize` writes.
    ///
    /// # Errors
    ///
    /// Fails if a part of it is no JSON, which these types do not allow.
    pub fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        let mut json = Vec::with_capacity(256);
        self.append_json(&mut json)?;
        Ok(json)
    }

    /// Appends the entry as JSON to `out`, as [`to_json`](Self::to_json) returns it.
    ///
    /// # Errors
    ///
    /// Fails as `to_json` does. Nothing is appended then.
    pub fn append_json(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        let before = out.len();
        let result = match self {
            Self::Agent(entry) => entry.append_json(out),
            Self::Run(entry) => serde_json::to_writer(&mut *out, entry),
        };
        if result.is_err() {
            out.truncate(before);
        }
        result
    }

    /// Returns the approximate size of the entry in memory, in bytes.
    pub fn approximate_bytes(&self) -> usize {
        match self {
            Self::Agent(entry) => entry.approximate_bytes(),
            Self::Run(entry) => entry.approximate_bytes(),
        }
    }

    /// Returns the time of the event, in milliseconds since the Unix epoch.
    pub fn at_ms(&self) -> u64 {
        match self {
            Self::Agent(entry) => entry.at_ms,
            Self::Run(entry) => entry.at_ms,
        }
    }
}
