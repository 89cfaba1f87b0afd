//! The CLI's record of a session. The CLI prints figures only at the end of a run.
//!
//! A session is in `tmp/<project>/chats/session-<time>-<begin of its id>.jsonl` in the CLI's folder, a sub-agent's in
//! `tmp/<project>/chats/<session>/<id>.jsonl`. An answer that calls tools is written a second time with their
//! results, under the same id. An imported session begins with copies of another session's messages, which are older
//! than the session.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;
use teamster_core::Usage;
use teamster_core::provider::{RecordFiles, is_uuid};

/// Texts in the relevant lines: figures, and the start of a session.
const FIGURES: &[&str] = &["\"tokens\":", "\"projectHash\":"];

/// Length of the part of a session's id in the name of its file.
const SHORT: usize = 8;

pub(crate) fn files(projects: &Path, session: &str) -> Option<RecordFiles> {
    if !is_uuid(session) {
        return None;
    }
    let short = &session[..SHORT];
    let paths = vec![
        format!("*/chats/session-*-{short}.jsonl"),
        format!("*/chats/{session}/*.jsonl"),
    ];
    Some(RecordFiles::new(projects, paths, FIGURES))
}

/// Usage of a run, from the new lines of its session's files.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    /// Start time of the session.
    begun: Option<String>,
    /// Usage of each answer, by its id.
    answers: HashMap<String, Usage>,
}

/// The start of a session, a message, or a change of earlier messages.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
struct Line<'a> {
    start_time: Option<Cow<'a, str>>,
    #[serde(rename = "$set")]
    set: Option<Set<'a>>,
    // Fields of a message. They are not a flattened struct, for which each line would be copied.
    id: Option<Cow<'a, str>>,
    timestamp: Option<Cow<'a, str>>,
    tokens: Option<Tokens>,
}

#[derive(Deserialize)]
struct Set<'a> {
    #[serde(default, borrow)]
    messages: Vec<Message<'a>>,
}

#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
struct Message<'a> {
    id: Option<Cow<'a, str>>,
    timestamp: Option<Cow<'a, str>>,
    tokens: Option<Tokens>,
}

/// Token counts. `cached` is a part of `input`. `thoughts` are not part of `output`, and `tool`, the input from the
/// service's own tools, is not part of `input`.
#[derive(Deserialize)]
struct Tokens {
    input: Option<u64>,
    output: Option<u64>,
    cached: Option<u64>,
    thoughts: Option<u64>,
    tool: Option<u64>,
}

impl Tokens {
    fn usage(&self) -> Usage {
        let and = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b.unwrap_or(0)));
        let cached = self.cached.unwrap_or(0);
        let uncached = self.input.map(|input| input.saturating_sub(cached));
        Usage::default()
            .input_tokens(and(uncached, self.tool))
            .output_tokens(and(self.output, self.thoughts))
            .cache_read_tokens(self.cached)
            .reasoning_tokens(self.thoughts.filter(|tokens| *tokens > 0))
    }
}

impl Recorded {
    /// Handles a line. Returns the run's usage so far if the line has figures.
    pub(crate) fn line(&mut self, line: &str) -> Option<Usage> {
        let line: Line<'_> = serde_json::from_str(line).ok()?;
        if let Some(begun) = line.start_time {
            self.begun.get_or_insert(begun.into_owned());
        }
        let message = Message {
            id: line.id,
            timestamp: line.timestamp,
            tokens: line.tokens,
        };
        let changed = line.set.map(|set| set.messages).unwrap_or_default();
        let mut news = false;
        for message in std::iter::once(message).chain(changed) {
            news |= self.message(message).is_some();
        }
        if news { self.usage() } else { None }
    }

    fn message(&mut self, message: Message<'_>) -> Option<()> {
        let usage = message.tokens?.usage();
        let id = message.id?;
        // All times have the same form, in UTC.
        let copied = self.begun.as_deref().zip(message.timestamp.as_deref());
        if copied.is_some_and(|(begun, at)| at < begun) {
            return None;
        }
        let before = self.answers.insert(id.into_owned(), usage);
        (before != Some(usage)).then_some(())
    }

    /// Returns the usage of the run.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let answers = self.answers.values().copied();
        answers
            .reduce(Usage::plus)
            .filter(|usage| !usage.is_empty())
    }
}

#[cfg(test)]
#[cfg(repository)] // recordings
#[path = "decoder/tests/transcript.rs"]
mod tests;
