//! The log of a run: its events in order, each with its time, and their lines in a file or a stream.

mod entry;
mod event;
mod lenient;
mod line;
mod outcome;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::text::plain_json_bytes;
use crate::{AgentEvent, Id, RawJson, Text, ToolResult};

pub use entry::{LifecycleEntry, RunLogEntry};
pub use event::{Next, RunEvent};
pub use line::LogLine;
pub use outcome::{Attempt, Outcome};

/// One entry of a run's log.
///
/// On the wire it is the object of the event with the fields of the entry around it: `seq`, `atMs`, `runId` and
/// `attempt` before the event's `type`, and `native` after its last field.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LogEntry {
    /// Number of the entry in its log, from 1 without gaps. 0 until it is assigned.
    pub seq: u64,
    /// Time of the event, in milliseconds since the Unix epoch. 0 until it is known.
    pub at_ms: u64,
    /// Id of the run, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<Id>,
    /// Attempt of the run, from 1.
    pub attempt: u32,
    /// The event.
    #[serde(flatten)]
    pub event: AgentEvent,
    /// The CLI's line that the event came from, if
    /// [`ExecuteParams::include_native`](crate::ExecuteParams) requests it. Absent in `unknown`,
    /// which always carries its line itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native: Option<RawJson>,
}

impl LogEntry {
    /// Creates an entry of the first attempt, without a run id and a native line.
    pub fn new(seq: u64, at_ms: u64, event: AgentEvent) -> Self {
        Self {
            seq,
            at_ms,
            run_id: None,
            attempt: 1,
            event,
            native: None,
        }
    }

    /// Returns the CLI's line that the event came from, if it is known.
    pub fn native(&self) -> Option<&RawJson> {
        match &self.event {
            AgentEvent::Unknown(unknown) => Some(&unknown.native),
            _ => self.native.as_ref(),
        }
    }

    /// Returns the approximate size of the entry in memory, in bytes. It bounds the queue between the engine and the
    /// consumer.
    #[inline]
    pub fn approximate_bytes(&self) -> usize {
        let native = self.native.as_ref().map_or(0, |line| line.get().len());
        let own = size_of::<Self>() - size_of::<AgentEvent>();
        self.event.approximate_bytes() + native + own
    }

