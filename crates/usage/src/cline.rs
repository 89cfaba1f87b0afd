//! Cline's sessions: `sessions/<session>/<name>.messages.json`, one JSON value each.
//!
//! Each answer of the model has its figures. A file names its session. A sub-agent's id begins with that of the session
//! that started it.

use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use teamster_core::Usage;

use crate::locations::Locations;
use crate::provider::Traits;
use crate::source::{Shared, Sink, Source, Sources, small_file};
use crate::{Key, Provider, Record};

pub(crate) const TRAITS: Traits = Traits::NONE;

/// Depth of the files in the folder of sessions: session, file.
const DEPTH: usize = 2;
/// Maximum size of a file, in bytes.
const LARGEST: u64 = 64 << 20;
/// Suffix of a file with messages.
const MESSAGES: &str = ".messages.json";
/// Separates the session in a sub-agent's id.
const SUB_AGENT: &str = "__agent_";

/// Adds the message files of all sessions, or of the requested one with its sub-agents.
pub(crate) fn sources(locations: &Locations, found: &mut Sources) {
    let Some(folder) = &locations.cline_sessions else {
        return;
    };
    let session = found.session.clone();
    // The CLI splits a sub-agent's id at the first separator, which may be part of the session's id.
    let is_wanted = |folder: &str| {
        session
            .as_deref()
            .is_none_or(|session| folder == session || Some(folder) == session.split("__").next())
    };
    found.walk(Provider::Cline, folder, DEPTH, |path| {
        let name = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
        let folder = path.parent().and_then(name);
        name(path).is_some_and(|name| name.ends_with(MESSAGES))
            && folder.is_some_and(|folder| is_wanted(&folder))
    });
}

/// A session, as the CLI describes it beside its messages.
#[derive(Deserialize)]
pub(crate) struct About {
    #[serde(rename = "session_id")]
    pub(crate) id: String,
    #[serde(rename = "cwd")]
    pub(crate) directory: String,
    pub(crate) prompt: Option<String>,
}

/// Reads the description of the session with these messages. A sub-agent's messages have none.
pub(crate) fn about(messages: &Path) -> Option<About> {
    let name = messages.file_name()?.to_str()?.strip_suffix(MESSAGES)?;
    let about = messages.with_file_name(format!("{name}.json"));
    serde_json::from_slice(&small_file(&about, LARGEST).ok()?).ok()
}

/// Returns a prompt without the CLI's tag around it.
pub(crate) fn without_tag(prompt: &str) -> &str {
    let inner = || {
        let (_, rest) = prompt.strip_prefix("<user_input")?.split_once('>')?;
        rest.split_once("</user_input>").map(|(inner, _)| inner)
    };
    inner().unwrap_or(prompt).trim()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
struct Conversation<'a> {
    session_id: Option<Cow<'a, str>>,
    #[serde(default)]
    messages: Vec<Message<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
struct Message<'a> {
    id: Option<Cow<'a, str>>,
    /// Milliseconds since the Unix epoch.
    ts: Option<i64>,
    model_info: Option<Model<'a>>,
    metrics: Option<Metrics>,
}

#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
struct Model<'a> {
    id: Option<Cow<'a, str>>,
    provider: Option<Cow<'a, str>>,
}

/// The figures of an answer. Input includes cache reads and writes.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metrics {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    cost: Option<f64>,
}

impl Metrics {
    /// Converts the figures. The CLI writes 0 for figures that its service does not have.
    fn usage(&self) -> Usage {
        let positive = |tokens: Option<u64>| tokens.filter(|tokens| *tokens > 0);
        Usage::default()
            .input_tokens(self.input_tokens)
            .output_tokens(self.output_tokens)
            .cache_read_tokens(positive(self.cache_read_tokens))
            .cache_write_tokens(positive(self.cache_write_tokens))
            .without_cache_in_input()
    }
}

/// Reads the messages of a session, or of a sub-agent.
pub(crate) fn read(source: &Source, sink: &mut Sink<'_>) -> io::Result<()> {
    #[derive(Deserialize)]
    struct State {
        cwd: Option<String>,
    }
    let bytes = match small_file(&source.path, LARGEST) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            sink.diagnostics.oversize_lines += 1;
            return Ok(());
        }
        read => read?,
    };
    sink.diagnostics.bytes += bytes.len() as u64;
    let Ok(conversation) = serde_json::from_slice::<Conversation<'_>>(&bytes) else {
        sink.diagnostics.malformed_lines += 1;
        return Ok(());
    };
    let id = conversation.session_id.unwrap_or_default();
    let (session, is_subagent) = match id.split_once(SUB_AGENT) {
        Some((session, _)) => (session, true),
        None => (&*id, false),
    };
    let state = source.path.with_file_name(format!("{session}.json"));
    let state = small_file(&state, LARGEST).ok();
    let state = state.and_then(|bytes| serde_json::from_slice::<State>(&bytes).ok());
    let directory: Option<Arc<str>> = state.and_then(|state| state.cwd).map(Into::into);
    let shared: Arc<str> = session.into();
    let (mut model, mut vendor) = (Shared::default(), Shared::default());
    for message in conversation.messages {
        let Some(metrics) = message.metrics else {
            continue;
        };
        let usage = metrics.usage();
        // The CLI writes zeros for a failed request.
        if usage.total_tokens().unwrap_or(0) == 0 {
            continue;
        }
        let time = message
            .ts
            .and_then(|ts| Timestamp::from_millisecond(ts).ok());
        let (Some(time), Some(id)) = (time, message.id) else {
            sink.diagnostics.malformed_lines += 1;
            continue;
        };
        let mut record = Record::new(Provider::Cline, shared.clone(), time);
        record.key = Some(Key::of(Provider::Cline, &[&id, &format!("{metrics:?}")]));
        if let Some(info) = message.model_info {
            record.model = info.id.map(|id| model.of(&id));
            record.vendor = info.provider.map(|name| vendor.of(&name));
        }
        record.directory.clone_from(&directory);
        record.subagent = is_subagent;
        record.cost_usd = metrics.cost.filter(|usd| *usd > 0.0);
        record.usage = usage;
        sink.record(record);
    }
    Ok(())
}
