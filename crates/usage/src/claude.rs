//! Claude's transcripts: `projects/<directory>/<session>.jsonl`, and for sub-agents
//! `projects/<directory>/<session>/subagents/agent-<id>.jsonl`.
//!
//! An answer has a line for each of its blocks, all with the answer's usage. That of the first lines may be the usage
//! at the start of the answer. A forked session's file begins with copies of the other session's lines. A sub-agent's
//! file may have its parent's messages under other request ids. So the key of a request is the id of its message, over
//! all files, and the largest value of each figure counts. A message id that does not come from the service itself is
//! combined with the request's id. Relays may omit that, and then it is combined with the session and the input.
//!
//! A sub-agent's answer may have no later line. The result for its parent has the usage of the last answer. Helper
//! requests, such as the one for a title, leave no line. In versions that write the line `cost-state`, its sums include
//! them.

mod cost_state;
mod status_line;
mod wire;

use std::io;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use jiff::{SignedDuration, Timestamp};
use memchr::memmem::{Finder, FinderRev};
use serde_json::value::RawValue;

use crate::accounts::Totals;
use crate::lines::{self, Line};
use crate::locations::Locations;
use crate::provider::Traits;
use crate::source::{Shared, Sink, Source, Sources, has_object, is_jsonl};
use crate::{Key, Provider, Record};
use cost_state::Before;
pub use status_line::{ClaudeStatusLine, UsedShare};
use wire::{AgentResult, Entry, Figures, Iteration, Timed, Typed};

pub(crate) const TRAITS: Traits = Traits {
    reads_on: true,
    pays_searches: true,
    ..Traits::NONE
};

/// Part of every line that counts, and of few others.
static MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"usage\""));

/// Prefix of the time of a line.
static TIME: LazyLock<FinderRev<'static>> = LazyLock::new(|| FinderRev::new(b"\"timestamp\":\""));

/// Maximum distance of a line's time from its end, in bytes.
const TAIL: usize = 512;

/// Number of bytes before the start position that are searched for the last sums.
const WARM_UP: u64 = 1 << 20;

/// Minimum difference by which a copied line is older than a file's first line. Lines of one process may be out of
/// order by some milliseconds.
const COPY_AGE: SignedDuration = SignedDuration::from_millis(500);

/// Model of messages that the CLI has created itself.
const SYNTHETIC: &str = "<synthetic>";

/// Depth of transcripts in `projects`: directory, session, `subagents`, file, and folders in them.
const DEPTH: usize = 6;

/// Adds all transcripts.
pub(crate) fn sources(locations: &Locations, found: &mut Sources) {
    let session = found.session.clone();
    for home in &locations.claude {
        let projects = home.join("projects");
        match &session {
            Some(session) => of_session(&projects, session, found),
            None => found.walk(Provider::Claude, &projects, DEPTH, is_jsonl),
        }
    }
}

/// Adds a session's transcript and those of its sub-agents, in any project.
fn of_session(projects: &Path, session: &str, found: &mut Sources) {
    for project in found.entries(projects) {
        let file = project.join(format!("{session}.jsonl"));
        if let Ok(metadata) = file.metadata()
            && metadata.is_file()
        {
            found.add(Provider::Claude, file, &metadata);
        }
        let folder = project.join(session);
        found.walk(Provider::Claude, &folder, DEPTH - 2, is_jsonl);
    }
}

/// Reads a transcript.
pub(crate) fn read(source: &Source, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut reader = Reader {
        file_session: session_of(&source.path),
        beginning: source.start == 0,
        ..Reader::default()
    };
    if source.start > 0 {
        reader.go_on(source)?;
    }
    let read = source.lines(sink, |line, sink| reader.line(line, sink));
    reader
        .totals
        .drain(..)
        .for_each(|totals| sink.totals(totals));
    read
}

/// State between lines.
#[derive(Default)]
struct Reader {
    /// The session in the file's path.
    file_session: Option<String>,
    /// The first time in the file, if it was read from its start. Older lines are copies.
    began: Option<Timestamp>,
    /// True until the first time was read.
    beginning: bool,
    /// True if the file begins with copies of another session's lines.
    forked: bool,
    /// The last request of which the file has a copy.
    copied: Option<(Timestamp, Key)>,
    /// The time of the last line, as written there.
    time: Vec<u8>,
    /// The directory of the last request.
    last_directory: Option<Arc<str>>,
    /// Sums that no line with a time has followed yet.
    totals: Vec<Totals>,
    // Texts that most lines share.
    session: Shared,
    model: Shared,
    directory: Shared,
}

