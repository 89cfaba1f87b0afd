//! Kimi Code's sessions: `sessions/<directory>/<session>/agents/<agent>/wire.jsonl`.
//!
//! The CLI writes a `usage.record` for each request, with the user's alias of the model. The preceding `llm.request`
//! has the model's own name. The main agent is called `main`, and each sub-agent has a folder of its own. The session's
//! directory is in its `state.json`.

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
use crate::source::{Shared, Sink, Source, Sources, small_file};
use crate::{Key, Provider, Record};

pub(crate) const TRAITS: Traits = Traits::NONE;

/// Part of lines with figures, and of lines with the model's name.
static RECORD: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"usage.record\""));
static REQUEST: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"llm.request\""));

/// Depth of the files in the folder of sessions: directory, session, `agents`, agent, file.
const DEPTH: usize = 5;
/// Maximum size of a `state.json`, in bytes.
const STATE: u64 = 1 << 20;
/// Name of the main agent.
const MAIN: &str = "main";

/// Adds all sessions, or the requested one, with their sub-agents.
pub(crate) fn sources(locations: &Locations, found: &mut Sources) {
    let Some(home) = &locations.kimi else {
        return;
    };
    let wanted = found.session.clone();
    found.walk(Provider::Kimi, &home.join("sessions"), DEPTH, |path| {
        let is_wanted = |session: &str| wanted.as_deref().is_none_or(|wanted| wanted == session);
        path.ends_with("wire.jsonl") && names(path).is_some_and(|(session, _)| is_wanted(session))
    });
}

/// Returns the session and the agent of a file.
fn names(path: &Path) -> Option<(&str, &str)> {
    let agent = path.parent()?;
    let session = agent.parent()?.parent()?;
    Some((session.file_name()?.to_str()?, agent.file_name()?.to_str()?))
}

/// Returns the session of a main agent's file, and its directory.
pub(crate) fn session_of(file: &Path) -> Option<(String, String)> {
    let (session, _) = names(file).filter(|(_, agent)| *agent == MAIN)?;
    Some((session.to_owned(), directory_of(file)?))
}

/// Returns the directory of the session with this file.
fn directory_of(file: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct State {
        cwd: Option<String>,
    }
    let state = file.ancestors().nth(3)?.join("state.json");
    let state: State = serde_json::from_slice(&small_file(&state, STATE).ok()?).ok()?;
    state.cwd
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
struct Entry<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    model: Option<Cow<'a, str>>,
    model_alias: Option<Cow<'a, str>>,
    provider: Option<Cow<'a, str>>,
    usage: Option<Figures>,
    /// Milliseconds since the Unix epoch.
    time: Option<i64>,
}

/// The figures of a request. Input excludes cache reads and writes.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    input_other: Option<u64>,
    output: Option<u64>,
    input_cache_read: Option<u64>,
    input_cache_creation: Option<u64>,
}

/// Reads the usage of an agent of a session.
pub(crate) fn read(source: &Source, sink: &mut Sink<'_>) -> io::Result<()> {
    let Some((session, agent)) = names(&source.path) else {
        return Ok(());
    };
    let mut reader = Reader {
        session: session.into(),
        directory: directory_of(&source.path).map(Into::into),
        is_subagent: agent != MAIN,
        model: Shared::default(),
        vendor: Shared::default(),
        last: None,
    };
    source.lines(sink, |line, sink| reader.line(line, sink))
}

/// State between lines.
struct Reader {
    session: Arc<str>,
    directory: Option<Arc<str>>,
    is_subagent: bool,
    model: Shared,
    vendor: Shared,
    /// The last requested model: its alias, its own name, and the kind of service.
    last: Option<(String, Arc<str>, Option<Arc<str>>)>,
}

impl Reader {
    fn line(&mut self, line: Line<'_>, sink: &mut Sink<'_>) {
        let bytes = line.bytes;
        if RECORD.find(bytes).is_none() && REQUEST.find(bytes).is_none() {
            return;
        }
        let Ok(entry) = serde_json::from_slice::<Entry<'_>>(bytes) else {
            return sink.malformed(line);
        };
        match &*entry.kind {
            "llm.request" => {
                if let Some(model) = entry.model {
                    let alias = entry.model_alias.as_ref().unwrap_or(&model).clone();
                    let vendor = entry.provider.map(|vendor| self.vendor.of(&vendor));
                    self.last = Some((alias.into_owned(), self.model.of(&model), vendor));
                }
            }
            "usage.record" => self.record(entry, line, sink),
            // A text that contains these names.
            _ => {}
        }
    }

    fn record(&mut self, entry: Entry<'_>, line: Line<'_>, sink: &mut Sink<'_>) {
        let at = entry.time;
        let time = at.and_then(|at| Timestamp::from_millisecond(at).ok());
        let (Some(figures), Some(at), Some(time)) = (entry.usage, at, time) else {
            return sink.malformed(line);
        };
        let mut record = Record::new(Provider::Kimi, self.session.clone(), time);
        let name = entry.model.unwrap_or_default();
        // A copied session has the same times and figures.
        record.key = Some(Key::of(
            Provider::Kimi,
            &[&name, &format!("{at} {figures:?}")],
        ));
        match &self.last {
            Some((alias, model, vendor)) if *alias == name => {
                record.model = Some(model.clone());
                record.vendor.clone_from(vendor);
            }
            _ if !name.is_empty() => record.model = Some(self.model.of(&name)),
            _ => {}
        }
        record.directory.clone_from(&self.directory);
        record.subagent = self.is_subagent;
        record.usage = Usage::default()
            .input_tokens(figures.input_other)
            .output_tokens(figures.output)
            .cache_read_tokens(figures.input_cache_read)
            .cache_write_tokens(figures.input_cache_creation);
        sink.record(record);
    }
}
