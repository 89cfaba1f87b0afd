//! Claude's transcripts: `projects/<directory>/<session>.jsonl`, and of sub-agents
//! `projects/<directory>/<session>/subagents/agent-<id>.jsonl`.
//!
//! An answer has a line for each of its blocks, all with the answer's usage; that of the first lines may
//! be what it was when the answer began. A forked session's file begins with copies of the other's lines.
//! So a request is known by the ids of its message and of itself, in all files together, and of each
//! figure the largest counts. Helper calls, such as the one that finds a title, leave no line.

use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::LazyLock;

use jiff::Timestamp;
use memchr::memmem::Finder;
use serde::Deserialize;
use teamster_core::Usage;

use crate::lines::{self, Line};
use crate::places::Places;
use crate::source::{Shared, Sink, Source, Sources};
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
        found.walk(
            Provider::Claude,
            &home.join("projects"),
            DEPTH,
            is_transcript,
        );
    }
}

/// A session's transcript and those of its sub-agents, in whichever project it is.
pub(crate) fn of_session(places: &Places, session: &str, found: &mut Sources) {
    for home in &places.claude {
        let Ok(projects) = std::fs::read_dir(home.join("projects")) else {
            continue;
        };
        for project in projects.flatten() {
            let file = project.path().join(format!("{session}.jsonl"));
            if let Ok(metadata) = file.metadata() {
                found.add(Provider::Claude, file, &metadata);
            }
            let folder = project.path().join(session);
            found.walk(Provider::Claude, &folder, DEPTH - 2, is_transcript);
        }
    }
}

fn is_transcript(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "jsonl")
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
    #[serde(borrow)]
    message: Option<Message<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    usage: Option<Figures>,
}

/// The service's own figures: input is without what was read from or written to the cache.
#[derive(Deserialize)]
struct Figures {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_creation: Option<CacheCreation>,
}

#[derive(Deserialize)]
struct CacheCreation {
    ephemeral_1h_input_tokens: Option<u64>,
}

/// Reads a transcript.
pub(crate) fn read(source: &Source, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut reader = Reader {
        file_session: session_of(&source.path),
        ..Reader::default()
    };
    lines::read(
        &source.path,
        source.start,
        &mut |line, sink| reader.line(line, sink),
        sink,
    )
}

/// What remains from line to line: texts that most lines share.
#[derive(Default)]
struct Reader {
    /// The session that the file's path names.
    file_session: Option<String>,
    session: Shared,
    model: Shared,
    directory: Shared,
}

impl Reader {
    fn line(&mut self, line: Line<'_>, sink: &mut Sink<'_>) {
        if MARK.find(line.bytes).is_none() {
            return;
        }
        let Ok(entry) = serde_json::from_slice::<Entry<'_>>(line.bytes) else {
            sink.malformed(line);
            return;
        };
        if entry.r#type != "assistant" {
            return;
        }
        let Some(message) = entry.message else {
            return;
        };
        let Some(tokens) = message.usage else {
            return;
        };
        if message.model.as_deref() == Some(SYNTHETIC) {
            return;
        }
        let at = entry.timestamp.and_then(|at| at.parse::<Timestamp>().ok());
        let session = entry.session_id.as_deref().or(self.file_session.as_deref());
        let (Some(at), Some(session)) = (at, session) else {
            sink.malformed(line);
            return;
        };
        let mut record = Record::new(Provider::Claude, self.session.of(session), at);
        record.key = message.id.as_deref().map(|id| {
            let request = entry.request_id.as_deref().unwrap_or_default();
            Key::of(Provider::Claude, &[id, request])
        });
        record.model = message.model.map(|model| self.model.of(&model));
        record.directory = entry.cwd.map(|cwd| self.directory.of(&cwd));
        record.usage = Usage {
            input_tokens: tokens.input_tokens,
            output_tokens: tokens.output_tokens,
            cache_read_tokens: tokens.cache_read_input_tokens,
            cache_write_tokens: tokens.cache_creation_input_tokens,
            reasoning_tokens: None,
        };
        record.cache_write_1h_tokens = tokens
            .cache_creation
            .and_then(|creation| creation.ephemeral_1h_input_tokens);
        record.cost_usd = entry.cost_usd;
        record.subagent = entry.is_sidechain;
        sink.record(record);
    }
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
