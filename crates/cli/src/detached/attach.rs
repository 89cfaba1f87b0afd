//! `teamster attach`.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::Context;
use teamster::orchestrator::{RunEvent, RunLogEntry};
use teamster::{AgentEvent, CliInfo, NoticeLevel, NoticeSource};
use teamster_core::time::epoch_ms;
use teamster_runner::client::Follow;
use teamster_runner::{LogLine, RunFolder};
use tokio::time::{MissedTickBehavior, interval};

use super::find;
use super::questions::{Questions, Reader};
use crate::args::{AttachArgs, OutputArgs};
use crate::drive::{self, TICK};
use crate::render::{Current, Sink, TextIsFinal, View};
use crate::signals::Source;
use crate::{exit_code, tokio_runtime, words};

/// Shows a run; its exit code.
pub(crate) fn main(args: &AttachArgs) -> anyhow::Result<u8> {
    let run = find(&args.id)?;
    let output: OutputArgs = args.output.into();
    let mut screen = Screen::new(&run, output);
    tokio_runtime()
        .context("cannot start the runtime")?
        .block_on(show(run, args.after, &mut screen, output.quiet))
}

/// What shows the entries of a log.
enum Screen {
    /// As they are in the file.
    Lines(io::BufWriter<io::Stdout>),
    /// As `teamster run` shows them.
    Run {
        sink: Box<dyn Sink>,
        current: Current,
        /// When the first entry shown was written: times are those of the run.
        began: Option<u64>,
        /// What is asked here; nothing if there is no one to ask.
        questions: Option<Questions>,
    },
}

impl Screen {
    fn new(run: &RunFolder, output: OutputArgs) -> Self {
        let info = |id: &str| crate::providers().get(id).map(|provider| provider.info());
        // Entries of an agent that this program does not know are shown as they are.
        let Some(first) = info(&run.info().provider).filter(|_| !output.json) else {
            return Self::Lines(io::BufWriter::new(io::stdout()));
        };
        let others: Vec<&'static CliInfo> = (crate::providers().all().iter())
            .map(|provider| provider.info())
            .collect();
        let current = Current::new(first, &others);
        let directory = run.info().directory.clone();
        let cwd = (directory.as_deref())
            .filter(|dir| std::env::current_dir().is_ok_and(|here| here != *dir))
            .map(|dir| format!("--cwd {} ", words::shell_word(&dir.to_string_lossy())));
        let view = View {
            current: current.clone(),
            verbose: output.verbose,
            quiet: output.quiet,
            directory,
            resume: Some(format!("{}--resume", cwd.unwrap_or_default())),
            mcp: None,
            clock: epoch_ms,
        };
        Self::Run {
            sink: drive::sink(output, view, TextIsFinal::WithMessage),
            current,
            began: None,
            questions: Questions::can_ask().then(Questions::default),
        }
    }

    /// Shows an entry; the run's exit code if it is the last one.
    fn show(&mut self, line: &LogLine) -> io::Result<Option<u8>> {
        let entry = line.entry();
        let code = match &entry {
            Ok(RunLogEntry::Agent(entry)) => match &entry.event {
                AgentEvent::Done(done) => Some(exit_code::of(&done.result)),
                _ => None,
            },
            _ => None,
        };
        match self {
            Self::Lines(out) => {
                out.write_all(line.json())?;
                out.write_all(b"\n")?;
            }
            Self::Run {
                sink,
                current,
                began,
                questions,
            } => match entry {
                Ok(RunLogEntry::Agent(entry)) => {
                    let began = *began.get_or_insert(entry.at_ms);
                    let now = Duration::from_millis(entry.at_ms.saturating_sub(began));
                    sink.event(&entry, now)?;
                    if let Some(questions) = questions {
                        questions.see(&entry.event);
                    }
                }
                Ok(RunLogEntry::Run(entry)) => {
                    if let RunEvent::Reset { .. } = entry.event {
                        let message =
                            format!("entries 1 to {} were removed to make room", entry.seq);
                        let message = AgentEvent::notice(
                            NoticeLevel::Warning,
                            NoticeSource::Runtime,
                            message,
                        );
                        sink.event(&message.into(), Duration::ZERO)?;
                    }
                    began.get_or_insert(entry.at_ms);
                    current.observe(&entry.event);
                }
                // Of a newer version.
                _ => {}
            },
        }
        Ok(code)
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Lines(out) => out.flush(),
            Self::Run { sink, .. } => sink.flush(),
        }
    }

    /// Whether something is to be asked here.
    fn asks(&self) -> bool {
        matches!(self, Self::Run { questions: Some(questions), .. } if !questions.is_empty())
    }

    /// Asks for an answer to one request.
    async fn ask(&mut self, reader: &mut Reader) -> anyhow::Result<()> {
        let Self::Run {
            sink,
            questions: Some(questions),
            ..
        } = self
        else {
            return Ok(());
        };
        sink.make_room();
        let directory = reader.run().info().directory.clone();
        questions.ask(reader, directory.as_deref()).await
    }

    fn tick(&mut self) {
        if let Self::Run { sink, began, .. } = self {
            let since = began.map_or(0, |began| epoch_ms().saturating_sub(began));
            sink.tick(Duration::from_millis(since));
        }
    }
}

async fn show(run: RunFolder, after: u64, screen: &mut Screen, quiet: bool) -> anyhow::Result<u8> {
    let id = run.id().to_owned();
    let mut signals = Source::new().context("cannot listen for signals")?;
    let mut reader = Reader::new(Follow::new(run, after)?);
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let stdout = drive::pipe_to_a_reader();
    let mut code = None;
    loop {
        let next = tokio::select! {
            biased;
            () = signals.next() => return Ok(leave(screen, &id, quiet)),
            next = reader.next() => next?,
            () = std::future::ready(()) => {
                if let Err(error) = screen.flush() {
                    return Ok(exit_code::of_lost(error));
                }
                if screen.asks() {
                    tokio::select! {
                        biased;
                        () = signals.next() => return Ok(leave(screen, &id, quiet)),
                        asked = screen.ask(&mut reader) => asked?,
                    }
                    continue;
                }
                tokio::select! {
                    biased;
                    next = reader.next() => next?,
                    () = signals.next() => return Ok(leave(screen, &id, quiet)),
                    _ = ticks.tick() => {
                        if stdout.as_ref().is_some_and(drive::reader_is_gone) {
                            return Ok(exit_code::ABORTED);
                        }
                        screen.tick();
                        continue;
                    }
                }
            }
        };
        let Some(line) = next else { break };
        match screen.show(&line) {
            Ok(ended) => code = ended.or(code),
            Err(error) => return Ok(exit_code::of_lost(error)),
        }
    }
    if let Err(error) = screen.flush() {
        return Ok(exit_code::of_lost(error));
    }
    // Only `--after` the end leaves nothing to show.
    Ok(code.unwrap_or(exit_code::SUCCESS))
}

/// Ends the view of a run that goes on; the exit code.
fn leave(screen: &mut Screen, id: &str, quiet: bool) -> u8 {
    if let Err(error) = screen.flush() {
        return exit_code::of_lost(error);
    }
    if !quiet {
        // Without stderr the message cannot be shown.
        let _ = writeln!(
            anstream::stderr(),
            "detached: the run goes on; `teamster attach {id}` shows it, `teamster cancel {id}` stops it"
        );
    }
    exit_code::ABORTED
}
