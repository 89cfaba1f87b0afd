//! Claude's transcripts: `projects/<directory>/<session>.jsonl`, and of sub-agents
//! `projects/<directory>/<session>/subagents/agent-<id>.jsonl`.
//!
//! An answer has a line for each of its blocks, all with the answer's usage; that of the first lines may
//! be what it was when the answer began. A forked session's file begins with copies of the other's lines,
//! and a sub-agent's may have its parent's messages under other requests' ids. So a request is known by
//! the id of its message, in all files together, and of each figure the largest counts. Ids that are not
//! the service's own only count together with that of the request, which relays may leave out: then with
//! the session and with what went in.
//!
//! Of a sub-agent's answer there may be no later line; the result that its parent was given has the usage
//! of the last one. Helper calls, such as the one that finds a title, leave no line.

use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::LazyLock;

use jiff::Timestamp;
use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::value::RawValue;
use teamster_core::Usage;

use crate::lines::{self, Line};
use crate::places::Places;
use crate::source::{Shared, Sink, Source, Sources, is_jsonl};
use crate::{Key, Provider, Record};

/// What every line that counts has in it, and few others.
static MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"usage\":{"));

/// The model of messages that the CLI made up itself.
const SYNTHETIC: &str = "<synthetic>";

/// How deep transcripts lie in `projects`: directory, session, `subagents`, file, and folders in them.
const DEPTH: usize = 6;

/// All transcripts.
pub(crate) fn sources(places: &Places, found: &mut Sources) {
    for home in &places.claude {
        found.walk(Provider::Claude, &home.join("projects"), DEPTH, is_jsonl);
    }
}

/// A session's transcript and those of its sub-agents, in whichever project it is.
pub(crate) fn of_session(places: &Places, session: &str, found: &mut Sources) {
    for home in &places.claude {
        for project in found.entries(&home.join("projects")) {
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
}

/// A line, as far as it matters here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    session_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(borrow)]
    cwd: Option<Cow<'a, str>>,
    #[serde(borrow)]
    request_id: Option<Cow<'a, str>>,
    #[serde(default)]
    is_sidechain: bool,
    /// Versions of 2025 wrote it.
    #[serde(rename = "costUSD")]
    cost_usd: Option<f64>,
    /// The sub-agent whose transcript it is.
    #[serde(borrow)]
    agent_id: Option<Cow<'a, str>>,
    /// Present in a copy of another session's line, in some ways to fork.
    #[serde(borrow)]
    forked_from: Option<&'a RawValue>,
    /// What a tool gave, in many forms.
    #[serde(borrow)]
    tool_use_result: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
}

/// The kind of a line.
#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
}

/// The time of a line.
#[derive(Deserialize)]
struct Timed<'a> {
    #[serde(borrow)]
    timestamp: Option<Cow<'a, str>>,
}

/// What a sub-agent gave to its parent.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AgentResult<'a> {
    #[serde(borrow)]
    agent_id: Cow<'a, str>,
    /// That of its last answer.
    #[serde(borrow)]
    usage: Figures<'a>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(borrow)]
    usage: Option<Figures<'a>>,
}

/// The service's own figures: input is without what was read from or written to the cache.
#[derive(Deserialize)]
struct Figures<'a> {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_creation: Option<CacheCreation>,
    /// What the answer is made of. Those parts that are not of its own message are not in the figures.
    #[serde(borrow)]
    iterations: Option<&'a RawValue>,
}

/// What another model advised, or a summary that the service made, within a request; its figures are beside
/// this.
#[derive(Deserialize)]
struct Iteration<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct CacheCreation {
    ephemeral_1h_input_tokens: Option<u64>,
}

/// Reads a transcript.
pub(crate) fn read(source: &Source, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut reader = Reader {
        file_session: session_of(&source.path),
        beginning: source.start == 0,
        ..Reader::default()
    };
    lines::read(
        &source.path,
        source.start,
        &mut |line, sink| reader.line(line, sink),
        sink,
    )
}

