//! How a run is shown: for a person at a terminal, as plain text, or as JSON.
//!
//! Everything here writes to a [`Write`](io::Write) and gets the time, so it is tested with
//! events made by hand.

mod current;
mod json;
mod line;
mod narrator;
mod plain;
mod retry;
mod spinner;
mod terminal;

#[cfg(test)]
pub(crate) mod testing;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use teamster::{AgentEvent, CliInfo, LogEntry, McpDelivery, RunResult};

pub(crate) use current::{Before, Current};

pub(crate) use json::Json;
pub(crate) use narrator::Narrator;
pub(crate) use plain::Plain;
pub(crate) use spinner::{Spinner, TermSpinner};
pub(crate) use terminal::Terminal;

/// Shows the events of one run.
pub(crate) trait Sink<E = LogEntry> {
    /// Shows an event that came `now` after the start. An error means that no reader is left for what is
    /// written.
    fn event(&mut self, event: &E, now: Duration) -> io::Result<()>;

    /// Nothing more comes for the moment: what was held back to write it at once must go out.
    fn flush(&mut self) -> io::Result<()>;

    /// Called again and again while nothing comes.
    fn tick(&mut self, _now: Duration) {}

    /// The user asked to stop the run; it will end soon.
    fn stopping(&mut self, _now: Duration) {}

    /// Another writer prints whole lines to the terminal now.
    fn make_room(&mut self) {}
}

/// A sink of events as one of log entries.
pub(crate) struct OfEvents<S>(pub(crate) S);

impl<S: Sink<AgentEvent>> Sink for OfEvents<S> {
    fn event(&mut self, entry: &LogEntry, now: Duration) -> io::Result<()> {
        self.0.event(&entry.event, now)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    fn tick(&mut self, now: Duration) {
        self.0.tick(now);
    }

    fn stopping(&mut self, now: Duration) {
        self.0.stopping(now);
    }

    fn make_room(&mut self) {
        self.0.make_room();
    }
}

/// When text can no longer be withdrawn, and may be written where it cannot be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextIsFinal {
    /// As it comes.
    AtOnce,
    /// When its message is whole: the CLI itself may ask the model again.
    WithMessage,
    /// When no further attempt can withdraw it.
    WithRun,
}

/// What the display needs to know beside the events.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// The CLI that runs.
    pub(crate) current: Current,
    /// Also what is usually left out.
    pub(crate) verbose: bool,
    /// Only the answer and errors.
    pub(crate) quiet: bool,
    /// Where the agent works: paths below it are shown relative to it.
    pub(crate) directory: Option<PathBuf>,
    /// The arguments of the command that resumes the session, between the agent and the session's
    /// id; nothing if that cannot be.
    pub(crate) resume: Option<String>,
    /// How the run's MCP servers reach the CLI; nothing if it has none.
    pub(crate) mcp: Option<McpDelivery>,
    /// The time of day, in milliseconds since the Unix epoch.
    pub(crate) clock: fn() -> u64,
}

impl View {
    /// The CLI that runs now.
    pub(crate) fn info(&self) -> &'static CliInfo {
        self.current.info()
    }
}

/// The agent's last message: the answer in the requested shape, or its text.
pub(crate) fn last_message(result: &RunResult) -> String {
    structured_answer(result).unwrap_or_else(|| {
        result
            .final_message
            .as_ref()
            .unwrap_or(&result.text)
            .clone()
    })
}

/// The answer in the requested shape, unless the text is just that.
fn structured_answer(result: &RunResult) -> Option<String> {
    let value = result.structured_output.as_ref()?;
    let said = result.final_message.as_deref().unwrap_or(&result.text);
    if serde_json::from_str::<serde_json::Value>(said).is_ok_and(|said| said == *value) {
        return None;
    }
    Some(format!("{value:#}"))
}
