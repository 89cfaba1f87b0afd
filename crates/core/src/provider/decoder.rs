//! From the lines of one CLI to events.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::text::{excerpt, without_colors};
use crate::{
    AgentError, AgentEvent, CostSource, ErrorKind, Id, LogEntry, ModelUsage, NoticeLevel,
    NoticeSource, RawJson, Usage,
};

/// Turns the output of one run of one CLI into events.
///
/// A decoder is pure: no clock, no I/O. It never fails: what it does not understand becomes
/// [`Events::unknown`] or [`Events::malformed`]. A new one is made for every run.
pub trait Decoder: Send {
    /// Takes one line, without its newline. Blank lines and lines that do not begin with `{` never
    /// get here unless it [takes text](Self::takes_text): [`RunAssembler`](crate::provider::RunAssembler)
    /// makes notices of the latter.
    fn line(&mut self, line: &[u8], out: &mut Events);

    /// The CLI prints text: all lines get to [`line`](Self::line). The engine skips blank ones.
    fn takes_text(&self) -> bool {
        false
    }

    /// Takes a line that does not begin with `{`, of which a notice was made.
    fn plain_line(&mut self, line: &[u8]) {
        let _ = line;
    }

    /// The output has ended and the process is gone. May still push events; returns the summary of the run.
    fn finish(&mut self, exit: &Exit, out: &mut Events) -> RunSummary;

    /// The files in which the CLI records what it does not print, as soon as they are known: before the
    /// run for a session that is resumed, so that its earlier lines do not count.
    fn record_files(&self) -> Option<RecordFiles> {
        None
    }

    /// Processes a new line of these files; returns the usage of the run so far if the line
    /// changes it. All lines come before [`finish`](Self::finish), some during the run.
    fn record_line(&mut self, line: &str) -> Option<Usage> {
        let _ = line;
        None
    }

    /// The process is about to be stopped, or the turn to be interrupted: what the CLI prints from now on may
    /// mean something else.
    fn stop_requested(&mut self) {}

    /// Activity after the CLI's own end of a turn. Unless it is [`Activity::None`], the engine
    /// leaves the process alive.
    fn activity(&self) -> Activity {
        Activity::None
    }

    /// The part of stderr that explains a failure: without the lines that the CLI writes
    /// whether it fails or not, and without colours.
    fn stderr_evidence<'a>(&self, stderr: &'a str) -> Cow<'a, str> {
        without_colors(stderr)
    }

    /// Classifies by exit code a failure that neither the output nor stderr explains.
    fn classify_exit_code(&self, code: i32) -> Option<ErrorKind> {
        let _ = code;
        None
    }

    /// Classifies a failure that is only explained on stderr. The argument is the evidence.
    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        let _ = stderr;
        None
    }
}

/// Activity after the CLI's own end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activity {
    /// Nothing: the process is about to end.
    None,
    /// It waits for work that it put in the background.
    Background,
    /// Another turn has begun, though it has no event yet.
    Turn,
}

/// Files to which a CLI appends lines of JSON as it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordFiles {
    /// The folder that holds them. It need not be there before the run.
    pub folder: PathBuf,
    /// Their paths in it. A `*` stands for any text within a name, once in each name.
    pub paths: Vec<String>,
    /// Only lines that hold one of these texts are given.
    pub containing: &'static [&'static str],
    /// Other files in the folder, which may belong to other sessions.
    pub others: Option<OtherRecordFiles>,
}

/// Files of which only single lines belong to a run, such as those of its sub-agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherRecordFiles {
    /// Their paths, like [`RecordFiles::paths`]. A file that those name is none of these.
    pub paths: Vec<String>,
    /// Only lines that hold all of these texts are given.
    pub containing: Vec<String>,
}

impl RecordFiles {
    /// These files in a folder, and no others.
    pub fn new(
        folder: impl Into<PathBuf>,
        paths: Vec<String>,
        containing: &'static [&'static str],
    ) -> Self {
        Self {
            folder: folder.into(),
            paths,
            containing,
            others: None,
        }
    }
}

