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
use teamster::orchestrator::{LifecycleEntry, Run, RunEvent, RunLog, RunLogEntry};
use teamster::{AbortHandle, AgentEvent, EventStream, LogEntry};
use tokio::time::{MissedTickBehavior, interval};

use crate::args::OutputArgs;
use crate::guard::Guard;
use crate::orphans;
use crate::render::{EventSink, Json, Narrator, Plain, Sink, TermSpinner, Terminal, TextIsFinal};
use crate::signals::Signals;
use crate::{exit_code, tokio_runtime};

pub(crate) use crate::render::View;

/// The frame interval of the spinner.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// A source of a run's events.
pub(crate) trait Feed {
    type Event;

    /// Returns the next event; `None` after the last.
    async fn next(&mut self) -> Option<Self::Event>;

    /// Returns a handle that stops the run.
    fn abort_handle(&self) -> AbortHandle;

    /// Returns the exit code if this is the last event.
    fn exit_code(event: &Self::Event) -> Option<u8>;
}

impl Feed for EventStream {
    type Event = LogEntry;

    async fn next(&mut self) -> Option<LogEntry> {
        self.next_entry().await
    }

    fn abort_handle(&self) -> AbortHandle {
        EventStream::abort_handle(self)
    }

    fn exit_code(entry: &LogEntry) -> Option<u8> {
        match &entry.event {
            AgentEvent::Done(done) => Some(exit_code::of(&done.result)),
            _ => None,
        }
    }
}

/// The entries of a run's agents. Events of the run itself go to `observe`.
pub(crate) struct AgentEntries<O> {
    log: RunLog,
    observe: O,
}

impl<O: FnMut(&RunEvent)> AgentEntries<O> {
    pub(crate) fn new(log: RunLog, observe: O) -> Self {
        Self { log, observe }
    }
}

impl<O: FnMut(&RunEvent)> Feed for AgentEntries<O> {
    type Event = LogEntry;

    async fn next(&mut self) -> Option<LogEntry> {
        loop {
            match self.log.next().await? {
                RunLogEntry::Agent(entry) => return Some(entry),
                RunLogEntry::Run(entry) => (self.observe)(&entry.event),
                _ => {}
            }
        }
    }

    fn abort_handle(&self) -> AbortHandle {
        self.log.abort_handle()
    }

    fn exit_code(entry: &LogEntry) -> Option<u8> {
        EventStream::exit_code(entry)
    }
}

impl Feed for Run {
    type Event = LifecycleEntry;

    async fn next(&mut self) -> Option<LifecycleEntry> {
        self.next_entry().await
    }

    fn abort_handle(&self) -> AbortHandle {
        Run::abort_handle(self)
    }

    fn exit_code(entry: &LifecycleEntry) -> Option<u8> {
        match &entry.event {
            RunEvent::End(outcome) => Some(exit_code::of(&outcome.result)),
            _ => None,
        }
    }
}

/// A source of input other than a run's events.
pub(crate) trait SideInput<E> {
    type Event;

    /// Waits for the next input. Cancel-safe.
    async fn next(&mut self) -> Self::Event;

    /// Handles an input. Events are not shown meanwhile.
    async fn handle(&mut self, input: Self::Event, sink: &mut dyn Sink<E>, now: Duration);
}

impl<E> SideInput<E> for Signals {
    type Event = ();

    async fn next(&mut self) {
        self.stop_requested().await;
    }

    async fn handle(&mut self, (): (), sink: &mut dyn Sink<E>, now: Duration) {
        sink.stopping(now);
    }
}

/// The result of showing a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShowOutcome {
    /// All output was written.
    pub(crate) written: bool,
    pub(crate) code: u8,
}

/// Starts an agent, shows its events and returns the exit code.
pub(crate) fn agent(
    output: OutputArgs,
    view: View,
    start: impl FnOnce() -> EventStream,
) -> anyhow::Result<u8> {
    let directory = view.directory.clone();
    let sink = sink(output, view, TextIsFinal::WithMessage);
    run(sink, directory.as_deref(), false, async || Ok(start()))
}

