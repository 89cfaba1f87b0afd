//! Copilot's sessions: `session-state/<session>/events.jsonl`.
//!
//! A `session.usage_record` reports each request as soon as it is made, including those of sub-agents. At the end of a
//! process a `session.shutdown` reports sums. They cover the life of the session, as the line shows with which the
//! process resumed it. Up to version 1.0.65 they cover only the process. Versions up to about 1.0.92 write no records.
//! For them the usage of a process is the sum, or its difference to the previous one. The usage of a killed process is
//! unknown.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::value::RawValue;
use teamster_core::Usage;

use crate::lines::Line;
use crate::locations::Locations;
use crate::provider::Traits;
use crate::source::{Shared, Sink, Source, Sources};
use crate::{Key, Provider, Record};

pub(crate) const TRAITS: Traits = Traits {
    premium_requests: true,
    ..Traits::NONE
};

/// Part of lines that count.
static SESSION: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"session."));
/// Part of a line that shows a request to a model.
static TURN: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"assistant.message\""));

/// Name of a session's file.
const EVENTS: &str = "events.jsonl";

/// Adds the files of all sessions, or of the requested one. Sub-agents are in the file of their session.
pub(crate) fn sources(locations: &Locations, found: &mut Sources) {
    let Some(home) = &locations.copilot else {
        return;
    };
    let sessions = home.join("session-state");
    let Some(session) = &found.session else {
        found.walk(Provider::Copilot, &sessions, 2, |path| {
            path.file_name().is_some_and(|name| name == EVENTS)
        });
        return;
    };
    let file = sessions.join(session).join(EVENTS);
    if let Ok(metadata) = file.metadata() {
        found.add(Provider::Copilot, file, &metadata);
    }
}

/// A line. The type determines the form of `data`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
struct Entry<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    id: Option<Cow<'a, str>>,
    timestamp: Option<Cow<'a, str>>,
    agent_id: Option<Cow<'a, str>>,
    data: Option<&'a RawValue>,
}

/// The data of `session.start` and `session.resume`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
struct Begun<'a> {
    session_id: Option<Cow<'a, str>>,
    context: Option<Context<'a>>,
    /// True in versions whose sums cover the session's life. The field is present even without a limit.
    #[serde(default, rename = "sessionLimits", deserialize_with = "is_there")]
    has_limits: bool,
}

/// Returns `true` for any value, including `null`.
fn is_there<'de, D: serde::Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
    serde::de::IgnoredAny::deserialize(value).map(|_| true)
}

#[derive(Deserialize)]
struct Context<'a> {
    #[serde(borrow)]
    cwd: Option<Cow<'a, str>>,
}

/// The data of `session.usage_record`.
#[derive(Deserialize)]
struct Used<'a> {
    #[serde(borrow)]
    usage: Call<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
struct Call<'a> {
    model: Option<Cow<'a, str>>,
    /// As of all services: the input includes cache reads and writes.
    #[serde(flatten)]
    tokens: Usage,
    /// Cost in premium requests.
    cost: Option<f64>,
    accounting: Option<Accounting<'a>>,
}

/// The id of a request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Accounting<'a> {
    #[serde(borrow)]
    source_session_id: Cow<'a, str>,
    sequence: u64,
    #[serde(borrow)]
    usage_id: Cow<'a, str>,
}

/// The data of `session.shutdown`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shutdown {
    // Ordered by the models' names, so that reading a file twice gives the same result.
    #[serde(default)]
    model_metrics: BTreeMap<String, Metrics>,
}

#[derive(Deserialize)]
struct Metrics {
    requests: Requests,
    usage: Usage,
}

#[derive(Deserialize)]
struct Requests {
    #[serde(default)]
    count: u64,
    /// Cost in premium requests.
    #[serde(default)]
    cost: f64,
}

/// Known usage of a model in a session.
#[derive(Clone, Copy, Default)]
struct Known {
    tokens: Usage,
    requests: u64,
    premium: f64,
}

impl Known {
    /// Returns the difference of a total to the known usage, or `None` if the total cannot include it.
    fn new_in(&self, total: &Self) -> Option<Self> {
        Some(Self {
            tokens: total.tokens.checked_since(self.tokens)?,
            requests: total.requests.checked_sub(self.requests)?,
            premium: (total.premium - self.premium).max(0.0),
        })
    }

    fn is_nothing(&self) -> bool {
        // A remainder of sums of fractions counts as 0.
        self.requests == 0 && self.tokens.is_zero() && self.premium < 1e-9
    }
}

/// Reads a session's file.
pub(crate) fn read(source: &Source, sink: &mut Sink<'_>) -> io::Result<()> {
    let folder = source.path.parent().and_then(Path::file_name);
    let mut reader = Reader {
        session: folder.and_then(|name| name.to_str()).map(Arc::from),
        ..Reader::default()
    };
    source.lines(sink, |line, sink| reader.line(line, sink))?;
    reader.end_of_process();
    if reader.without_figures {
        sink.diagnostics.sessions_without_figures += 1;
    }
    Ok(())
}

