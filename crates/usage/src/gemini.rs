//! Gemini's chats: `tmp/<project>/chats/session-<time>-<id>.jsonl`, for sub-agents
//! `tmp/<project>/chats/<session>/<id>.jsonl`, and in older versions `session-<time>-<id>.json`.
//!
//! An answer with tool calls is written again with their results, under the same id. A resumed session continues in its
//! file and begins with its messages once more, without figures. So the key of a request is its message's id. An
//! imported session (`--session-file`) begins with copies of the other session's messages, with their ids and times.
//! The usage of model selection (`auto`) is not in the files.

use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use memchr::memmem::Finder;
use serde::Deserialize;
use teamster_core::Usage;

use crate::lines::Line;
use crate::locations::Locations;
use crate::provider::Traits;
use crate::source::{Shared, Sink, Source, Sources, has_object, small_file};
use crate::{Key, Provider, Record};

pub(crate) const TRAITS: Traits = Traits::NONE;

/// Part of every message with figures.
static FIGURES: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"tokens\""));
/// Part of the line with which a session begins or is resumed.
static HEADER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"projectHash\""));

/// Depth of chats in `tmp`: project, `chats`, session, file.
const DEPTH: usize = 4;
/// Maximum size of a file of an older version, in bytes. It is a single JSON value.
const LARGEST: u64 = 64 << 20;
/// Maximum size of a file with a project's path, in bytes.
const ROOT: u64 = 64 << 10;
/// Number of characters of a session's id in the name of its file.
const SHORT: usize = 8;

/// Adds the chats of all sessions, or of the requested one with its sub-agents, in any project.
pub(crate) fn sources(locations: &Locations, found: &mut Sources) {
    let Some(home) = &locations.gemini else {
        return;
    };
    let session = found.session.clone();
    let is_wanted = |folder: &str, stem: &str| {
        session.as_deref().is_none_or(|session| {
            let short: String = session.chars().take(SHORT).collect();
            folder == session || stem.rsplit('-').next() == Some(&short)
        })
    };
    let tmp = home.join("tmp");
    found.walk(Provider::Gemini, &tmp, DEPTH, |path| {
        let name = |path: Option<&Path>| -> Option<String> {
            Some(path?.file_name()?.to_str()?.to_owned())
        };
        let (folder, above) = (path.parent(), path.parent().and_then(Path::parent));
        let (Some(folder), Some(above)) = (name(folder), name(above)) else {
            return false;
        };
        let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else {
            return false;
        };
        let extension = path.extension().and_then(|extension| extension.to_str());
        let own = folder == "chats" && stem.starts_with("session-");
        let is_chat = match extension {
            Some("jsonl") => own || above == "chats",
            Some("json") => own,
            _ => false,
        };
        is_chat && is_wanted(&folder, stem)
    });
}

/// A line: the beginning of a session, a message, or a change of an earlier message.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
struct Entry<'a> {
    session_id: Option<Cow<'a, str>>,
    start_time: Option<Cow<'a, str>>,
    kind: Option<Cow<'a, str>>,
    #[serde(rename = "$set")]
    set: Option<Set<'a>>,
    // The fields of a message. They are not flattened into a struct, which would parse each line twice.
    id: Option<Cow<'a, str>>,
    timestamp: Option<Cow<'a, str>>,
    model: Option<Cow<'a, str>>,
    tokens: Option<Tokens>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Set<'a> {
    #[serde(default, borrow)]
    messages: Vec<Message<'a>>,
}

/// A file of an older version.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
struct Chat<'a> {
    #[serde(borrow)]
    session_id: Cow<'a, str>,
    start_time: Option<Cow<'a, str>>,
    #[serde(default)]
    messages: Vec<Message<'a>>,
}

#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
struct Message<'a> {
    id: Option<Cow<'a, str>>,
    timestamp: Option<Cow<'a, str>>,
    model: Option<Cow<'a, str>>,
    tokens: Option<Tokens>,
}

/// The service's figures. `cached` is included in `input`. `thoughts` are not included in `output`. `tool`, the input
/// from the service's own tools, is not included in `input`.
#[derive(Deserialize)]
struct Tokens {
    input: Option<u64>,
    output: Option<u64>,
    cached: Option<u64>,
    thoughts: Option<u64>,
    tool: Option<u64>,
}

impl Tokens {
    fn usage(&self) -> Usage {
        let and = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b.unwrap_or(0)));
        let uncached = self
            .input
            .map(|input| input.saturating_sub(self.cached.unwrap_or(0)));
        Usage::default()
            .input_tokens(and(uncached, self.tool))
            .output_tokens(and(self.output, self.thoughts))
            .cache_read_tokens(self.cached)
            .reasoning_tokens(self.thoughts.filter(|tokens| *tokens > 0))
    }
}