/// Starts a run, shows it and returns the exit code. With `keep_background`, background processes of the run stay.
pub(crate) fn run<F: Feed>(
    mut sink: Box<dyn Sink<F::Event>>,
    directory: Option<&Path>,
    keep_background: bool,
    start: impl AsyncFnOnce() -> anyhow::Result<F>,
) -> anyhow::Result<u8> {
    let guard = Guard::start(directory);
    if !keep_background {
        orphans::adopt();
    }
    let code = tokio_runtime()
        .context("cannot start the runtime")?
        .block_on(async {
            let events = start().await?;
            let mut signals =
                Signals::stop(events.abort_handle()).context("cannot listen for signals")?;
            Ok(show(events, &mut *sink, &mut signals).await.code)
        });
    if !keep_background {
        orphans::end(guard.as_ref().map(Guard::pid));
    }
    code
}

/// Creates the sink for an agent's events.
pub(crate) fn sink(output: OutputArgs, view: View, text: TextIsFinal) -> Box<dyn Sink> {
    sink_with(output, Narrator::new(view), text)
}

/// Creates the sink for an agent's events with this narrator.
pub(crate) fn sink_with(
    output: OutputArgs,
    narrator: Narrator,
    text: TextIsFinal,
) -> Box<dyn Sink> {
    // Plain stdout: anstream would strip escape sequences from the agent's text.
    if output.json {
        return Box::new(Json::new(io::stdout()));
    }
    let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
    match (io::stdout().is_terminal(), output.quiet) {
        (true, false) if !dumb => Box::new(EventSink(Terminal::new(
            anstream::stdout(),
            anstream::stderr(),
            TermSpinner::new(),
            narrator,
            || {
                console::Term::stderr()
                    .size_checked()
                    .map(|(_, columns)| usize::from(columns))
            },
        ))),
        (terminal, _) => {
            let plain = Plain::new(io::stdout(), anstream::stderr(), narrator, terminal);
            Box::new(EventSink(match text {
                TextIsFinal::WithRun if !terminal => plain.holding_back(),
                TextIsFinal::AtOnce => plain.streaming(),
                _ => plain,
            }))
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

/// Shows every event of the stream. Reads to the end even if output fails, because no process of the run is left only
/// then. Reports output errors other than a lost reader.
pub(crate) async fn show<F: Feed>(
    mut events: F,
    sink: &mut dyn Sink<F::Event>,
    side_input: &mut impl SideInput<F::Event>,
) -> ShowOutcome {
    let abort = events.abort_handle();
    let start = Instant::now();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let stdout = stdout_pipe();
    let mut lost: Option<io::Error> = None;
    let mut code = None;
    loop {
        let next = tokio::select! {
            biased;
            event = events.next() => event,
            // No event is ready: flush, then wait.
            () = ready(()) => {
                if lost.is_none() && let Err(error) = sink.flush() {
                    lost = Some(error);
                    abort.abort();
                }
                loop {
                    tokio::select! {
                        biased;
                        event = events.next() => break event,
                        input = side_input.next() => side_input.handle(input, sink, start.elapsed()).await,
                        _ = ticks.tick() => if lost.is_none() {
                            if stdout.as_ref().is_some_and(reader_is_gone) {
                                // A silent agent causes no write that would fail, and the run would continue
                                // at a cost.
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
        let Some(event) = next else { break };
        if lost.is_none()
            && let Err(error) = sink.event(&event, start.elapsed())
        {
            lost = Some(error);
            abort.abort();
        }
        code = F::exit_code(&event).or(code);
    }
    // Even if the run completed first, its output is lost.
    if let Some(error) = lost.or_else(|| sink.flush().err()) {
        return ShowOutcome {
            written: false,
            code: exit_code::of_lost(error),
        };
    }
    ShowOutcome {
        written: true,
        // Only a runtime that violates its contract sends no last event.
        code: code.unwrap_or(exit_code::AGENT_ERROR),
    }
}
