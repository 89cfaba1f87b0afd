//! Sessions of `teamster`'s own model loop: `sessions/<session>.ndjson`.
//!
//! Each request has a line with its usage, in the workspace's own form. A forked session begins with the messages of
//! the other one, without those lines.

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
use crate::source::{Shared, Sink, Source, Sources};
use crate::{Key, Provider, Record};

pub(crate) const TRAITS: Traits = Traits::NONE;

/// Part of lines with figures, and of the first line of a session.
static USAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"type\":\"usage\""));
static SESSION: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"type\":\"session\""));

/// Adds all sessions, or the requested one.
pub(crate) fn sources(locations: &Locations, found: &mut Sources) {
    let Some(folder) = &locations.embedded_sessions else {
        return;
    };
    let session = found.session.clone();
    found.walk(Provider::Embedded, folder, 1, |path| {
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        path.extension().is_some_and(|it| it == "ndjson")
            && (session.is_none() || stem == session.as_deref())
    });
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Entry<'a> {
    Session {
        #[serde(borrow)]
        id: Cow<'a, str>,
        #[serde(borrow)]
        directory: Cow<'a, str>,
    },
    #[serde(rename_all = "camelCase")]
    Usage {
        at_ms: i64,
        /// Name with a prefix for the service: `openai/gpt-5.1`.
        #[serde(borrow)]
        model: Cow<'a, str>,
        usage: Usage,
    },
    #[serde(other)]
    Other,
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
}

impl Reader {
    fn line(&mut self, line: Line<'_>, sink: &mut Sink<'_>) {
        if USAGE.find(line.bytes).is_none() && SESSION.find(line.bytes).is_none() {
            return;
        }
        let Ok(entry) = serde_json::from_slice::<Entry<'_>>(line.bytes) else {
            return sink.malformed(line);
        };
        match entry {
            Entry::Session { id, directory } => {
                self.session = Some(id.as_ref().into());
                self.directory = Some(directory.as_ref().into());
            }
            Entry::Usage {
                at_ms,
                model,
                usage,
            } => {
                let time = Timestamp::from_millisecond(at_ms).ok();
                let (Some(time), Some(session)) = (time, &self.session) else {
                    return sink.malformed(line);
                };
                let mut record = Record::new(Provider::Embedded, session.clone(), time);
                let figures = format!("{at_ms} {usage:?}");
                record.key = Some(Key::of(Provider::Embedded, &[session, &model, &figures]));
                let (vendor, name) = match model.split_once('/') {
                    Some((vendor, name)) => (Some(vendor), name),
                    None => (None, &*model),
                };
                record.model = Some(self.model.of(name));
                record.vendor = vendor.map(|vendor| self.vendor.of(vendor));
                record.directory.clone_from(&self.directory);
                record.usage = usage;
                sink.record(record);
            }
            Entry::Other => {}
        }
    }
}
