//! The used fields of a rollout's lines.

use std::borrow::Cow;
use std::sync::LazyLock;

use jiff::Timestamp;
use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::value::RawValue;
use teamster_core::Usage;

/// Maximum distance of a line's type from its start, in bytes.
const HEAD: usize = 256;

static TYPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"type\""));

/// Kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Description of the thread.
    Meta,
    /// Start of a turn.
    Started,
    /// Settings of the turn: model and directory.
    Context,
    /// Settings of the following turns.
    Settings,
    /// Usage of a request.
    Used,
    /// The total of the thread, and the usage of its last request.
    Count,
}

impl Kind {
    /// Returns the kind of a line by its start, or `None` for a kind that is not used.
    pub(super) fn of(line: &[u8]) -> Option<Self> {
        let head = &line[..line.len().min(HEAD)];
        let (kind, rest) = next_type(head)?;
        match kind {
            b"session_meta" => Some(Self::Meta),
            b"turn_context" => Some(Self::Context),
            b"token_usage_record" => Some(Self::Used),
            b"event_msg" => match next_type(rest)?.0 {
                b"task_started" => Some(Self::Started),
                b"thread_settings_applied" => Some(Self::Settings),
                b"token_count" => Some(Self::Count),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Returns the next type in a text, and the rest of the text.
fn next_type(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = text[TYPE.find(text)? + TYPE.needle().len()..].trim_ascii_start();
    let text = rest.strip_prefix(b":")?.trim_ascii_start();
    let text = text.strip_prefix(b"\"")?;
    let end = memchr::memchr(b'"', text)?;
    Some((&text[..end], &text[end..]))
}

/// A line with its time and payload.
#[derive(Debug, Deserialize)]
pub(super) struct Wrapped<'a, T> {
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    pub(super) payload: T,
}

impl<T> Wrapped<'_, T> {
    /// Returns the time of the line.
    pub(super) fn at(&self) -> Option<Timestamp> {
        self.timestamp.parse().ok()
    }
}

pub(super) fn parse<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Option<Wrapped<'a, T>> {
    serde_json::from_slice(line).ok()
}

#[derive(Debug, Deserialize)]
#[serde(bound = "'de: 'a")]
pub(super) struct Meta<'a> {
    #[serde(borrow)]
    pub(super) id: Cow<'a, str>,
    pub(super) session_id: Option<Cow<'a, str>>,
    pub(super) forked_from_id: Option<Cow<'a, str>>,
    parent_thread_id: Option<Cow<'a, str>>,
    /// Storage mode of the history. Versions with another mode than `legacy` write records.
    pub(super) history_mode: Option<Cow<'a, str>>,
    pub(super) cwd: Option<Cow<'a, str>>,
    /// A string, or for a sub-agent an object.
    source: Option<&'a RawValue>,
}

impl Meta<'_> {
    /// Returns the thread that started this one, if it is a sub-agent's.
    pub(super) fn parent(&self) -> Option<&str> {
        let source = self.source.map_or("", RawValue::get);
        let subagent = source.starts_with('{') && source.contains("\"subagent\"");
        if !subagent {
            return None;
        }
        self.parent_thread_id
            .as_deref()
            .or(self.session_id.as_deref())
            .or(self.forked_from_id.as_deref())
            .or(Some(&self.id))
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Started<'a> {
    #[serde(borrow)]
    pub(super) turn_id: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound = "'de: 'a")]
pub(super) struct Context<'a> {
    pub(super) turn_id: Option<Cow<'a, str>>,
    pub(super) model: Option<Cow<'a, str>>,
    pub(super) cwd: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Settings<'a> {
    #[serde(borrow)]
    pub(super) thread_settings: ThreadSettings<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(bound = "'de: 'a")]
pub(super) struct ThreadSettings<'a> {
    pub(super) model: Option<Cow<'a, str>>,
    pub(super) service_tier: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound = "'de: 'a")]
pub(super) struct Used<'a> {
    pub(super) thread_id: Option<Cow<'a, str>>,
    pub(super) session_id: Option<Cow<'a, str>>,
    pub(super) turn_id: Option<Cow<'a, str>>,
    pub(super) response_id: Option<Cow<'a, str>>,
    pub(super) usage: Option<Tokens>,
    pub(super) thread_token_usage: Option<Tokens>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Count {
    /// `null` if only limits are reported.
    pub(super) info: Option<Info>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Info {
    pub(super) total_token_usage: Option<Tokens>,
    pub(super) last_token_usage: Option<Tokens>,
}

/// The service's figures. Input includes cache reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct Tokens {
    #[serde(rename = "input_tokens")]
    input: Option<u64>,
    #[serde(rename = "cached_input_tokens")]
    cached: Option<u64>,
    #[serde(rename = "cache_write_input_tokens")]
    written: Option<u64>,
    #[serde(rename = "output_tokens")]
    output: Option<u64>,
    #[serde(rename = "reasoning_output_tokens")]
    reasoning: Option<u64>,
}

impl Tokens {
    fn figures(&self) -> [Option<u64>; 5] {
        [
            self.input,
            self.cached,
            self.written,
            self.output,
            self.reasoning,
        ]
    }

    /// Returns whether two totals are equal. A version may report a figure that another one omits.
    pub(super) fn same(&self, other: &Self) -> bool {
        let figures = |tokens: &Self| tokens.figures().map(Option::unwrap_or_default);
        figures(self) == figures(other)
    }

    /// Returns the difference to an earlier total, or `None` if a figure is smaller.
    pub(super) fn minus(&self, earlier: &Self) -> Option<Self> {
        let part = |now: Option<u64>, then: Option<u64>| match now {
            Some(now) => now.checked_sub(then.unwrap_or(0)).map(Some),
            None => Some(None),
        };
        Some(Self {
            input: part(self.input, earlier.input)?,
            cached: part(self.cached, earlier.cached)?,
            written: part(self.written, earlier.written)?,
            output: part(self.output, earlier.output)?,
            reasoning: part(self.reasoning, earlier.reasoning)?,
        })
    }

    /// Returns the figures as text, to distinguish totals.
    pub(super) fn text(&self) -> String {
        let figures = self.figures().map(Option::unwrap_or_default);
        figures.map(|figure| figure.to_string()).join(",")
    }

    /// Converts the figures. The result is empty if all of them are 0.
    pub(super) fn usage(&self) -> Usage {
        if self.figures().iter().all(|figure| figure.unwrap_or(0) == 0) {
            return Usage::default();
        }
        Usage::default()
            .input_tokens(self.input)
            .output_tokens(self.output)
            .cache_read_tokens(self.cached)
            .cache_write_tokens(self.written)
            .reasoning_tokens(self.reasoning)
            .without_cache_in_input()
    }
}
