//! Pi's sessions: `sessions/<directory>/<time>_<id>.jsonl`.
//!
//! A line is an entry of the conversation. Figures are in the model's answers, in results of tools that have called a
//! model, in summaries (of a compaction or an abandoned branch) and in entries of type `usage`. A fork begins with
//! copies of the other session's entries, with their ids and times. So the key of a request consists of these.

use std::borrow::Cow;
use std::io;
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use memchr::memmem::Finder;
use serde::Deserialize;
use teamster_core::Usage;

use crate::lines::Line;
use crate::locations::Locations;
use crate::provider::Traits;
use crate::source::{Shared, Sink, Source, Sources, has_object};
use crate::{Key, Provider, Record};

pub(crate) const TRAITS: Traits = Traits::NONE;

/// Part of every entry with figures.
static FIGURES: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"usage\""));
/// Prefix of the line that names the session.
const HEADER: &[u8] = br#"{"type":"session","#;

/// Depth of the files in the folder of sessions: directory, file.
const DEPTH: usize = 2;

/// Adds all sessions, or the requested one.
pub(crate) fn sources(locations: &Locations, found: &mut Sources) {
    let Some(folder) = &locations.pi_sessions else {
        return;
    };
    let session = found.session.clone();
    found.walk(Provider::Pi, folder, DEPTH, |path| {
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let id = stem.map(|stem| stem.split_once('_').map(|(_, id)| id));
        path.extension().is_some_and(|it| it == "jsonl")
            && id.is_some_and(|id| session.is_none() || id == session.as_deref())
    });
}

#[derive(Deserialize)]
struct Header<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    cwd: Option<Cow<'a, str>>,
}

/// An entry. The figures are its own, or those of its message.
#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
struct Entry<'a> {
    id: Option<Cow<'a, str>>,
    timestamp: Option<Cow<'a, str>>,
    provider: Option<Cow<'a, str>>,
    model: Option<Cow<'a, str>>,
    usage: Option<Figures>,
    message: Option<Message<'a>>,
}

#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
struct Message<'a> {
    provider: Option<Cow<'a, str>>,
    model: Option<Cow<'a, str>>,
    usage: Option<Figures>,
}

/// The figures of a request. Input excludes cache reads and writes; output includes reasoning.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    #[serde(rename = "cacheWrite1h")]
    cache_write_1h: Option<u64>,
    reasoning: Option<u64>,
    cost: Option<Cost>,
}

#[derive(Deserialize)]
struct Cost {
    total: Option<f64>,
}

impl Figures {
    fn usage(&self) -> Usage {
        Usage::default()
            .input_tokens(self.input)
            .output_tokens(self.output)
            .cache_read_tokens(self.cache_read)
            .cache_write_tokens(self.cache_write)
            .reasoning_tokens(self.reasoning)
    }

    /// Returns the cost. The CLI writes 0 for a model without a price.
    fn cost_usd(&self) -> Option<f64> {
        self.cost.as_ref()?.total.filter(|usd| *usd > 0.0)
    }
}

/// Reads a session.
pub(crate) fn read(source: &Source, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut reader = Reader::default();
    source.lines(sink, |line, sink| reader.line(line, sink))
}

/// State between lines.
#[derive(Default)]
struct Reader {
    session: Option<Arc<str>>,
    directory: Option<Arc<str>>,
    model: Shared,
    vendor: Shared,
    /// The last model and its provider, which a summary is requested from.
    last: Option<(Arc<str>, Option<Arc<str>>)>,
}

impl Reader {
    fn line(&mut self, line: Line<'_>, sink: &mut Sink<'_>) {
        if line.bytes.starts_with(HEADER) {
            match serde_json::from_slice::<Header<'_>>(line.bytes) {
                Ok(header) => {
                    self.session = Some(header.id.as_ref().into());
                    self.directory = header.cwd.map(|cwd| cwd.as_ref().into());
                }
                Err(_) => sink.malformed(line),
            }
            return;
        }
        if !has_object(&FIGURES, line.bytes) {
            return;
        }
        let Ok(entry) = serde_json::from_slice::<Entry<'_>>(line.bytes) else {
            return sink.malformed(line);
        };
        let of_message = entry.message;
        let (figures, model, vendor) = match (entry.usage, of_message) {
            (Some(figures), _) => (figures, entry.model, entry.provider),
            (None, Some(message)) => match message.usage {
                Some(figures) => (figures, message.model, message.provider),
                None => return,
            },
            (None, None) => return,
        };
        let usage = figures.usage();
        // The CLI writes zeros for a failed request.
        if usage.total_tokens().unwrap_or(0) == 0 {
            return;
        }
        let at = entry.timestamp.as_deref();
        let at_parsed = at.and_then(|at| at.parse::<Timestamp>().ok());
        let (Some(time), Some(session)) = (at_parsed, &self.session) else {
            return sink.malformed(line);
        };
        if let Some(model) = model {
            let vendor = vendor.map(|vendor| self.vendor.of(&vendor));
            self.last = Some((self.model.of(&model), vendor));
        }
        let mut record = Record::new(Provider::Pi, session.clone(), time);
        record.key = entry
            .id
            .zip(at)
            .map(|(id, at)| Key::of(Provider::Pi, &[&id, at]));
        if let Some((model, vendor)) = &self.last {
            record.model = Some(model.clone());
            record.vendor.clone_from(vendor);
        }
        record.directory.clone_from(&self.directory);
        record.cost_usd = figures.cost_usd();
        record.cache_write_1h_tokens = figures.cache_write_1h;
        record.usage = usage;
        sink.record(record);
    }
}