/// Reads a chat.
pub(crate) fn read(source: &Source, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut reader = Reader::of_file(&source.path);
    if source.path.extension().is_some_and(|e| e == "json") {
        return reader.read_file(&source.path, sink);
    }
    source.lines(sink, |line, sink| reader.line(line, sink))
}

/// Returns the directory of the project with this folder `chats`. The CLI writes its path to a small file.
pub(crate) fn directory_of(chats: &Path) -> Option<String> {
    let root = chats.parent()?.join(".project_root");
    let directory = String::from_utf8(small_file(&root, ROOT).ok()?).ok()?;
    Some(directory.trim_end().to_owned())
}

/// State between lines.
#[derive(Default)]
struct Reader {
    /// The session that started this one, if this is a sub-agent's.
    parent: Option<String>,
    session: Option<Arc<str>>,
    /// Start of the session. Older messages were copied from another one.
    begun: Option<Timestamp>,
    model: Shared,
    directory: Option<Arc<str>>,
    subagent: bool,
}

impl Reader {
    fn of_file(path: &Path) -> Self {
        let folder = path.parent();
        let name = folder.and_then(Path::file_name).and_then(|n| n.to_str());
        let parent = name.filter(|name| *name != "chats").map(str::to_owned);
        let chats = if parent.is_some() {
            folder.and_then(Path::parent)
        } else {
            folder
        };
        Self {
            subagent: parent.is_some(),
            session: parent.as_deref().map(Arc::from),
            parent,
            directory: chats.and_then(directory_of).map(Arc::from),
            ..Self::default()
        }
    }

