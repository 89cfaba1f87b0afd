//! The line of an entry in a log.

use std::sync::OnceLock;

use serde::Deserialize;

use super::entry::{LifecycleEntry, RunLogEntry};
use super::event::RunEvent;
use super::lenient;
use crate::{AgentEvent, Id, RunResult};

/// Prefix of every entry.
const HEAD: &[u8] = br#"{"seq":"#;

/// Entry as its line in the file.
#[derive(Debug, Clone)]
pub struct LogLine {
    seq: u64,
    form: Form,
    ends: bool,
}

#[derive(Debug, Clone)]
enum Form {
    /// Read from a log.
    Json(Vec<u8>),
    /// Received in this process. Most readers of such entries do not need their JSON.
    Entry(Box<RunLogEntry>, OnceLock<Vec<u8>>),
}

impl PartialEq for LogLine {
    fn eq(&self, other: &Self) -> bool {
        (self.json(), self.ends) == (other.json(), other.ends)
    }
}

impl Eq for LogLine {}

impl LogLine {
    /// Creates the line of this entry in the log of this run. [`entry`](Self::entry) returns the entry itself: it is not
    /// written and parsed in between.
    pub fn of_entry(entry: RunLogEntry, run_id: &str) -> Self {
        let ends = match &entry {
            RunLogEntry::Agent(entry) => {
                matches!(entry.event, AgentEvent::Done(_))
                    && (entry.run_id.as_deref()).is_none_or(|id| id == run_id)
            }
            RunLogEntry::Run(_) => false,
        };
        Self {
            seq: entry.seq(),
            form: Form::Entry(Box::new(entry), OnceLock::new()),
            ends,
        }
    }

    /// Creates the line with these bytes in the log of this run. Returns `None` if they are no entry.
    pub fn from_json(json: Vec<u8>, run_id: &str) -> Option<Self> {
        Some(Self {
            seq: Self::seq_of(&json)?,
            ends: Self::ends(&json, run_id),
            form: Form::Json(json),
        })
    }

    /// Creates the line in place of the damaged ones before this one. Returns `None` if this one has no time.
    pub fn damaged_before(&self, run_id: &Id) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Head {
            at_ms: u64,
        }
        let seq = self.seq.checked_sub(1)?;
        let head: Head = serde_json::from_slice(self.json()).ok()?;
        let entry = LifecycleEntry::new(RunEvent::damaged(run_id.clone()));
        let entry = RunLogEntry::from(entry.seq(seq).at_ms(head.at_ms));
        Some(Self {
            seq,
            form: Form::Json(entry.to_json().ok()?),
            ends: false,
        })
    }

    /// Returns the number of the entry.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the bytes of the entry, without the newline.
    pub fn json(&self) -> &[u8] {
        match &self.form {
            Form::Json(json) => json,
            // These types can be written as JSON.
            Form::Entry(entry, json) => json.get_or_init(|| entry.to_json().unwrap_or_default()),
        }
    }

    /// Returns the approximate size of the line in memory, in bytes.
    pub fn approximate_bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.form {
                Form::Json(json) => json.len(),
                Form::Entry(entry, json) => {
                    entry.approximate_bytes() + json.get().map_or(0, Vec::len)
                }
            }
    }

    /// Returns the entry; that of a line from a log is parsed. An event of a later version becomes `Newer`.
    ///
    /// # Errors
    ///
    /// Fails if the line is no valid entry.
    pub fn entry(&self) -> serde_json::Result<RunLogEntry> {
        match &self.form {
            Form::Json(json) => serde_json::from_slice(json)
                .or_else(|error| lenient::value(json).map_or(Err(error), serde_json::from_value)),
            Form::Entry(entry, _) => Ok((**entry).clone()),
        }
    }

    /// Returns the type of the event, such as `text` or `run:start`.
    pub fn type_name(&self) -> String {
        type_of(self.json()).unwrap_or_default()
    }

    /// Returns whether this is the last entry of its log: a `done` of the log's own run. Each turn of a session
    /// has a `done` too, with the turn's id.
    pub fn is_end(&self) -> bool {
        self.ends
    }

    /// Returns the result of the run, if this is the last entry of its log.
    pub fn result(&self) -> Option<Box<RunResult>> {
        // Parses no other entry.
        if !self.ends {
            return None;
        }
        match self.entry() {
            Ok(RunLogEntry::Agent(entry)) => match entry.event {
                AgentEvent::Done(done) => Some(done.result),
                _ => None,
            },
            _ => None,
        }
    }

    /// Maximum number of bytes that [`seq_of`](Self::seq_of) needs.
    pub const HEAD_BYTES: usize = HEAD.len() + 21;

    /// Returns the number of the entry that begins with these bytes, which need not be complete.
    pub fn seq_of(head: &[u8]) -> Option<u64> {
        let digits = head.strip_prefix(HEAD)?;
        let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
        std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
    }

    /// Returns whether the entry with these bytes is the last one of this run's log.
    pub fn ends(json: &[u8], run_id: &str) -> bool {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Head {
            r#type: String,
            run_id: Option<String>,
        }
        // Most entries are rejected without parsing.
        memchr::memmem::find(json, br#""type":"done""#).is_some()
            && serde_json::from_slice::<Head>(json).is_ok_and(|head| {
                head.r#type == "done" && head.run_id.is_none_or(|id| id == run_id)
            })
    }

    /// Returns whether these bytes are a complete entry. A power failure can leave any bytes at the end of a file, and a
    /// damaged disk or another program anywhere.
    pub fn is_complete(json: &[u8]) -> bool {
        #[derive(Deserialize)]
        struct Head {
            seq: u64,
            #[expect(dead_code, reason = "every entry has one")]
            r#type: String,
        }
        // The parser does not check the text of fields that it skips.
        let text = std::str::from_utf8(json).ok();
        let head = text.and_then(|text| serde_json::from_str::<Head>(text).ok());
        head.is_some_and(|head| Self::seq_of(json) == Some(head.seq))
    }
}

