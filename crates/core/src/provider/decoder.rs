//! Decoding of a CLI's output to events.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::text::{excerpt, visible, without_colors};
use crate::{
    AgentError, AgentEvent, CostSource, ErrorKind, Id, LogEntry, ModelUsage, Notice, NoticeCode,
    NoticeLevel, NoticeSource, RawJson, Usage,
};

/// Turns the output of one run of one CLI into events.
///
/// A decoder is pure: it uses no clock and no I/O. It never fails: a line that it does not understand becomes
/// [`Events::unknown`] or [`Events::malformed`]. Every run has its own decoder.
pub trait Decoder: Send {
    /// Decodes one line, without its newline.
    ///
    /// Blank lines and lines that do not begin with `{` are not passed to this method, unless the decoder
    /// [takes text](Self::takes_text). [`RunAssembler`](crate::provider::RunAssembler) emits a notice for the latter.
    ///
    /// If such a line contains JSON objects ([`mixed_line`](crate::provider::mixed_line)), each of them is passed; so
    /// are those of a line that was [malformed](Events::malformed). A malformed line MUST leave the state as it was.
    fn line(&mut self, line: &[u8], out: &mut Events);

    /// Returns whether the CLI prints text. Then all lines except blank ones are passed to [`line`](Self::line).
    fn takes_text(&self) -> bool {
        false
    }

    /// Takes a line that does not begin with `{`, or text beside the JSON of a line. A notice was emitted for it.
    fn plain_line(&mut self, line: &[u8]) {
        let _ = line;
    }

    /// Ends the run, after the end of the output and of the process. May push events; returns the summary of the run.
    fn finish(&mut self, exit: &Exit, out: &mut Events) -> DecodedResult;

    /// Returns the files in which the CLI records data that it does not print, as soon as they are known. For a
    /// resumed session that is before the run, so that its earlier lines are not counted.
    fn record_files(&self) -> Option<RecordFiles> {
        None
    }

    /// Processes a new line of these files and returns the usage of the run so far if the line changes it. All lines
    /// are passed before [`finish`](Self::finish), some during the run.
    fn record_line(&mut self, line: &str) -> Option<Usage> {
        let _ = line;
        None
    }

    /// Returns the model that the lines of these files name, for a CLI whose output names none.
    fn recorded_model(&self) -> Option<String> {
        None
    }

    /// Announces that the process is about to be stopped or the turn to be interrupted. Later output may have another
    /// meaning.
    fn stop_requested(&mut self) {}

    /// Returns the activity after the CLI's own end of a turn. Unless it is [`Activity::None`], the engine keeps the
    /// process alive.
    fn activity(&self) -> Activity {
        Activity::None
    }

    /// Returns the part of stderr that explains a failure: without colors, and without lines that the CLI always
    /// writes.
    fn stderr_evidence<'a>(&self, stderr: &'a str) -> Cow<'a, str> {
        without_colors(stderr)
    }

    /// Classifies a failure by its exit code, if neither the output nor stderr explains it.
    fn classify_exit_code(&self, code: i32) -> Option<ErrorKind> {
        let _ = code;
        None
    }

    /// Classifies a failure that only stderr explains. The argument is the evidence.
    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        let _ = stderr;
        None
    }
}

/// Activity after the CLI's own end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activity {
    /// No activity: the process is about to end.
    None,
    /// The CLI waits for its work in the background.
    Background,
    /// The CLI waits for its work in the background within its turn, which ends only after that.
    Waiting,
    /// Another turn has begun, but has no event yet.
    Turn,
}

/// Files in which a CLI records data as JSON during a run: it appends lines, or writes a [list](Self::list) as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordFiles {
    /// The folder of the files. It need not exist before the run.
    pub folder: PathBuf,
    /// Paths in the folder. `*` matches any text within a name, once in each name.
    pub paths: Vec<String>,
    /// Only lines that contain one of these texts are passed on.
    pub containing: &'static [&'static str],
    /// The field whose list has the records, where each file is one JSON object that the CLI writes as a whole. Each new
    /// item is passed on as a line. `None`: the CLI appends lines.
    pub list: Option<&'static str>,
    /// Other files in the folder, which may belong to other sessions.
    pub others: Option<OtherRecordFiles>,
}

/// Files of which only some lines belong to a run, such as those of its sub-agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherRecordFiles {
    /// Paths, like [`RecordFiles::paths`]. Files that match those are excluded.
    pub paths: Vec<String>,
    /// Only lines that contain all of these texts are passed on.
    pub containing: Vec<String>,
}

impl RecordFiles {
    /// Creates the description of these files in a folder, to which lines are appended, without others.
    pub fn new(
        folder: impl Into<PathBuf>,
        paths: Vec<String>,
        containing: &'static [&'static str],
    ) -> Self {
        Self {
            folder: folder.into(),
            paths,
            containing,
            list: None,
            others: None,
        }
    }

    /// Sets the field whose list has the records.
    #[must_use]
    pub fn in_list(mut self, field: &'static str) -> Self {
        self.list = Some(field);
        self
    }
}