    /// Appends the JSON of the entry, which is also what its `Serialize` writes.
    fn append_json(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        // Written piece by piece, because `flatten` costs a third of the time of a short event.
        out.extend_from_slice(br#"{"seq":"#);
        serde_json::to_writer(&mut *out, &self.seq)?;
        out.extend_from_slice(br#","atMs":"#);
        serde_json::to_writer(&mut *out, &self.at_ms)?;
        if let Some(run_id) = &self.run_id {
            out.extend_from_slice(br#","runId":"#);
            append_string(run_id, out);
        }
        out.extend_from_slice(br#","attempt":"#);
        serde_json::to_writer(&mut *out, &self.attempt)?;
        // Most entries are text, and most bytes are results of tools.
        match &self.event {
            AgentEvent::Text(text) => {
                let Text {
                    text,
                    message_id,
                    parent_tool_id,
                } = text;
                out.extend_from_slice(br#","type":"text","text":"#);
                append_string(text, out);
                append_id("messageId", message_id.as_ref(), out);
                append_id("parentToolId", parent_tool_id.as_ref(), out);
                out.push(b'}');
            }
            AgentEvent::ToolResult(result) => {
                let ToolResult {
                    tool_id,
                    output,
                    is_error,
                    parent_tool_id,
                } = &**result;
                out.extend_from_slice(br#","type":"tool_result","toolId":"#);
                append_string(tool_id, out);
                out.extend_from_slice(br#","output":"#);
                append_string(output, out);
                if let Some(is_error) = is_error {
                    out.extend_from_slice(br#","isError":"#);
                    out.extend_from_slice(if *is_error { b"true" } else { b"false" });
                }
                append_id("parentToolId", parent_tool_id.as_ref(), out);
                out.push(b'}');
            }
            event => {
                // Every event is an object that has at least its `type`.
                let start = out.len();
                serde_json::to_writer(&mut *out, event)?;
                out[start] = b',';
            }
        }
        if let Some(native) = &self.native {
            out.pop();
            out.extend_from_slice(br#","native":"#);
            out.extend_from_slice(native.get().as_bytes());
            out.push(b'}');
        }
        Ok(())
    }
}

fn append_id(name: &str, id: Option<&Id>, out: &mut Vec<u8>) {
    if let Some(id) = id {
        out.extend_from_slice(b",\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        append_string(id, out);
    }
}

fn append_string(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (plain, after) = rest.split_at(plain_json_bytes(rest));
        out.extend_from_slice(plain);
        let Some((byte, after)) = after.split_first() else {
            break;
        };
        let short = match byte {
            b'"' | b'\\' => *byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            _ => b'u',
        };
        out.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            let digit = |at: u8| HEX[usize::from(at)];
            out.extend_from_slice(&[b'0', b'0', digit(byte >> 4), digit(byte & 0xf)]);
        }
        rest = after;
    }
    out.push(b'"');
}

impl From<AgentEvent> for LogEntry {
    /// Creates an entry of the first attempt, without number, time and line.
    fn from(event: AgentEvent) -> Self {
        Self::new(0, 0, event)
    }
}

impl<'de> Deserialize<'de> for LogEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::deserialize(deserializer)?;
        Self::from_fields(fields).map_err(D::Error::custom)
    }
}

impl LogEntry {
    /// Reads an entry from the fields of its JSON object.
    fn from_fields(mut fields: Map<String, Value>) -> serde_json::Result<Self> {
        let mut native = match fields.shift_remove("native") {
            Some(native) => Option::<RawJson>::deserialize(native)?,
            None => None,
        };
        let run_id = match fields.shift_remove("runId") {
            Some(run_id) => Option::deserialize(run_id)?,
            None => None,
        };
        let seq = take(&mut fields, "seq")?;
        let at_ms = take(&mut fields, "atMs")?;
        let attempt = take(&mut fields, "attempt")?;
        let mut event = AgentEvent::from_fields(fields)?;
        // On the wire, `native` is a single field, although an `unknown` event stores it.
        if let AgentEvent::Unknown(unknown) = &mut event
            && let Some(line) = native.take()
        {
            unknown.native = line;
        }
        Ok(Self {
            seq,
            at_ms,
            run_id,
            attempt,
            event,
            native,
        })
    }
}

/// Removes and reads a field. The order of the others stays.
fn take<T: DeserializeOwned>(
    fields: &mut Map<String, Value>,
    name: &'static str,
) -> serde_json::Result<T> {
    let field = fields.shift_remove(name);
    T::deserialize(field.ok_or_else(|| serde_json::Error::missing_field(name))?)
}

#[cfg(test)]
mod tests {
    mod read_back;

    use super::*;
    use crate::{NoticeLevel, NoticeSource, Retry, Unknown};

    fn raw(text: &str) -> RawJson {
        RawJson::new(text.into()).unwrap()
    }

    fn entry(event: AgentEvent) -> LogEntry {
        LogEntry::new(7, 1_760_000_000_123, event)
    }

    /// Returns the JSON of an entry, which is the same in both ways.
    fn written(entry: &LogEntry) -> String {
        let json = RunLogEntry::Agent(entry.clone()).to_json().unwrap();
        let json = String::from_utf8(json).unwrap();
        assert_eq!(json, serde_json::to_string(entry).unwrap());
        json
    }

    #[test]
    fn the_event_is_flat_between_the_fields_of_the_entry() {
        let mut entry = entry(AgentEvent::notice(
            NoticeLevel::Info,
            NoticeSource::Runtime,
            "x",
        ));
        entry.run_id = Some("r".into());
        entry.attempt = 2;
        entry.native = Some(raw(r#"{"a":  1}"#));
        let wire = written(&entry);
        assert_eq!(
            wire,
            r#"{"seq":7,"atMs":1760000000123,"runId":"r","attempt":2,"type":"notice","level":"info","message":"x","source":"runtime","native":{"a":  1}}"#
        );
        assert_eq!(serde_json::from_str::<LogEntry>(&wire).unwrap(), entry);
    }

    #[test]
    fn text_of_any_characters_is_written_and_read() {
        for text in [
            "",
            "a",
            "plain words",
            "\"\\\u{8}\n\u{1f}\u{7f}",
            "é\u{2028}\u{1F600} !",
        ] {
            for (message, parent) in [
                (None, None),
                (Some("m\"1"), None),
                (Some("m1"), Some("t\n")),
            ] {
                let event = Text::new(text)
                    .message_id(message.map(Id::from))
                    .parent_tool_id(parent.map(Id::from));
                let mut entry = entry(AgentEvent::Text(event));
                for native in [None, Some(raw(r#"{"a":1}"#))] {
                    entry.native = native;
                    let wire = written(&entry);
                    assert_eq!(serde_json::from_str::<LogEntry>(&wire).unwrap(), entry);
                }
            }
        }
    }

    #[test]
    fn an_unknown_event_has_its_line_once() {
        let entry = entry(AgentEvent::Unknown(Unknown {
            native: raw(r#"{"new":1}"#),
        }));
        let wire = written(&entry);
        assert_eq!(
            wire,
            r#"{"seq":7,"atMs":1760000000123,"attempt":1,"type":"unknown","native":{"new":1}}"#
        );
        assert_eq!(serde_json::from_str::<LogEntry>(&wire).unwrap(), entry);
        assert_eq!(entry.native().unwrap().get(), r#"{"new":1}"#);
    }

    #[test]
    fn no_event_has_a_field_of_the_entry() {
        let error = crate::AgentError::invalid_params("no");
        let retry = Retry {
            attempt: 3,
            max_attempts: None,
            delay_ms: None,
            error: error.clone(),
        };
        let done = crate::provider::RunAssembler::refuse(error.clone());
        let events = [
            AgentEvent::Retry(Box::new(retry)),
            AgentEvent::error(error),
            done[1].clone(),
        ];
        for event in events {
            let entry = entry(event);
            let wire = written(&entry);
            assert_eq!(wire.matches("\"attempt\":").count(), 1, "{wire}");
            assert_eq!(serde_json::from_str::<LogEntry>(&wire).unwrap(), entry);
        }
    }
}