fn type_of(json: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Type {
        r#type: String,
    }
    serde_json::from_slice::<Type>(json)
        .ok()
        .map(|it| it.r#type)
}

#[cfg(test)]
mod tests {
    use crate::{Done, LogEntry, RawJson, Text};

    use super::*;

    #[test]
    fn the_number_is_read_from_the_beginning_of_a_line() {
        for (head, seq) in [
            (r#"{"seq":1,"atMs":2"#, Some(1)),
            (r#"{"seq":18446744073709551615,"#, Some(u64::MAX)),
            (r#"{"seq":18446744073709551616,"#, None),
            (r#"{"seq":12"#, None),
            (r#"{"seq":,"#, None),
            (r#"{"atMs":1"#, None),
            ("\0\0\0", None),
            ("", None),
        ] {
            assert_eq!(LogLine::seq_of(head.as_bytes()), seq, "{head}");
        }
    }

    #[test]
    fn an_entry_of_this_process_is_passed_on_as_it_is() {
        // Made by hand: space, which a parsed entry cannot have.
        let native = r#"{"a":  "b"}"#;
        let event = AgentEvent::Text(Text::new("x"));
        let mut entry = LogEntry::from(event.clone());
        (entry.seq, entry.run_id) = (3, Some("s".into()));
        entry.native = Some(RawJson::new(native.to_owned()).unwrap());
        let entry = RunLogEntry::Agent(entry);
        let line = LogLine::of_entry(entry.clone(), "s");
        assert_eq!((line.seq(), line.is_end()), (3, false));
        assert_eq!(line.entry().unwrap(), entry);
        let json = String::from_utf8(line.json().to_vec()).unwrap();
        assert!(json.contains(native), "{json}");
        let read = LogLine::from_json(line.json().to_vec(), "s").unwrap();
        assert_eq!(
            (read.type_name(), line.type_name()),
            ("text".into(), "text".into())
        );
        assert_eq!(read, line);
        assert!(LogLine::is_complete(read.json()));
        // A reader of the log gets all of it but the space.
        let RunLogEntry::Agent(parsed) = read.entry().unwrap() else {
            panic!("{read:?}");
        };
        assert_eq!((parsed.seq, &parsed.event), (3, &event));
        assert_eq!(parsed.native.unwrap().get(), r#"{"a":"b"}"#);
        let mut done = LogEntry::from(AgentEvent::Done(Done::new(Box::default())));
        for (run_id, ends) in [(None, true), (Some("s"), true), (Some("s.1"), false)] {
            done.run_id = run_id.map(Into::into);
            let line = LogLine::of_entry(RunLogEntry::Agent(done.clone()), "s");
            assert_eq!(line.is_end(), ends, "{run_id:?}");
            assert_eq!(line.result().is_some(), ends, "{run_id:?}");
            assert_eq!(LogLine::ends(line.json(), "s"), ends, "{run_id:?}");
        }
    }

    #[test]
    fn no_json_that_a_cli_can_print_costs_an_entry() {
        // Made by hand: a deep value and a number out of range, which are JSON.
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for (native, kept) in [
            (format!(r#"{{"a":{deep}}}"#), "[[["),
            (r#"{"a":{"b":1e999}}"#.to_owned(), r#"{"a":{"b":"1e999"}}"#),
            (r#"["\ud83d",1e999]"#.to_owned(), "[\"\u{fffd}\",\"1e999\"]"),
        ] {
            let json = format!(
                r#"{{"seq":3,"atMs":1,"attempt":1,"type":"text","text":"x","native":{native}}}"#
            );
            let line = LogLine::from_json(json.into_bytes(), "s").unwrap();
            assert!(LogLine::is_complete(line.json()));
            let Ok(RunLogEntry::Agent(entry)) = line.entry() else {
                panic!("{:?}", line.entry());
            };
            assert_eq!(entry.event, AgentEvent::Text(Text::new("x")));
            let read = entry.native.unwrap();
            assert!(read.get().contains(kept), "{}", read.get());
        }
        let broken = br#"{"seq":3,"atMs":1,"type":"text","text":"x"#;
        let line = LogLine::from_json(broken.to_vec(), "s").unwrap();
        assert!(line.entry().is_err());
    }

    #[test]
    fn only_the_event_done_of_the_run_itself_is_an_end() {
        for (json, ends) in [
            (
                r#"{"seq":3,"atMs":1,"attempt":1,"type":"done","result":{}}"#,
                true,
            ),
            (r#"{"seq":3,"runId":"s","type":"done","result":{}}"#, true),
            (
                r#"{"seq":3,"runId":"s.1","type":"done","result":{}}"#,
                false,
            ),
            (
                r#"{"seq":3,"type":"tool_use","input":{"type":"done"}}"#,
                false,
            ),
            (
                r#"{"seq":3,"type":"text","text":"\"type\":\"done\""}"#,
                false,
            ),
        ] {
            assert_eq!(LogLine::ends(json.as_bytes(), "s"), ends, "{json}");
        }
    }
}