/// State between lines.
#[derive(Default)]
struct Reader {
    /// The name of the folder until the file names the session.
    session: Option<Arc<str>>,
    directory: Option<Arc<str>>,
    model: Shared,
    /// Counted usage of each model.
    known: HashMap<String, Known>,
    /// True if the process has made a request to a model.
    asked: bool,
    /// True if the process has reported a request.
    recorded: bool,
    /// True if a process ended without reporting its usage.
    without_figures: bool,
}

impl Reader {
    fn line(&mut self, line: Line<'_>, sink: &mut Sink<'_>) {
        if SESSION.find(line.bytes).is_none() {
            self.asked = self.asked || TURN.find(line.bytes).is_some();
            return;
        }
        let Ok(entry) = serde_json::from_slice::<Entry<'_>>(line.bytes) else {
            sink.malformed(line);
            return;
        };
        let understood = match (&*entry.r#type, entry.data) {
            ("session.start" | "session.resume", Some(data)) => self.begin(data),
            ("session.usage_record", Some(data)) => self.request(&entry, data, sink),
            ("session.shutdown", Some(data)) => self.shutdown(&entry, data, sink),
            ("assistant.message", _) => {
                self.asked = true;
                Some(())
            }
            _ => Some(()),
        };
        if understood.is_none() {
            sink.malformed(line);
        }
    }

    fn begin(&mut self, data: &RawValue) -> Option<()> {
        self.end_of_process();
        let begun: Begun<'_> = serde_json::from_str(data.get()).ok()?;
        if !begun.has_limits {
            // The sums of this process start over.
            self.known.clear();
        }
        if let Some(session) = begun.session_id {
            self.session = Some(session.as_ref().into());
        }
        if let Some(cwd) = begun.context.and_then(|context| context.cwd) {
            self.directory = Some(cwd.as_ref().into());
        }
        Some(())
    }

    fn end_of_process(&mut self) {
        self.without_figures |= self.asked && !self.recorded;
        self.asked = false;
        self.recorded = false;
    }

    fn request(&mut self, entry: &Entry<'_>, data: &RawValue, sink: &mut Sink<'_>) -> Option<()> {
        let used: Used<'_> = serde_json::from_str(data.get()).ok()?;
        let call = used.usage;
        let mut record = self.record(entry, call.model.as_deref()?, call.tokens)?;
        record.key = match (&call.accounting, &entry.id) {
            (Some(known), _) => {
                let sequence = known.sequence.to_string();
                let ids = [&*known.source_session_id, &*sequence, &*known.usage_id];
                Some(Key::of(Provider::Copilot, &ids))
            }
            (None, Some(id)) => Some(Key::of(Provider::Copilot, &[id])),
            (None, None) => None,
        };
        record.premium_requests = call.cost;
        record.subagent = entry.agent_id.is_some();
        // A sub-agent's requests are counted under its own id.
        let source = call
            .accounting
            .as_ref()
            .map(|known| &*known.source_session_id);
        let is_own = |source| record.subagent || source == &*record.session;
        record.copied = !source.is_none_or(is_own);
        sink.record(record);
        let known = self.known.entry(call.model?.into_owned()).or_default();
        known.tokens = known.tokens.plus(call.tokens);
        known.requests += 1;
        known.premium += call.cost.unwrap_or(0.0);
        self.recorded = true;
        Some(())
    }

    fn shutdown(&mut self, entry: &Entry<'_>, data: &RawValue, sink: &mut Sink<'_>) -> Option<()> {
        let shutdown: Shutdown = serde_json::from_str(data.get()).ok()?;
        for (model, metrics) in shutdown.model_metrics {
            let total = Known {
                tokens: metrics.usage,
                requests: metrics.requests.count,
                premium: metrics.requests.cost,
            };
            let known = self.known.get(&model).copied().unwrap_or_default();
            let new = known.new_in(&total);
            let goes_on = new.is_some();
            let new = match new {
                Some(new) => new,
                // The requests themselves are counted, and the sum lacks some of them.
                None if self.recorded => Known {
                    premium: total.premium - known.premium,
                    ..Known::default()
                },
                // The sum started over.
                None => total,
            };
            if !new.is_nothing() {
                let mut record = self.record(entry, &model, new.tokens)?;
                if new.tokens.is_zero() {
                    // Only premium requests that the records lacked.
                    record.usage = Usage::default();
                }
                record.key =
                    (entry.id.as_deref()).map(|id| Key::of(Provider::Copilot, &[id, &model]));
                record.premium_requests = Some(new.premium);
                record.requests = new.requests;
                record.sum = new.requests != 1;
                sink.record(record);
            }
            // Missing figures are taken from the previous sum only if the sum continues.
            let tokens = if goes_on {
                known.tokens.plus(new.tokens)
            } else {
                total.tokens
            };
            self.known.insert(model, Known { tokens, ..total });
        }
        self.asked = false;
        Some(())
    }

    fn record(&mut self, entry: &Entry<'_>, model: &str, tokens: Usage) -> Option<Record> {
        let at = entry.timestamp.as_deref()?.parse::<Timestamp>().ok()?;
        let mut record = Record::new(Provider::Copilot, self.session.clone()?, at);
        record.model = Some(self.model.of(model));
        record.directory.clone_from(&self.directory);
        record.usage = tokens.without_cache_in_input();
        Some(record)
    }
}

#[cfg(test)]
mod tests;