impl Reader {
    fn line(&mut self, line: Line<'_>, sink: &mut Sink<'_>) {
        if self.beginning
            && let Ok(Timed {
                timestamp: Some(at),
            }) = serde_json::from_slice(line.bytes)
        {
            self.beginning = false;
            self.began = at.parse().ok();
        }
        self.note_time(line.bytes, sink);
        if cost_state::may_be(line.bytes) {
            match self.cost_state(line.bytes) {
                Ok(totals) => self.totals.extend(totals),
                Err(()) => sink.malformed(line),
            }
            return;
        }
        if !has_object(&MARK, line.bytes) {
            return;
        }
        if self.entry(line.bytes, sink).is_none() {
            sink.malformed(line);
        }
    }

    /// Reads the last sums before the start position.
    fn go_on(&mut self, source: &Source) -> io::Result<()> {
        let mut nothing = |_| {};
        let mut nowhere = Sink::new(&mut nothing);
        lines::read_before(&source.path, source.start, WARM_UP, &mut |line| {
            self.note_time(line, &mut nowhere);
            if cost_state::may_be(line)
                && let Ok(Some(totals)) = self.cost_state(line)
            {
                self.totals = vec![totals];
            }
        })
    }

    /// Records the time of a line.
    fn note_time(&mut self, line: &[u8], sink: &mut Sink<'_>) {
        let tail = &line[line.len().saturating_sub(TAIL)..];
        let Some(index) = TIME.rfind(tail) else {
            return;
        };
        let text = &tail[index + TIME.needle().len()..];
        let Some(end) = memchr::memchr(b'"', text) else {
            return;
        };
        self.time.clear();
        self.time.extend_from_slice(&text[..end]);
        if !self.totals.is_empty() {
            let until = self.last_time();
            for mut totals in self.totals.drain(..) {
                totals.until = until;
                sink.totals(totals);
            }
        }
        if !self.forked
            && let Some((at, began)) = self.last_time().zip(self.began)
            && began.duration_since(at) > COPY_AGE
        {
            // The result of a tool may contain a field with that name.
            let own = serde_json::from_slice::<Timed<'_>>(line).ok();
            let own = own.and_then(|line| line.timestamp?.parse::<Timestamp>().ok());
            self.forked = own.is_some_and(|at| began.duration_since(at) > COPY_AGE);
        }
    }

    fn last_time(&self) -> Option<Timestamp> {
        std::str::from_utf8(&self.time).ok()?.parse().ok()
    }

    fn cost_state(&self, line: &[u8]) -> Result<Option<Totals>, ()> {
        let before = Before {
            file_session: self.file_session.as_deref(),
            at: self.last_time(),
            began: self.began,
            forked: self.forked,
            copied: self.copied.map(|(_, key)| key),
            directory: self.last_directory.clone(),
        };
        cost_state::parse(line, before)
    }

    /// Processes a line with figures. Returns `None` if it is malformed.
    fn entry(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Option<()> {
        let Ok(entry) = serde_json::from_slice::<Entry<'_>>(line) else {
            // Lines of other kinds may have other types in these fields.
            let typed: Typed<'_> = serde_json::from_slice(line).ok()?;
            return (typed.r#type != "assistant").then_some(());
        };
        match &*entry.r#type {
            "assistant" => self.answer(&entry, sink),
            "user" => {
                // Most tools have other results, which is no error.
                let result = entry.tool_use_result.map(RawValue::get).unwrap_or_default();
                if let Ok(result) = serde_json::from_str::<AgentResult<'_>>(result)
                    && let Some(output) = result.usage.output_tokens
                {
                    sink.amend(result.usage.alias(&result.agent_id), output);
                }
                Some(())
            }
            _ => Some(()),
        }
    }

