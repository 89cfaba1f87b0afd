//! Qwen Code's sessions: `projects/<directory>/chats/<session>.jsonl`.
//!
//! The CLI writes an event `qwen-code.api_response` for each request, including those of sub-agents and its own helper
//! requests. The file `usage_record.jsonl` has sums of its processes, which are not needed.

use std::borrow::Cow;
use std::io;
use std::sync::LazyLock;

use jiff::Timestamp;
use memchr::memmem::Finder;
use serde::Deserialize;
use teamster_core::Usage;

use crate::lines::Line;
use crate::locations::Locations;
use crate::provider::Traits;
use crate::source::{Shared, Sink, Source, Sources, is_jsonl};
use crate::{Key, Provider, Record};

pub(crate) const TRAITS: Traits = Traits::NONE;

/// Part of lines with figures.
static RESPONSE: LazyLock<Finder<'static>> =
    LazyLock::new(|| Finder::new(b"\"qwen-code.api_response\""));

/// Depth of the files in the folder of projects: directory, `chats`, file.
const DEPTH: usize = 3;

/// Adds all sessions, or the requested one. Sub-agents are in the file of their session.
pub(crate) fn sources(locations: &Locations, found: &mut Sources) {
    let Some(home) = &locations.qwen else {
        return;
    };
    let session = found.session.clone();
    found.walk(Provider::Qwen, &home.join("projects"), DEPTH, |path| {
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let is_chat = path
            .parent()
            .is_some_and(|folder| folder.ends_with("chats"));
        is_chat && is_jsonl(path) && (session.is_none() || stem == session.as_deref())
    });
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
struct Entry<'a> {
    session_id: Option<Cow<'a, str>>,
    cwd: Option<Cow<'a, str>>,
    system_payload: Option<Payload<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
struct Payload<'a> {
    ui_event: Option<Response<'a>>,
}

/// The service's figures. Cached tokens are part of the input, thoughts are part of the output.
#[derive(Deserialize)]
struct Response<'a> {
    #[serde(rename = "event.name", borrow)]
    name: Cow<'a, str>,
    #[serde(rename = "event.timestamp", borrow)]
    at: Option<Cow<'a, str>>,
    #[serde(rename = "response_id", borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(rename = "input_token_count")]
    input: Option<u64>,
    #[serde(rename = "output_token_count")]
    output: Option<u64>,
    #[serde(rename = "cached_content_token_count")]
    cached: Option<u64>,
    #[serde(rename = "thoughts_token_count")]
    thoughts: Option<u64>,
    #[serde(rename = "subagent_name", borrow)]
    subagent: Option<Cow<'a, str>>,
}

/// Reads a session.
pub(crate) fn read(source: &Source, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut reader = Reader::default();
    source.lines(sink, |line, sink| reader.line(line, sink))
}

/// State between lines.
#[derive(Default)]
struct Reader {
    session: Shared,
    directory: Shared,
    model: Shared,
}

impl Reader {
    fn line(&mut self, line: Line<'_>, sink: &mut Sink<'_>) {
        if RESPONSE.find(line.bytes).is_none() {
            return;
        }
        let Ok(entry) = serde_json::from_slice::<Entry<'_>>(line.bytes) else {
            return sink.malformed(line);
        };
        let response = entry.system_payload.and_then(|payload| payload.ui_event);
        // A text may contain this name.
        let Some(response) = response.filter(|it| it.name == "qwen-code.api_response") else {
            return;
        };
        let at = response.at.as_deref().unwrap_or_default();
        let (Some(session), Ok(time)) = (entry.session_id, at.parse::<Timestamp>()) else {
            return sink.malformed(line);
        };
        let mut record = Record::new(Provider::Qwen, self.session.of(&session), time);
        // A copied session has the same times and ids.
        let id = response.id.unwrap_or_default();
        let figures = format!("{:?} {:?}", response.input, response.output);
        record.key = Some(Key::of(Provider::Qwen, &[&id, at, &figures]));
        record.model = response.model.map(|model| self.model.of(&model));
        record.directory = entry.cwd.map(|directory| self.directory.of(&directory));
        record.subagent = response.subagent.is_some();
        let positive = |tokens: Option<u64>| tokens.filter(|tokens| *tokens > 0);
        record.usage = Usage::default()
            .input_tokens(response.input)
            .output_tokens(response.output)
            .cache_read_tokens(positive(response.cached))
            .reasoning_tokens(positive(response.thoughts))
            .without_cache_in_input();
        sink.record(record);
    }
}