/// Output buffer for events of a decoder.
#[derive(Debug, Default)]
pub struct Events {
    pub(crate) items: Vec<AgentEvent>,
    /// The native lines of the first items, if they are requested.
    natives: Vec<Option<RawJson>>,
    pub(crate) malformed: u64,
    pub(crate) unknown: u64,
    /// Lines that no decoder can read. They count as malformed, although they are JSON.
    pub(crate) too_deep: u64,
    pub(crate) unfinished_calls: u64,
}

impl Events {
    /// Creates an empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an event, which may be given by its payload.
    pub fn push(&mut self, event: impl Into<AgentEvent>) {
        self.items.push(event.into());
    }

    /// Adds a notice.
    pub fn notice(&mut self, level: NoticeLevel, source: NoticeSource, message: impl Into<String>) {
        self.push(AgentEvent::notice(level, source, message));
    }

    /// Adds a notice with a code.
    pub fn coded_notice(
        &mut self,
        code: NoticeCode,
        level: NoticeLevel,
        source: NoticeSource,
        message: impl Into<String>,
    ) {
        self.push(Notice::new(level, source, message).code(code));
    }

    /// Adds a final error.
    pub fn error(&mut self, error: AgentError) {
        self.push(AgentEvent::error(error));
    }

    /// Adds an `unknown` event for a JSON line of a type that the decoder does not know. If the line is not JSON, it
    /// is [`malformed`](Self::malformed). One that is nested too deeply for readers of the event is a string there.
    pub fn unknown(&mut self, line: &[u8]) {
        match RawJson::from_bytes(line) {
            Ok(native) => {
                if RawJson::is_beyond_decoders(line) {
                    // Not of an unknown type, but no decoder can read it: it may be a call of a tool.
                    self.too_deep += 1;
                } else {
                    self.unknown += 1;
                }
                self.push(crate::Unknown { native });
            }
            Err(_) => self.malformed(line),
        }
    }

    /// Adds a notice for a line that is not valid JSON, or not the expected JSON.
    pub fn malformed(&mut self, line: &[u8]) {
        self.malformed += 1;
        self.notice(
            NoticeLevel::Warning,
            NoticeSource::Stdout,
            format!(
                "not a JSON event: {}",
                excerpt(&visible(&String::from_utf8_lossy(line)), 4096)
            ),
        );
    }

    /// Counts a tool call that the model began to write and that never came. It may have run, so the prompt is not sent
    /// again by itself.
    pub fn unfinished_call(&mut self) {
        self.unfinished_calls += 1;
    }

    /// Returns the number of events.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the events.
    pub fn as_slice(&self) -> &[AgentEvent] {
        &self.items
    }

    /// Removes and returns the events. Keeps the allocated memory.
    pub fn drain(&mut self) -> impl ExactSizeIterator<Item = AgentEvent> + '_ {
        self.natives.clear();
        self.items.drain(..)
    }

    /// Removes and returns the events as entries with this time and their native lines.
    pub fn drain_entries(&mut self, at_ms: u64) -> impl ExactSizeIterator<Item = LogEntry> + '_ {
        let mut natives = self.natives.drain(..);
        self.items.drain(..).map(move |event| LogEntry {
            at_ms,
            native: natives.next().flatten(),
            ..LogEntry::from(event)
        })
    }

    /// Returns the approximate size of the events as entries in memory, in bytes.
    pub fn approximate_bytes(&self) -> usize {
        let natives = self.natives.iter().flatten();
        let natives: usize = natives.map(|line| line.get().len()).sum();
        let entry = size_of::<LogEntry>() - size_of::<AgentEvent>();
        let events = self.items.iter();
        natives
            + events
                .map(|event| event.approximate_bytes() + entry)
                .sum::<usize>()
    }

    /// Adds the events of `more`, which have no native lines yet, and its counts.
    pub(crate) fn append(&mut self, more: Self) {
        self.items.extend(more.items);
        self.malformed += more.malformed;
        self.unknown += more.unknown;
        self.too_deep += more.too_deep;
        self.unfinished_calls += more.unfinished_calls;
    }

    /// Adds an event with its native line.
    pub(crate) fn push_entry(&mut self, entry: LogEntry) {
        let from = self.items.len();
        self.items.push(entry.event);
        if let Some(native) = entry.native {
            self.set_native(from, &native);
        }
    }

    /// Sets the native line of the events since `from`, except of `unknown` and `done`.
    pub(crate) fn set_native(&mut self, from: usize, line: &RawJson) {
        self.natives.resize(from, None);
        self.natives.extend(self.items[from..].iter().map(|event| {
            let has_it = matches!(event, AgentEvent::Unknown(_) | AgentEvent::Done(_));
            (!has_it).then(|| line.clone())
        }));
    }
}

