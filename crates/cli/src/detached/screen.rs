//! Rendering of the log of a run or session.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anstyle::Style;
use teamster::{AgentEvent, Id, RunResult};
use teamster_api::{LogLine, RunEvent, RunLogEntry};
use teamster_core::time::epoch_ms;

use super::run::Run;
use crate::args::OutputArgs;
use crate::render::{Json, Sink, TextIsFinal, View, resume_arguments};
use crate::{drive, exit_code, words};

/// A renderer of log entries, and of the messages of the program beside them.
pub(crate) struct Screen {
    /// Prints the lines of the log, instead of rendering turns as `teamster run` does.
    lines: Option<io::BufWriter<io::Stdout>>,
    sink: Box<dyn Sink>,
    messages: Box<dyn Write>,
    quiet: bool,
    json: bool,
    directory: Option<PathBuf>,
    /// The time of the turn's first entry, in milliseconds since the Unix epoch. Times are relative to it.
    began: Option<u64>,
    /// True for a session, which has several turns.
    is_session: bool,
    /// True for a run of this machine.
    is_here: bool,
    /// The turn in progress.
    turn: Option<Id>,
    /// The id of the current agent.
    agent: String,
    /// A message that the user typed here, which is already on the screen.
    typed: Option<String>,
}

/// The end of a run or turn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// The exit code.
    pub(crate) code: u8,
    /// The id of the run or turn.
    pub(crate) run_id: Option<Id>,
}

impl Ended {
    /// Returns the end, if the entry is one.
    pub(crate) fn of(entry: &RunLogEntry) -> Option<Self> {
        let RunLogEntry::Agent(entry) = entry else {
            return None;
        };
        let AgentEvent::Done(done) = &entry.event else {
            return None;
        };
        Some(Self {
            code: exit_code::of(&done.result),
            run_id: entry.run_id.clone(),
        })
    }
}

impl Screen {
    pub(crate) fn new(run: &Run, output: OutputArgs) -> Self {
        let provider = crate::global::providers().get(&run.info.provider);
        // Print the entries of an unknown agent as lines.
        let Some(first) = provider.filter(|_| !output.json) else {
            let none = Box::new(Json::new(io::sink()));
            let mut screen = Self::with_sink(run, none, anstream::stderr(), output);
            screen.lines = Some(io::BufWriter::new(io::stdout()));
            return screen;
        };
        let mut view = View::new(first.info(), output);
        // A session that continues needs no command to resume it.
        if !run.is_session() {
            view.resume = resume(run.info.directory.as_deref(), run.is_here);
        }
        view.directory.clone_from(&run.info.directory);
        if let Some(grants) = &run.info.grants {
            view.permission = Some(grants.permission);
            view.allowed_tools.clone_from(&grants.allowed_tools);
        }
        let sink = drive::sink(output, view, TextIsFinal::WithMessage);
        Self::with_sink(run, sink, anstream::stderr(), output)
    }

    /// Creates a screen that renders turns with this sink.
    pub(crate) fn with_sink(
        run: &Run,
        sink: Box<dyn Sink>,
        messages: impl Write + 'static,
        output: OutputArgs,
    ) -> Self {
        Self {
            lines: None,
            sink,
            messages: Box::new(messages),
            quiet: output.quiet,
            json: output.json,
            directory: run.info.directory.clone(),
            began: None,
            is_session: run.is_session(),
            is_here: run.is_here,
            turn: None,
            agent: run.info.provider.clone(),
            typed: None,
        }
    }

    /// Shows an entry, which is that of the line; `None` for one of a newer version.
    pub(crate) fn show(&mut self, line: &LogLine, entry: Option<&RunLogEntry>) -> io::Result<()> {
        if let Some(lines) = &mut self.lines {
            lines.write_all(line.json())?;
            return lines.write_all(b"\n");
        }
        match entry {
            Some(entry) => self.render(entry, line.is_end()),
            None => Ok(()),
        }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match &mut self.lines {
            Some(lines) => lines.flush(),
            None => self.sink.flush(),
        }
    }

    /// Shows no more entries.
    pub(crate) fn mute(&mut self) {
        self.lines = None;
        self.sink = Box::new(Json::new(io::sink()));
    }

    /// Returns `true` if the shown entries leave a turn in progress.
    pub(crate) fn is_in_turn(&self) -> bool {
        self.turn.is_some()
    }

    /// Begins a turn whose first entry, of this time in milliseconds since the Unix epoch, is not shown.
    pub(super) fn begin(&mut self, turn: &Id, at_ms: u64) {
        self.began.get_or_insert(at_ms);
        self.turn.get_or_insert_with(|| turn.clone());
    }

    /// Clears the current line for another writer.
    pub(crate) fn clear_line(&mut self) {
        self.sink.clear_line();
    }

    /// Sets the message that is about to be sent from here.
    pub(crate) fn set_typed(&mut self, text: Option<String>) {
        self.typed = text;
    }

