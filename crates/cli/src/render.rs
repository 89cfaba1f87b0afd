//! Output of a run: for a terminal, as plain text, or as JSON.
//!
//! All sinks write to a [`Write`](io::Write) and are passed the time, so tests need no process and no clock.

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

use teamster::{
    AgentError, AgentEvent, CliInfo, ErrorKind, LogEntry, McpDelivery, PermissionMode, RunResult,
};

use crate::words;
use crate::worktree::Changes;

pub(crate) use current::{Current, PreviousText};

pub(crate) use json::Json;
pub(crate) use narrator::Narrator;
pub(crate) use plain::Plain;
pub(crate) use spinner::{Spinner, TermSpinner};
pub(crate) use terminal::Terminal;

/// Output of the events of one run.
pub(crate) trait Sink<E = LogEntry> {
    /// Shows an event. `now` is the time since the start of the run.
    ///
    /// An error means that the output cannot be written, usually because its reader is gone.
    fn event(&mut self, event: &E, now: Duration) -> io::Result<()>;

    /// Writes all buffered output. Called when no event is pending.
    fn flush(&mut self) -> io::Result<()>;

    /// Updates the display. Called periodically while no event comes.
    fn tick(&mut self, _now: Duration) {}

    /// Shows that the run is being stopped.
    fn stopping(&mut self, _now: Duration) {}

    /// Clears the current line for another writer that prints whole lines to the terminal.
    fn clear_line(&mut self) {}
}

/// Adapts a sink of events to log entries.
pub(crate) struct EventSink<S>(pub(crate) S);

impl<S: Sink<AgentEvent>> Sink for EventSink<S> {
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

    fn clear_line(&mut self) {
        self.0.clear_line();
    }
}

/// The point at which text can no longer be retracted, so that it may be written to a pipe or file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextIsFinal {
    /// Text is final as it comes.
    AtOnce,
    /// Text is final when its message is complete: the CLI may retry a request to the model.
    WithMessage,
    /// Text is final when no further attempt can retract it.
    WithRun,
}

/// Settings of the display.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// The current CLI.
    pub(crate) current: Current,
    /// Also show thinking, sub-agents and notes.
    pub(crate) verbose: bool,
    /// Show only the answer and errors.
    pub(crate) quiet: bool,
    /// The agent's working directory. Paths below it are shown relative to it.
    pub(crate) directory: Option<PathBuf>,
    /// The arguments between agent and session id in the command that resumes the session; `None` if it cannot be
    /// resumed.
    pub(crate) resume: Option<String>,
    /// The worktree of the run. Without changes it is removed at the end, and nothing can be resumed in it.
    pub(crate) worktree: Option<Changes>,
    /// The permission mode, if it is known.
    pub(crate) permission: Option<PermissionMode>,
    /// A person decides about permissions.
    pub(crate) asks: bool,
    /// Delivery of the run's MCP servers; `None` if it has none.
    pub(crate) mcp: Option<McpDelivery>,
    /// Returns the current time, in milliseconds since the Unix epoch.
    pub(crate) clock: fn() -> u64,
}

impl View {
    /// Returns the current CLI.
    pub(crate) fn info(&self) -> &'static CliInfo {
        self.current.info()
    }

    /// Returns the command that resumes the session of an ended run; `None` if it cannot be resumed.
    fn resume_command(&self, result: &RunResult) -> Option<String> {
        let (args, id) = (self.resume.as_ref()?, result.session_id.as_ref()?);
        // Without a login and without output, there is no session to resume.
        let output = result.usage.as_ref().and_then(|usage| usage.output_tokens);
        let without_output = output.unwrap_or(0) == 0;
        let is_lost = |error: &AgentError| {
            error.kind == ErrorKind::SessionNotFound
                || (error.kind == ErrorKind::Auth && without_output)
        };
        if result.errors.iter().any(is_lost) || !self.worktree.as_ref().is_none_or(Changes::exist) {
            return None;
        }
        let agent = shell_words::quote(self.info().id);
        Some(format!(
            "teamster run {agent} {args} {} PROMPT",
            words::one_line(id)
        ))
    }
}

/// Returns the structured answer, else the agent's last message.
pub(crate) fn last_message(result: &RunResult) -> String {
    structured_answer(result).unwrap_or_else(|| {
        result
            .final_message
            .as_ref()
            .unwrap_or(&result.text)
            .clone()
    })
}

/// Returns the structured answer, unless the last message is the same JSON.
fn structured_answer(result: &RunResult) -> Option<String> {
    let value = result.structured_output.as_ref()?;
    let message = result.final_message.as_deref().unwrap_or(&result.text);
    if serde_json::from_str::<serde_json::Value>(message).is_ok_and(|message| message == *value) {
        return None;
    }
    Some(format!("{value:#}"))
}
