//! Rendering of the log of a run or session.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anstyle::Style;
use teamster::{AgentEvent, Id, RunResult};
use teamster_api::{LogLine, RunEvent, RunLogEntry};
use teamster_core::time::epoch_ms;

use super::Run;
use super::questions::{Questions, Reader};
use crate::args::OutputArgs;
use crate::render::{Sink, TextIsFinal, View};
use crate::{drive, exit_code, words};

/// A renderer of log entries.
pub(crate) enum Screen {
    /// Prints the lines of the log.
    Lines(io::BufWriter<io::Stdout>),
    /// Renders turns like `teamster run` and `teamster chat`.
    Turns(Box<Turns>),
}

/// Renders the turns of a session, or a run.
pub(crate) struct Turns {
    quiet: bool,
    directory: Option<PathBuf>,
    sink: Box<dyn Sink>,
    /// The time of the turn's first shown entry, in milliseconds since the Unix epoch. Times are relative to it.
    began: Option<u64>,
    /// The requests to ask at the terminal; `None` without a user.
    questions: Option<Questions>,
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

/// The result of showing an entry.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ShownEntry {
    /// The exit code, if the entry ends a run or turn.
    pub(crate) code: Option<u8>,
    /// The id of the ended run or turn.
    pub(crate) run_id: Option<Id>,
}

impl Screen {
    pub(crate) fn new(run: &Run, output: OutputArgs) -> Self {
        let info = |id: &str| {
            crate::global::providers()
                .get(id)
                .map(|provider| provider.info())
        };
        // Print the entries of an unknown agent as lines.
        let Some(first) = info(&run.info.provider).filter(|_| !output.json) else {
            return Self::Lines(io::BufWriter::new(io::stdout()));
        };
        let is_session = run.is_session();
        let is_here = run.is_here;
        let directory = run.info.directory.clone();
        let view = View {
            agent: first,
            verbose: output.verbose,
            quiet: output.quiet,
            // A session that continues needs no command to resume it.
            resume: (!is_session)
                .then(|| resume_arguments(directory.as_deref(), is_here))
                .flatten(),
            directory: directory.clone(),
            permission: None,
            asks: false,
            mcp: None,
            clock: epoch_ms,
        };
        Self::Turns(Box::new(Turns {
            sink: drive::sink(output, view, TextIsFinal::WithMessage),
            quiet: output.quiet,
            directory,
            began: None,
            questions: Questions::can_ask().then(Questions::default),
            is_session,
            is_here,
            turn: None,
            agent: first.id.to_owned(),
            typed: None,
        }))
    }

    /// Disables prompts for requests.
    pub(crate) fn without_questions(mut self) -> Self {
        if let Self::Turns(turns) = &mut self {
            turns.questions = None;
        }
        self
    }

    /// Shows an entry.
    pub(crate) fn show(&mut self, line: &LogLine) -> io::Result<ShownEntry> {
        let entry = line.entry();
        let mut seen = ShownEntry::default();
        if let Ok(RunLogEntry::Agent(entry)) = &entry
            && let AgentEvent::Done(done) = &entry.event
        {
            seen.code = Some(exit_code::of(&done.result));
            seen.run_id.clone_from(&entry.run_id);
        }
        match (self, entry) {
            (Self::Lines(out), _) => {
                out.write_all(line.json())?;
                out.write_all(b"\n")?;
            }
            (Self::Turns(turns), Ok(entry)) => turns.show(&entry, line.is_end())?,
            // An entry of a newer version.
            _ => {}
        }
        Ok(seen)
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Lines(out) => out.flush(),
            Self::Turns(turns) => turns.sink.flush(),
        }
    }

    /// Returns `true` if the shown entries leave a turn in progress.
    pub(crate) fn is_in_turn(&self) -> bool {
        matches!(self, Self::Turns(turns) if turns.turn.is_some())
    }

    /// Returns `true` if a request is to be asked here.
    pub(crate) fn has_questions(&self) -> bool {
        matches!(self, Self::Turns(turns) if turns.questions.as_ref().is_some_and(|it| !it.is_empty()))
    }

    /// Prompts for an answer to the oldest request.
    pub(crate) async fn ask(&mut self, reader: &mut Reader) -> anyhow::Result<()> {
        let Self::Turns(turns) = self else {
            return Ok(());
        };
        let Some(questions) = &mut turns.questions else {
            return Ok(());
        };
        turns.sink.clear_line();
        let directory = reader.run().info.directory.clone();
        questions.ask(reader, directory.as_deref()).await
    }

    /// Sets the message that is about to be sent from here.
    pub(crate) fn set_typed(&mut self, text: Option<String>) {
        if let Self::Turns(turns) = self {
            turns.typed = text;
        }
    }

    /// Shows that the turn is being stopped.
    pub(crate) fn stopping(&mut self) {
        if let Self::Turns(turns) = self {
            let now = turns.now(epoch_ms());
            turns.sink.stopping(now);
        }
    }

    pub(crate) fn tick(&mut self) {
        if let Self::Turns(turns) = self
            && (turns.turn.is_some() || !turns.is_session)
        {
            let now = turns.now(epoch_ms());
            turns.sink.tick(now);
        }
    }
}

impl Turns {
    fn now(&self, at_ms: u64) -> Duration {
        Duration::from_millis(self.began.map_or(0, |began| at_ms.saturating_sub(began)))
    }

    fn show(&mut self, entry: &RunLogEntry, is_end: bool) -> io::Result<()> {
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
            RunLogEntry::Agent(entry) => {
                if let Some(questions) = &mut self.questions {
                    questions.record(&entry.event);
                }
                if self.is_session && matches!(entry.event, AgentEvent::Done(_)) {
                    self.turn_end()?;
                }
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
        if self.quiet {
            return Ok(());
        }
        self.sink.clear_line();
        let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
        let text = words::printable(text);
        let from = from.map(|from| format!("  {dim}{}{dim:#}", words::one_line(from)));
        // Without stderr the message cannot be shown.
        let _ = writeln!(
            anstream::stderr(),
            "{bold}> {}{bold:#}{}",
            text.trim_end().replace('\n', "\n> "),
            from.unwrap_or_default()
        );
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
        if self.quiet {
            return Ok(());
        }
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
        // As above.
        let _ = writeln!(
            anstream::stderr(),
            "the session {how} after {turns}{}{}",
            cost.unwrap_or_default(),
            error.unwrap_or_default()
        );
        // A worktree may have been removed at the end.
        let resume = resume_arguments(self.directory.as_deref(), self.is_here);
        if let (Some(resume), Some(session)) = (resume, &result.session_id) {
            let agent = shell_words::quote(&self.agent);
            let _ = writeln!(
                anstream::stderr(),
                "resume with: teamster chat {agent} {resume} {}",
                words::one_line(session)
            );
        }
        Ok(())
    }
}

/// Returns the arguments that resume a session of this directory, up to the session's id. `None` if the directory
/// no longer exists.
fn resume_arguments(directory: Option<&Path>, is_here: bool) -> Option<String> {
    let Some(directory) = directory else {
        return Some("--resume".to_owned());
    };
    if is_here && !directory.is_dir() {
        return None;
    }
    let is_current = std::env::current_dir().is_ok_and(|here| here == *directory);
    let cwd = (!is_current)
        .then(|| format!("--cwd {} ", words::shell_word(&directory.to_string_lossy())));
    Some(format!("{}--resume", cwd.unwrap_or_default()))
}