/// Exit of a process.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exit {
    /// The exit code, if the process exited.
    pub code: Option<i32>,
    /// Name of the signal that ended the process, such as `SIGKILL`.
    pub signal: Option<String>,
    /// The end of its standard error.
    pub stderr: String,
    /// Reason why the process was stopped from outside, if it was.
    pub stop: Option<Stop>,
    /// Lines that the CLI added to its record files during the run ([`Decoder::record_files`]) and that were not
    /// passed to the decoder before.
    pub record: Vec<String>,
}

impl Exit {
    /// Creates the exit of a process that exited with this code.
    pub fn new(code: i32) -> Self {
        Self {
            code: Some(code),
            ..Self::default()
        }
    }

    /// Returns whether the process failed: a code other than 0, or a signal.
    pub fn is_failure(&self) -> bool {
        self.code != Some(0)
    }
}

/// Reason for stopping a process from outside.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Stop {
    /// The caller aborted the run.
    Aborted,
    /// A time limit was reached; the error names it.
    Timeout(AgentError),
    /// The run could not continue for another reason.
    Failed(AgentError),
    /// The output had ended, but the process did not end by itself.
    Lingering,
}

/// A decoder's summary of a run at its end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DecodedResult {
    /// Set if the CLI reported the end of the run: `Some(true)` if it reported a failure.
    pub ended_with_error: Option<bool>,
    /// The answer, if it differs from the text of the last message.
    pub final_message: Option<String>,
    /// The session.
    pub session_id: Option<Id>,
    /// The model.
    pub model: Option<String>,
    /// Time spent in requests to the model, in milliseconds.
    pub api_duration_ms: Option<u64>,
    /// Usage of this run.
    pub usage: Option<Usage>,
    /// Usage of the session in total.
    pub session_usage: Option<Usage>,
    /// Usage by model.
    pub usage_by_model: BTreeMap<String, ModelUsage>,
    /// Cost in USD and its source.
    pub cost: Option<(f64, CostSource)>,
    /// Number of turns, as the CLI counts them.
    pub num_turns: Option<u32>,
    /// Reason why the model stopped.
    pub stop_reason: Option<String>,
    /// The answer in the shape of the output schema.
    pub structured_output: Option<Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_0_is_no_failure() {
        for (code, failed) in [(Some(0), false), (Some(1), true), (None, true)] {
            let exit = Exit {
                code,
                ..Exit::default()
            };
            assert_eq!(exit.is_failure(), failed, "{code:?}");
        }
    }

    #[test]
    fn lines_are_counted_as_unknown_too_deep_or_malformed() {
        let mut out = Events::new();
        assert!(out.is_empty());
        out.unknown(br#"{"type": "new"}"#);
        assert_eq!(
            (out.unknown, out.too_deep, out.malformed, out.len()),
            (1, 0, 0, 1)
        );
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        out.unknown(deep.as_bytes());
        assert_eq!(
            (out.unknown, out.too_deep, out.malformed, out.len()),
            (1, 1, 0, 2)
        );
        out.unknown(b"no JSON");
        assert_eq!(
            (out.unknown, out.too_deep, out.malformed, out.len()),
            (1, 1, 1, 3)
        );
        out.unfinished_call();
        let mut all = Events::new();
        all.unknown(b"{}");
        all.append(out);
        assert_eq!(
            (all.unknown, all.too_deep, all.malformed, all.len()),
            (2, 1, 1, 4)
        );
        assert_eq!(all.unfinished_calls, 1);
        assert!(!all.is_empty());
    }

    #[test]
    fn entries_have_their_lines_and_the_size_of_the_events() {
        let native = RawJson::new(r#"{"a": 1}"#.to_owned()).unwrap();
        let notice = |text: &str| AgentEvent::notice(NoticeLevel::Info, NoticeSource::Stdout, text);
        let mut out = Events::new();
        out.push(notice("none"));
        let mut entry = LogEntry::from(notice("with a line"));
        entry.native = Some(native.clone());
        out.push_entry(entry);
        out.push(notice("none again"));
        out.unknown(br#"{"b": 2}"#);
        out.set_native(2, &native);
        let bytes = out.approximate_bytes();
        let entries: Vec<_> = out.drain_entries(7).collect();
        let natives: Vec<_> = entries.iter().map(|it| it.native.is_some()).collect();
        // An unknown event has its own line.
        assert_eq!(natives, [false, true, true, false]);
        assert!(entries.iter().all(|it| it.at_ms == 7));
        let sum: usize = entries.iter().map(LogEntry::approximate_bytes).sum();
        assert_eq!(bytes, sum);
        let lines: usize = entries
            .iter()
            .flat_map(|it| &it.native)
            .map(|it| it.get().len())
            .sum();
        assert_eq!(lines, 16);
        assert!(out.is_empty());
    }
}