    fn line(&mut self, line: Line<'_>, sink: &mut Sink<'_>) {
        let has_figures = has_object(&FIGURES, line.bytes);
        if !has_figures && HEADER.find(line.bytes).is_none() {
            return;
        }
        let Ok(entry) = serde_json::from_slice::<Entry<'_>>(line.bytes) else {
            sink.malformed(line);
            return;
        };
        if let Some(session) = entry.session_id {
            self.subagent |= entry.kind.as_deref() == Some("subagent");
            if self.parent.is_none() {
                self.session = Some(session.as_ref().into());
            }
            self.begin(entry.start_time);
        }
        let changed = entry.set.map(|set| set.messages).unwrap_or_default();
        let message = Message {
            id: entry.id,
            timestamp: entry.timestamp,
            model: entry.model,
            tokens: entry.tokens,
        };
        let mut understood = true;
        for message in std::iter::once(message).chain(changed) {
            understood &= self.message(message, sink);
        }
        if !understood {
            sink.malformed(line);
        }
    }

    /// Records the start of the session, which the file repeats when it is resumed.
    fn begin(&mut self, time: Option<Cow<'_, str>>) {
        let time = time.and_then(|time| time.parse().ok());
        self.begun = self.begun.or(time);
    }

    /// Reads a whole file of an older version.
    fn read_file(&mut self, path: &Path, sink: &mut Sink<'_>) -> io::Result<()> {
        let bytes = match small_file(path, LARGEST) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                sink.diagnostics.oversize_lines += 1;
                return Ok(());
            }
            bytes => bytes?,
        };
        sink.diagnostics.bytes += bytes.len() as u64;
        sink.diagnostics.lines += 1;
        let Ok(chat) = serde_json::from_slice::<Chat<'_>>(&bytes) else {
            sink.diagnostics.malformed_lines += 1;
            return Ok(());
        };
        self.session = Some(chat.session_id.as_ref().into());
        self.begin(chat.start_time);
        for message in chat.messages {
            if !self.message(message, sink) {
                sink.diagnostics.malformed_lines += 1;
            }
        }
        Ok(())
    }

    /// Processes a message if it has figures. Returns `false` if its session or time is unknown.
    fn message(&mut self, message: Message<'_>, sink: &mut Sink<'_>) -> bool {
        let Some(tokens) = message.tokens else {
            return true;
        };
        let at = message
            .timestamp
            .and_then(|at| at.parse::<Timestamp>().ok());
        let (Some(at), Some(session)) = (at, &self.session) else {
            return false;
        };
        let mut record = Record::new(Provider::Gemini, session.clone(), at);
        record.key = message.id.map(|id| Key::of(Provider::Gemini, &[&id]));
        record.model = message.model.map(|model| self.model.of(&model));
        record.directory.clone_from(&self.directory);
        record.usage = tokens.usage();
        record.subagent = self.subagent;
        record.copied = self.begun.is_some_and(|begun| at < begun);
        sink.record(record);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Found;

    fn put(found: &mut Vec<Record>, what: Found) {
        if let Found::Record(record) = what {
            found.push(record);
        }
    }

    /// Reads handwritten lines in the form of real ones.
    fn records(lines: &[&str]) -> (Vec<Record>, u64) {
        let mut found = Vec::new();
        let mut take = |what| put(&mut found, what);
        let mut sink = Sink::new(&mut take);
        let mut reader = Reader::default();
        for line in lines {
            let bytes = line.as_bytes();
            reader.line(
                Line {
                    bytes,
                    complete: true,
                },
                &mut sink,
            );
        }
        let malformed = sink.diagnostics.malformed_lines;
        (found, malformed)
    }

    const BEGIN: &str = r#"{"sessionId":"s","projectHash":"h","kind":"main"}"#;

    #[test]
    fn cached_and_tool_tokens_are_input_and_thoughts_are_output() {
        let (found, malformed) = records(&[
            BEGIN,
            r#"{"id":"m","timestamp":"2026-11-22T19:00:00Z","type":"gemini","tokens":{"input":100,"output":7,"cached":60,"thoughts":5,"tool":3,"total":115},"model":"g"}"#,
        ]);
        let expected = Usage::default()
            .input_tokens(43)
            .output_tokens(12)
            .cache_read_tokens(60)
            .reasoning_tokens(5);
        assert_eq!((found[0].usage, found.len(), malformed), (expected, 1, 0));
        assert_eq!(&*found[0].session, "s");
    }

    /// As in `teamster_gemini`, which reads the same lines for a killed run.
    #[test]
    fn an_answer_without_thoughts_has_no_reasoning_tokens() {
        let (found, _) = records(&[
            BEGIN,
            r#"{"id":"m","timestamp":"2026-11-22T19:00:00Z","type":"gemini","tokens":{"input":9,"output":7,"cached":0,"thoughts":0,"tool":0,"total":16},"model":"g"}"#,
        ]);
        let expected = Usage::default()
            .input_tokens(9)
            .output_tokens(7)
            .cache_read_tokens(0);
        assert_eq!(found[0].usage, expected);
    }

    #[test]
    fn missing_figures_stay_absent_and_excess_cache_does_not_panic() {
        let (found, _) = records(&[
            BEGIN,
            r#"{"id":"m","timestamp":"2026-11-22T19:00:00Z","tokens":{"input":1,"cached":60}}"#,
        ]);
        assert_eq!(found[0].usage.input_tokens, Some(0));
        assert_eq!(found[0].usage.output_tokens, None);
        assert_eq!(found[0].model, None);
    }

    #[test]
    fn changed_message_counts_and_unowned_figures_are_reported() {
        let set = r#"{"$set":{"messages":[{"id":"m","timestamp":"2026-11-22T19:00:00Z","tokens":{"input":5,"output":1}}]}}"#;
        let (found, malformed) = records(&[BEGIN, set]);
        assert_eq!((found.len(), malformed), (1, 0));
        let (found, malformed) = records(&[set]);
        assert_eq!((found.len(), malformed), (0, 1));
        let good =
            r#"{"id":"m","timestamp":"2026-11-22T19:00:00Z","tokens":{"input":5,"output":1}}"#;
        let bad = good.replace("2026-11-22T", "");
        let set = format!(r#"{{"$set":{{"messages":[{bad},{good},{good}]}}}}"#);
        let (found, malformed) = records(&[BEGIN, &set]);
        assert_eq!((found.len(), malformed), (2, 1));
        let (found, malformed) = records(&[BEGIN, r#"{"tokens":{"input":-1}}"#]);
        assert_eq!((found.len(), malformed), (0, 1));
    }

    #[test]
    fn a_file_of_an_older_version_is_read_in_full() {
        let folder = tempfile::tempdir().unwrap();
        let chats = folder.path().join("tmp/abc/chats");
        std::fs::create_dir_all(&chats).unwrap();
        std::fs::write(
            chats.join("session-2025-10-01T10-00-0a1b2c3d.json"),
            "{\n \"sessionId\": \"0a1b2c3d-x\",\n \"messages\": [\n  {\"id\": \"u\", \"type\": \"user\"},\n  {\"id\": \"m\", \"timestamp\": \"2025-10-01T10:00:01Z\", \"type\": \"gemini\", \"tokens\": {\"input\": 9, \"output\": 2, \"cached\": 0, \"thoughts\": 1, \"tool\": 0, \"total\": 12}, \"model\": \"gemini-2.5-pro\"}\n ]\n}\n",
        )
        .unwrap();
        let locations = Locations {
            gemini: Some(folder.path().to_owned()),
            ..Locations::default()
        };
        for session in [None, Some("0a1b2c3d-x"), Some("99999999-x")] {
            let mut found = Sources::new(None);
            found.session = session.map(str::to_owned);
            sources(&locations, &mut found);
            let mut records = Vec::new();
            let mut take = |what| put(&mut records, what);
            let mut sink = Sink::new(&mut take);
            for source in &found.found {
                read(source, &mut sink).unwrap();
            }
            let sessions: Vec<_> = records.iter().map(|r| &*r.session).collect();
            if session == Some("99999999-x") {
                assert_eq!(sessions, [""; 0]);
            } else {
                assert_eq!(sessions, ["0a1b2c3d-x"]);
                assert_eq!(records[0].usage.output_tokens, Some(3));
            }
        }
    }
}