    /// Forgets the agent's session, so that the next one has a header of its own.
    pub(crate) fn clear_session(&mut self) {
        self.sink.clear_session();
    }

    /// Shows that the turn is being stopped.
    pub(crate) fn stopping(&mut self) {
        let now = self.now(epoch_ms());
        self.sink.stopping(now);
    }

    pub(crate) fn tick(&mut self) {
        if self.turn.is_some() || !self.is_session {
            let now = self.now(epoch_ms());
            self.sink.tick(now);
        }
    }

    /// Prints the answer to a command.
    pub(crate) fn print(&mut self, text: &str) {
        // Without stderr the message cannot be shown.
        let _ = writeln!(self.messages, "{text}");
    }

    /// Prints a message, unless the output is quiet.
    pub(crate) fn note(&mut self, text: &str) {
        if !self.quiet {
            self.print(text);
        }
    }

    /// Prints a message, unless the output is JSON or quiet.
    pub(crate) fn remark(&mut self, text: &str) {
        if !self.json {
            self.note(text);
        }
    }

    /// Prints an error.
    pub(crate) fn report(&mut self, error: &anyhow::Error) {
        crate::report::fail_on(&mut self.messages, error);
    }

    fn now(&self, at_ms: u64) -> Duration {
        Duration::from_millis(self.began.map_or(0, |began| at_ms.saturating_sub(began)))
    }

    fn render(&mut self, entry: &RunLogEntry, is_end: bool) -> io::Result<()> {
        if self.is_session
            && is_end
            && let RunLogEntry::Agent(entry) = entry
            && let AgentEvent::Done(done) = &entry.event
        {
            return self.session_end(&done.result);
        }
        self.began.get_or_insert(entry.at_ms());
        self.sink.entry(entry, self.now(entry.at_ms()))?;
        match entry {
            RunLogEntry::Agent(entry)
                if self.is_session && matches!(entry.event, AgentEvent::Done(_)) =>
            {
                self.turn_end()?;
            }
            RunLogEntry::Run(entry) => match &entry.event {
                RunEvent::UserMessage {
                    run_id, text, from, ..
                } => {
                    self.turn.get_or_insert_with(|| run_id.clone());
                    if self.typed.take().as_ref() != Some(text) {
                        self.message(text, from.as_deref())?;
                    }
                }
                RunEvent::Start { run_id, .. } => {
                    self.turn.get_or_insert_with(|| run_id.clone());
                }
                RunEvent::Attempt { provider, .. } => self.agent.clone_from(provider),
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    /// Shows a message that another client sent.
    fn message(&mut self, text: &str, from: Option<&str>) -> io::Result<()> {
        self.sink.flush()?;
        self.sink.clear_line();
        let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
        let text = words::printable(text);
        let from = from.map(|from| format!("  {dim}{}{dim:#}", words::one_line(from)));
        self.note(&format!(
            "{bold}> {}{bold:#}{}",
            text.trim_end().replace('\n', "\n> "),
            from.unwrap_or_default()
        ));
        Ok(())
    }

    fn turn_end(&mut self) -> io::Result<()> {
        self.sink.flush()?;
        self.sink.end_turn();
        self.turn = None;
        self.began = None;
        Ok(())
    }

    fn session_end(&mut self, result: &RunResult) -> io::Result<()> {
        self.sink.flush()?;
        self.turn = None;
        self.sink.clear_line();
        let turns = words::plural(u64::from(result.num_turns.unwrap_or_default()), "turn");
        let cost = words::cost(result).map(|cost| format!(", {cost}"));
        let how = if result.is_success() {
            "ended"
        } else {
            "was stopped"
        };
        let error = result.failure().filter(|_| !result.aborted);
        let error = error.map(|error| format!(": {}", words::one_line(&error.message)));
        self.note(&format!(
            "the session {how} after {turns}{}{}",
            cost.unwrap_or_default(),
            error.unwrap_or_default()
        ));
        // A worktree may have been removed at the end.
        let resume = resume(self.directory.as_deref(), self.is_here);
        if let (Some(resume), Some(session)) = (resume, &result.session_id) {
            let (agent, session) = (shell_words::quote(&self.agent), words::one_line(session));
            let teamster = crate::global::typed();
            let command = format!("{teamster} chat {agent} {resume} {session}");
            self.note(&format!("resume with: {command}"));
        }
        Ok(())
    }
}

/// Returns the arguments that resume a session of this directory, up to the session's id. `None` if the directory
/// no longer exists.
fn resume(directory: Option<&Path>, is_here: bool) -> Option<String> {
    let is_gone = is_here && directory.is_some_and(|path| !path.is_dir());
    let here = std::env::current_dir().ok();
    let directory = directory.filter(|path| Some(*path) != here.as_deref());
    (!is_gone).then(|| resume_arguments(directory, &[]))
}