/// What remains from line to line.
#[derive(Default)]
struct Reader {
    /// The session that the file's path names.
    file_session: Option<String>,
    /// The first time that the file tells, if it was read from its start. What is older is a copy.
    began: Option<Timestamp>,
    /// Whether the first time is still to come.
    beginning: bool,
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
        if MARK.find(line.bytes).is_none() {
            return;
        }
        if self.entry(line.bytes, sink).is_none() {
            sink.malformed(line);
        }
    }

    /// Takes in a line with figures. `None` if it is not as it should be.
    fn entry(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Option<()> {
        let Ok(entry) = serde_json::from_slice::<Entry<'_>>(line) else {
            // Lines of other kinds may have anything in these fields.
            let typed: Typed<'_> = serde_json::from_slice(line).ok()?;
            return (typed.r#type != "assistant").then_some(());
        };
        match &*entry.r#type {
            "assistant" => self.answer(&entry, sink),
            "user" => {
                // Many tools give something else, and it is as it should be.
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
        if entry.request_id.is_none() && !message.id.as_deref().is_some_and(is_unique) {
            // Nothing tells a copy from another session's request that looks the same, or what is said
            // when an answer begins from a request.
            if record.copied || figures.is_zero() {
                return Some(());
            }
        }
        if message.stop_reason.is_none() {
            record.alias = entry.agent_id.as_deref().map(|agent| figures.alias(agent));
        }
        record.model = message.model.as_deref().map(|model| self.model.of(model));
        record.directory = entry.cwd.as_deref().map(|cwd| self.directory.of(cwd));
        record.usage = figures.usage();
        record.cache_write_1h_tokens = figures.written_1h();
        record.cost_usd = entry.cost_usd;
        record.subagent = entry.is_sidechain;
        let parts = figures.parts();
        let mut understood = parts.is_some();
        for (place, part) in parts.into_iter().flatten().enumerate() {
            understood &= self.part(&record, place, part.get(), sink).is_some();
        }
        sink.record(record);
        understood.then_some(())
    }

    /// Takes in a part of an answer, of which this is the record. `None` if it is not as it should be.
    fn part(
        &mut self,
        record: &Record,
        place: usize,
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
        let place = place.to_string();
        other.key = key.map(|key| Key::of(Provider::Claude, &["part", &key, &place]));
        other.alias = None;
        other.cost_usd = None;
        if let Some(model) = &kind.model {
            other.model = Some(self.model.of(model));
        }
        other.usage = figures.usage();
        other.cache_write_1h_tokens = figures.written_1h();
        sink.record(other);
        Some(())
    }
}

impl Figures<'_> {
    fn usage(&self) -> Usage {
        Usage {
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cache_read_tokens: self.cache_read_input_tokens,
            cache_write_tokens: self.cache_creation_input_tokens,
            reasoning_tokens: None,
        }
    }

    fn written_1h(&self) -> Option<u64> {
        self.cache_creation.as_ref()?.ephemeral_1h_input_tokens
    }

    /// What the answer is made of, where that is told. `None` if it is not as it should be.
    fn parts(&self) -> Option<Vec<&RawValue>> {
        let parts = self.iterations.map_or("[]", RawValue::get);
        serde_json::from_str(parts).ok()
    }

    /// Whether no token is told of.
    fn is_zero(&self) -> bool {
        self.usage().total_tokens().unwrap_or(0) == 0
    }

    /// What went in, as a text. It grows from answer to answer.
    fn input(&self) -> String {
        let figures = [
            self.input_tokens,
            self.cache_read_input_tokens,
            self.cache_creation_input_tokens,
        ];
        figures
            .map(|figure| figure.unwrap_or(0).to_string())
            .join(",")
    }

    /// What an answer of a sub-agent is known by in its parent's transcript, which names no message.
    fn alias(&self, agent: &str) -> Key {
        Key::of(Provider::Claude, &["alias", agent, &self.input()])
    }
}

/// Whether no two messages have this id: the service's own, such as `msg_01` and 22 letters. Relays and
/// proxies make ids of their own, and some give all messages the same.
fn is_unique(id: &str) -> bool {
    id.len() >= 28 && id.starts_with("msg_")
}

/// The session that a transcript's path names: its own name, or for a sub-agent the folder's.
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