    fn answer(&mut self, entry: &Entry<'_>, sink: &mut Sink<'_>) -> Option<()> {
        let message = entry.message.as_ref()?;
        if message.model.as_deref() == Some(SYNTHETIC) {
            return Some(());
        }
        let Some(figures) = &message.usage else {
            return Some(());
        };
        let at: Timestamp = entry.timestamp.as_deref()?.parse().ok()?;
        let session = entry
            .session_id
            .as_deref()
            .or(self.file_session.as_deref())?;
        let mut record = Record::new(Provider::Claude, self.session.of(session), at);
        record.copied = entry.forked_from.is_some() || self.began.is_some_and(|began| at < began);
        record.key = message.id.as_deref().map(|id| {
            if is_unique(id) {
                return Key::of(Provider::Claude, &[id]);
            }
            match entry.request_id.as_deref() {
                Some(request) => Key::of(Provider::Claude, &[id, request]),
                None => Key::of(Provider::Claude, &[id, session, &figures.input()]),
            }
        });
        if let Some(id) = message.id.as_deref()
            && entry.request_id.is_none()
            && !is_unique(id)
        {
            // The line at the start of an answer is not a separate answer.
            if figures.is_zero() {
                return Some(());
            }
            // Only the time of a line distinguishes a copy from another session's request with the same input.
            let time = entry.timestamp.as_deref().unwrap_or_default();
            let line = Key::of(Provider::Claude, &["line", id, time, &figures.input()]);
            if record.copied {
                let key = Key::of(Provider::Claude, &["copy", id, &figures.input()]);
                record.key = Some(key);
                sink.copy(key, line);
            } else {
                record.alias = Some(line);
            }
        } else if entry.request_id.is_none() && message.id.is_none() && record.copied {
            return Some(());
        }
        if record.copied
            && let Some(key) = record.key
            && self.copied.is_none_or(|(last, _)| last <= at)
        {
            self.copied = Some((at, key));
        }
        if record.alias.is_none() && message.stop_reason.is_none() {
            record.alias = entry.agent_id.as_deref().map(|agent| figures.alias(agent));
        }
        record.model = message.model.as_deref().map(|model| self.model.of(model));
        record.directory = entry.cwd.as_deref().map(|cwd| self.directory.of(cwd));
        self.last_directory.clone_from(&record.directory);
        record.usage = figures.usage();
        record.cache_write_1h_tokens = figures.written_1h();
        record.web_searches = figures.web_searches();
        record.fast = figures.speed.as_deref() == Some("fast");
        record.us_only = figures.inference_geo.as_deref() == Some("us");
        record.cost_usd = entry.cost_usd;
        record.subagent = entry.is_sidechain;
        let parts = figures.parts();
        let mut understood = parts.is_some();
        for (index, part) in parts.into_iter().flatten().enumerate() {
            understood &= self.part(&record, index, part.get(), sink).is_some();
        }
        sink.record(record);
        understood.then_some(())
    }

    /// Processes a part of the answer with this record. Returns `None` if it is malformed.
    fn part(
        &mut self,
        record: &Record,
        index: usize,
        part: &str,
        sink: &mut Sink<'_>,
    ) -> Option<()> {
        let kind: Iteration<'_> = serde_json::from_str(part).ok()?;
        if kind.r#type == "message" {
            return Some(());
        }
        let figures: Figures<'_> = serde_json::from_str(part).ok()?;
        let mut other = record.clone();
        let key = record.key.map(|key| key.0.to_string());
        let index = index.to_string();
        other.key = key.map(|key| Key::of(Provider::Claude, &["part", &key, &index]));
        other.alias = None;
        other.cost_usd = None;
        other.web_searches = None;
        if let Some(model) = &kind.model {
            other.model = Some(self.model.of(model));
        }
        other.usage = figures.usage();
        other.cache_write_1h_tokens = figures.written_1h();
        sink.record(other);
        Some(())
    }
}

/// Returns whether a message id is unique: the service's own ids, such as `msg_01` and 22 letters. Relays and proxies
/// create other ids, and some use the same id for all messages.
fn is_unique(id: &str) -> bool {
    id.len() >= 28 && id.starts_with("msg_")
}

/// Returns the session in a transcript's path: the file's name, or for a sub-agent the folder's name.
fn session_of(path: &Path) -> Option<String> {
    let parent = path.parent()?;
    let name = if parent.file_name()? == "subagents" {
        parent.parent()?.file_name()?
    } else {
        path.file_stem()?
    };
    Some(name.to_str()?.to_owned())
}

#[cfg(test)]
mod tests;