/// Output buffer for events of a decoder.
#[derive(Debug, Default)]
pub struct Events {
    pub(crate) items: Vec<AgentEvent>,
    /// The lines that the first of them came from, where these are wanted.
    natives: Vec<Option<RawJson>>,
    pub(crate) malformed: u64,
    pub(crate) unknown: u64,
}

impl Events {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an event.
    pub fn push(&mut self, event: AgentEvent) {
        self.items.push(event);
    }

    /// Adds a notice.
    pub fn notice(&mut self, level: NoticeLevel, source: NoticeSource, message: impl Into<String>) {
        self.push(AgentEvent::notice(level, source, message));
    }

    /// Adds a final error.
    pub fn error(&mut self, error: AgentError) {
        self.push(AgentEvent::error(error));
    }

    /// A JSON line of a type that the decoder does not know. If it is no JSON after all, it is
    /// [`malformed`](Self::malformed).
    pub fn unknown(&mut self, line: &[u8]) {
        match RawJson::from_bytes(line) {
            Ok(native) => {
                self.unknown += 1;
                self.push(AgentEvent::Unknown(crate::Unknown { native }));
            }
            Err(_) => self.malformed(line),
        }
    }

    /// A line that is not the JSON it should be.
    pub fn malformed(&mut self, line: &[u8]) {
        self.malformed += 1;
        self.notice(
            NoticeLevel::Warning,
            NoticeSource::Stdout,
            format!(
                "not a JSON event: {}",
                excerpt(&String::from_utf8_lossy(line), 4096)
            ),
        );
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The events so far.
    pub fn as_slice(&self) -> &[AgentEvent] {
        &self.items
    }

    /// Takes the events out and leaves the list empty, with its memory.
    pub fn drain(&mut self) -> impl ExactSizeIterator<Item = AgentEvent> + '_ {
        self.natives.clear();
        self.items.drain(..)
    }

    /// Like [`drain`](Self::drain), as entries of this time with the lines they came from.
    pub fn drain_entries(&mut self, at_ms: u64) -> impl ExactSizeIterator<Item = LogEntry> + '_ {
        let mut natives = self.natives.drain(..);
        self.items.drain(..).map(move |event| LogEntry {
            at_ms,
            native: natives.next().flatten(),
            ..LogEntry::from(event)
        })
    }

    /// About how many bytes of memory the events hold as entries.
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

    /// Adds an event with the line it came from.
    pub(crate) fn push_entry(&mut self, entry: LogEntry) {
        let from = self.items.len();
        self.items.push(entry.event);
        if let Some(native) = entry.native {
            self.set_native(from, &native);
        }
    }

    /// Gives the events since `from` the line that they came from. `unknown` has it already.
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
    /// Its exit code, if it exited.
    pub code: Option<i32>,
    /// The name of the signal that ended it, such as `SIGKILL`.
    pub signal: Option<String>,
    /// The end of its standard error.
    pub stderr: String,
    /// Why it was stopped from outside, if it was.
    pub stop: Option<Stop>,
    /// Lines that the CLI added to its record during the run ([`Decoder::record_files`]), as far as the
    /// decoder was not given them before.
    pub record: Vec<String>,
}

impl Exit {
    /// Whether the process failed: a code other than 0, or a signal.
    pub fn is_failure(&self) -> bool {
        self.code != Some(0)
    }
}

/// Reason for stopping a process from outside.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Stop {
    /// The caller wanted it.
    Aborted,
    /// A time limit was reached; the error names it.
    Timeout(AgentError),
    /// It could not go on for another reason.
    Failed(AgentError),
    /// Its output was over, and it did not end by itself.
    Lingering,
}

/// A decoder's summary of a run at its end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunSummary {
    /// The CLI's own end of the run was seen: `Some(true)` if it reported a failure.
    pub ended_with_error: Option<bool>,
    /// The answer, if it is known to be other than the last message's text.
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
    /// Cost in USD and where it comes from.
    pub cost: Option<(f64, CostSource)>,
    /// Turns, as the CLI counts them.
    pub num_turns: Option<u32>,
    /// Why the model stopped.
    pub stop_reason: Option<String>,
    /// The answer in the shape of the output schema.
    pub structured_output: Option<Value>,
}
