//! Drives a run from its first event to the exit code.

use std::env;
use std::fs::File;
use std::future::ready;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use teamster::{AbortHandle, AgentError, AgentEvent, EventStream, RunResult};
use teamster_api::{RunEvent, RunLogEntry, Trusted};
use tokio::time::{MissedTickBehavior, interval};

use crate::args::OutputArgs;
use crate::exit_code;
use crate::render::{Json, Narrator, Plain, Sink, Spinner, TermSpinner, Terminal, TextIsFinal};
use crate::runtime::tokio_runtime;
use crate::signals::Signals;
use teamster_host::{Guard, HostedRun};

pub(crate) use crate::render::View;

/// The frame interval of the spinner.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// A source of a run's log.
pub(crate) trait Feed {
    /// Returns the next entry; `None` after the last.
    async fn next(&mut self) -> Option<RunLogEntry>;

    /// Returns the next entry if it has arrived together with the last one. `next` returns it as well.
    fn next_arrived(&mut self) -> Option<RunLogEntry> {
        None
    }

    /// Returns a handle that stops the run.
    fn abort_handle(&self) -> AbortHandle;
}

impl Feed for HostedRun {
    async fn next(&mut self) -> Option<RunLogEntry> {
        HostedRun::next(self).await
    }

    fn next_arrived(&mut self) -> Option<RunLogEntry> {
        HostedRun::next_arrived(self)
    }

    fn abort_handle(&self) -> AbortHandle {
        HostedRun::abort_handle(self)
    }
}

/// The log of an agent alone.
impl Feed for EventStream {
    async fn next(&mut self) -> Option<RunLogEntry> {
        self.next_entry().await.map(RunLogEntry::Agent)
    }

    fn abort_handle(&self) -> AbortHandle {
        EventStream::abort_handle(self)
    }
}

/// The result of showing a run.
#[derive(Debug)]
pub(crate) struct ShowOutcome {
    pub(crate) code: u8,
    /// The error of a run that failed.
    pub(crate) error: Option<Box<AgentError>>,
    /// The result of the run; `None` if the output was lost before it.
    pub(crate) result: Option<Box<RunResult>>,
}

impl ShowOutcome {
    /// Returns the exit code of the run, or that of a failure if its last message was not written.
    pub(crate) fn code_if(&self, is_written: bool) -> u8 {
        if is_written {
            self.code
        } else {
            self.code.max(exit_code::AGENT_ERROR)
        }
    }
}

/// Starts an agent, shows its events and returns the exit code.
pub(crate) fn agent(
    output: OutputArgs,
    view: View,
    start: impl FnOnce() -> EventStream,
) -> anyhow::Result<u8> {
    let directory = view.directory.clone();
    let sink = sink(output, view, TextIsFinal::WithMessage);
    let runtime = tokio_runtime()?;
    let shown = run(runtime, sink, directory.as_deref(), false, async || {
        Ok(start())
    })?;
    Ok(shown.code)
}

/// Starts a run and shows it. With `keep_background`, background processes of the run stay.
pub(crate) fn run<F: Feed>(
    runtime: tokio::runtime::Runtime,
    mut sink: Box<dyn Sink>,
    directory: Option<&Path>,
    keep_background: bool,
    start: impl AsyncFnOnce() -> anyhow::Result<F>,
) -> anyhow::Result<ShowOutcome> {
    sink.tick(Duration::ZERO);
    let guard = Guard::start(crate::global::host(), directory);
    if !keep_background {
        teamster_host::adopt_orphans();
    }
    let shown = runtime.block_on(async {
        let events = start().await?;
        let mut signals =
            Signals::stop(events.abort_handle()).context("cannot listen for signals")?;
        Ok(show(events, &mut *sink, &mut signals).await)
    });
    drop(runtime);
    if !keep_background {
        teamster_host::end_orphans(guard.as_ref().map(Guard::pid));
    }
    shown
}

/// Shows at a terminal that an agent is being started, until the value is dropped.
pub(crate) fn starting(output: OutputArgs, provider: &str) -> Option<TermSpinner> {
    let provider = crate::global::providers().get(provider)?;
    if output.json || output.quiet || is_dumb() || !io::stdout().is_terminal() {
        return None;
    }
    let mut spinner = TermSpinner::new();
    spinner.show(&format!("starting {}", provider.info().name));
    Some(spinner)
}

