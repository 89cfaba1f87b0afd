//! Output of a run: for a terminal, as plain text, or as JSON.
//!
//! All sinks write to a [`Write`](io::Write) and are passed the time, so tests need no process and no clock.

mod attempts;
mod json;
mod line;
mod markdown;
mod narrator;
mod plain;
mod shown_once;
mod spinner;
mod terminal;

#[cfg(test)]
pub(crate) mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use teamster::{AgentError, CliInfo, ErrorKind, McpDelivery, PermissionMode, RunResult};
use teamster_api::RunLogEntry;
use teamster_core::time::epoch_ms;

use crate::args::OutputArgs;
use crate::words;
use teamster_host::structured_answer;

pub(crate) use json::Json;
pub(crate) use narrator::Narrator;
pub(crate) use plain::Plain;
use shown_once::is_first;
pub(crate) use spinner::{Spinner, TermSpinner};
pub(crate) use terminal::Terminal;

/// Output of the log of a run, or of the turns of a session.
pub(crate) trait Sink {
    /// Shows an entry. `now` is the time since the start of the run or turn.
    ///
    /// An error means that the output cannot be written, usually because its reader is gone.
    fn entry(&mut self, entry: &RunLogEntry, now: Duration) -> io::Result<()>;

    /// Writes all buffered output. Called when no event is pending.
    fn flush(&mut self) -> io::Result<()>;

    /// Updates the display. Called periodically while no event comes.
    fn tick(&mut self, _now: Duration) {}

    /// Shows that the run is being stopped.
    fn stopping(&mut self, _now: Duration) {}

    /// Clears the current line for another writer that prints whole lines to the terminal.
    fn clear_line(&mut self) {}

    /// Ends a turn of a session. Another one can follow.
    fn end_turn(&mut self) {}

    /// Forgets the session, so that the next one has a header of its own.
    fn clear_session(&mut self) {}
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
    /// The CLI of the first attempt.
    pub(crate) agent: &'static CliInfo,
    /// Also show thinking, sub-agents and notes.
    pub(crate) verbose: bool,
    /// Show only the answer and errors.
    pub(crate) quiet: bool,
    /// The agent's working directory. Paths below it are shown relative to it.
    pub(crate) directory: Option<PathBuf>,
    /// The arguments between agent and session id in the command that resumes the session; `None` if it cannot be
    /// resumed.
    pub(crate) resume: Option<String>,
    /// The permission mode, if it is known.
    pub(crate) permission: Option<PermissionMode>,
    /// The tools that are allowed by name or pattern, as far as they are known.
    pub(crate) allowed_tools: Vec<String>,
    /// A person decides about permissions.
    pub(crate) asks: bool,
    /// Delivery of the run's MCP servers; `None` if it has none.
    pub(crate) mcp: Option<McpDelivery>,
    /// Returns the current time, in milliseconds since the Unix epoch.
    pub(crate) clock: fn() -> u64,
    /// Returns whether a notice that a person is shown once was never shown, and remembers it.
    pub(crate) is_first: fn(&str) -> bool,
}

impl View {
    /// Creates the display of an agent, of which nothing else is known.
    pub(crate) fn new(agent: &'static CliInfo, output: OutputArgs) -> Self {
        Self {
            agent,
            verbose: output.verbose,
            quiet: output.quiet,
            directory: None,
            resume: None,
            permission: None,
            allowed_tools: Vec::new(),
            asks: false,
            mcp: None,
            clock: epoch_ms,
            is_first,
        }
    }

    /// Returns the command that resumes the session of an ended run of this agent; `None` if it cannot be resumed.
    fn resume_command(&self, agent: &CliInfo, result: &RunResult) -> Option<String> {
        let (args, id) = (self.resume.as_ref()?, result.session_id.as_ref()?);
        // Without a login and without output, there is no session to resume.
        let output = result.usage.as_ref().and_then(|usage| usage.output_tokens);
        let without_output = output.unwrap_or(0) == 0;
        let is_lost = |error: &AgentError| {
            error.kind == ErrorKind::SessionNotFound
                || (error.kind == ErrorKind::Auth && without_output)
        };
        // In a worktree that was removed, nothing can be resumed.
        let is_removed = (result.workspace.as_ref()).is_some_and(|it| it.directory.is_none());
        if result.errors.iter().any(is_lost) || is_removed {
            return None;
        }
        let agent = shell_words::quote(agent.id);
        let teamster = crate::global::typed();
        Some(format!(
            "{teamster} run {agent} {args} {} PROMPT",
            words::one_line(id)
        ))
    }
}

/// Returns the arguments of a command that resumes a session, without the session's id.
///
/// They include `--cwd` and `--account`: sessions belong to the directory in which they began, and to the homes of accounts.
pub(crate) fn resume_arguments(directory: Option<&Path>, accounts: &[String]) -> String {
    let directory = directory.map(|path| ("--cwd", words::shell_word(&path.to_string_lossy())));
    let accounts = accounts
        .iter()
        .map(|name| ("--account", words::shell_word(name)));
    let mut arguments = String::new();
    for (option, value) in directory.into_iter().chain(accounts) {
        arguments = format!("{arguments}{option} {value} ");
    }
    arguments + "--resume"
}
