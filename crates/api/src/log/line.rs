//! The line of an entry in a log.

use serde::Deserialize;
use teamster_core::{AgentEvent, Id, RunResult};

use super::entry::RunLogEntry;

/// Prefix of every entry.
const HEAD: &[u8] = br#"{"seq":"#;

/// Entry as its line in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    seq: u64,
    json: Vec<u8>,
    ends: bool,
}

impl LogLine {
    /// Creates the line with these bytes in the log of this run. Returns `None` if they are no entry.
    pub fn from_json(json: Vec<u8>, run_id: &str) -> Option<Self> {
        Some(Self {
            seq: Self::seq_of(&json)?,
            ends: Self::ends(&json, run_id),
            json,
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
        let head: Head = serde_json::from_slice(&self.json).ok()?;
        let entry = RunLogEntry::damaged(seq, head.at_ms, run_id.clone());
        Some(Self {
            seq,
            json: serde_json::to_vec(&entry).ok()?,
            ends: false,
        })
    }

    /// Returns the number of the entry.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the bytes of the entry, without the newline.
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// Parses the entry. An event of a later version becomes `Newer`.
    ///
    /// # Errors
    ///
    /// Fails if the line is no valid entry.
    pub fn entry(&self) -> serde_json::Result<RunLogEntry> {
        serde_json::from_slice(&self.json)
    }

    /// Returns the type of the event, such as `text` or `run:start`.
    pub fn type_name(&self) -> String {
        type_of(&self.json).unwrap_or_default()
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