fn is_dumb() -> bool {
    env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Returns whether a command without `--in` resumes an ended session: with a mock model it is removed with its temporary home,
/// and in a container with the container, unless the one of the machine's owner has a mount.
pub(crate) fn keeps_sessions(trusted: &Trusted) -> bool {
    let owners = || teamster_host::params::container(trusted).ok().flatten();
    env::var_os(teamster_mock_model::URL_VARIABLE).is_none()
        && trusted.container.is_none()
        && owners().is_none_or(|container| !container.mounts.is_empty())
}

/// Creates the sink for the log of a run or session.
pub(crate) fn sink(output: OutputArgs, view: View, text: TextIsFinal) -> Box<dyn Sink> {
    // Plain stdout: anstream would strip escape sequences from the agent's text.
    if output.json {
        return Box::new(Json::new(io::stdout()));
    }
    let narrator = Narrator::new(view);
    match (io::stdout().is_terminal(), output.quiet) {
        (true, false) if !is_dumb() => {
            let width = || {
                let size = console::Term::stderr().size_checked();
                size.map(|(_, columns)| usize::from(columns))
            };
            let (out, err) = (anstream::stdout(), anstream::stderr());
            let terminal = Terminal::new(out, err, TermSpinner::new(), narrator, width);
            // Without colours, marks are all that shows what is bold.
            match anstream::AutoStream::choice(&io::stdout()) {
                anstream::ColorChoice::Never => Box::new(terminal),
                _ => Box::new(terminal.with_markdown()),
            }
        }
        (terminal, _) => {
            let plain = Plain::new(io::stdout(), anstream::stderr(), narrator, terminal);
            Box::new(match text {
                TextIsFinal::WithRun if !terminal => plain.holding_back(),
                TextIsFinal::AtOnce => plain.streaming(),
                _ => plain,
            })
        }
    }
}

/// Returns stdout if it is a pipe or socket, whose reader can leave.
pub(crate) fn stdout_pipe() -> Option<OwnedFd> {
    let stdout = File::from(io::stdout().as_fd().try_clone_to_owned().ok()?);
    let kind = stdout.metadata().ok()?.file_type();
    (kind.is_fifo() || kind.is_socket()).then(|| stdout.into())
}

/// Returns `true` if the reader of the pipe is gone.
pub(crate) fn reader_is_gone(pipe: &OwnedFd) -> bool {
    let mut pipes = [PollFd::new(pipe.as_fd(), PollFlags::empty())];
    // `poll` always reports these two. If it fails, the next write reports the error.
    let gone = PollFlags::POLLERR | PollFlags::POLLHUP;
    poll(&mut pipes, PollTimeout::ZERO).is_ok()
        && pipes[0].revents().is_some_and(|now| now.intersects(gone))
}

/// Shows every entry of the log. Reads to the end even if output fails, because no process of the run is left only
/// then. Reports output errors other than a lost reader.
pub(crate) async fn show<F: Feed>(
    mut log: F,
    sink: &mut dyn Sink,
    signals: &mut Signals,
) -> ShowOutcome {
    let abort = log.abort_handle();
    let start = Instant::now();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let stdout = stdout_pipe();
    let mut lost: Option<io::Error> = None;
    let (mut error, mut result) = (None, None);
    let mut now = Duration::ZERO;
    loop {
        let next = match log.next_arrived() {
            Some(entry) => Some(entry),
            None => {
                let entry = tokio::select! {
                    biased;
                    entry = log.next() => entry,
                    // No entry is ready: flush, then wait.
                    () = ready(()) => {
                        if lost.is_none() && let Err(error) = sink.flush() {
                            lost = Some(error);
                            abort.abort();
                        }
                        loop {
                            tokio::select! {
                                biased;
                                entry = log.next() => break entry,
                                () = signals.stop_requested() => sink.stopping(start.elapsed()),
                                _ = ticks.tick() => if lost.is_none() {
                                    if stdout.as_ref().is_some_and(reader_is_gone) {
                                        // A silent agent causes no write that would fail, and the run would
                                        // continue at a cost.
                                        lost = Some(io::ErrorKind::BrokenPipe.into());
                                        abort.abort();
                                    } else {
                                        sink.tick(start.elapsed());
                                    }
                                },
                            }
                        }
                    }
                };
                now = start.elapsed();
                entry
            }
        };
        let Some(entry) = next else { break };
        let was_lost = lost.is_some();
        if !was_lost && let Err(error) = sink.entry(&entry, now) {
            lost = Some(error);
            abort.abort();
        }
        match entry {
            RunLogEntry::Agent(entry) => {
                if let AgentEvent::Done(done) = entry.event
                    && !was_lost
                {
                    result = Some(done.result);
                }
            }
            RunLogEntry::Run(entry) => match entry.event {
                RunEvent::Error { error: failure, .. } => error = Some(failure),
                RunEvent::End(outcome) if !was_lost => result = Some(Box::new(outcome.result)),
                _ => {}
            },
            _ => {}
        }
    }
    // Even if the run completed first, its output is lost.
    let lost = lost.or_else(|| sink.flush().err());
    ShowOutcome {
        code: match (lost, &result) {
            (Some(error), _) => exit_code::of_lost(error),
            (None, Some(result)) => exit_code::of(result),
            // Only a runtime that violates its contract sends no last event.
            (None, None) => exit_code::AGENT_ERROR,
        },
        error,
        result,
    }
}
