//! Readers: decode the output of a process to events.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Context;
use std::time::Duration;

use teamster_core::AgentError;
use teamster_core::provider::{Events, Exit, Phase, RecordFiles, RunAssembler, Stop};
use teamster_core::time::millis;
use tokio::time::Instant;

use crate::framing::Frame;
use crate::guard::{Panicked, panic_error};
use crate::notice::Notice;
use crate::queue::Producer;
use crate::session::commands::CommandTimes;
use crate::stop_signals::StopSignals;
use crate::watchdog::Limits;

/// Interprets the output of one process and has the requests of its callers.
pub(crate) trait Reader: Send {
    /// Polls the requests of callers. Returns whether there are new ones.
    fn poll(&mut self, cx: &mut Context<'_>) -> bool;

    /// Takes the pending input of the process.
    fn take_input(&mut self) -> Vec<u8>;

    /// Processes a line, or the beginning of one that was too long.
    fn frame(&mut self, frame: Frame<'_>);

    /// Reports that the output after the decision to stop, of this size in bytes, was not decoded to its end.
    fn lost_output(&mut self, bytes: u64);

    /// Returns the files in which the CLI records data that it does not print.
    fn record_files(&self) -> Option<RecordFiles>;

    /// Returns whether new lines of these files are wanted now, without a caller that follows them.
    fn wants_record(&self) -> bool {
        false
    }

    /// Processes lines of these files.
    fn record_lines(&mut self, lines: &[String]);

    /// Adds a notice of the engine.
    fn notice(&mut self, notice: Notice);

    /// Passes the events to the queue. A failure of the queue or the decoder is then in [`failed`](Self::failed).
    fn flush(&mut self);

    /// Returns the error after which lines are no longer decoded.
    fn failed(&self) -> Option<&AgentError>;

    /// Returns the reason why the process must be stopped now, other than a failure.
    fn stop_wanted(&self) -> Option<Stop>;

    /// Returns the error of a request that the CLI retries although it cannot succeed. The process is then
    /// stopped, unless it ends by itself. A session interrupts the turn instead.
    fn hopeless(&self) -> Option<&AgentError> {
        None
    }

    /// Returns the time at which [`stop_wanted`](Self::stop_wanted) may change without an event.
    fn deadline(&self) -> Option<Instant>;

    /// Returns whether the process is to be stopped by force.
    fn force(&self) -> bool;

    /// Announces that the process is about to be stopped.
    fn stop_requested(&mut self);

    /// Returns the CLI's current activity as seen in its output.
    fn phase(&self) -> Phase;

    /// Returns the current time limits.
    fn limits(&self) -> Limits;

    /// Returns the start of the phase's limit, if that was later than the last line.
    fn since(&self) -> Option<Instant>;

    /// Returns whether a turn is being interrupted, which the process may survive.
    fn is_interrupting(&self) -> bool {
        false
    }

    /// Takes the times of commands, if a turn is about to be interrupted while a command runs.
    fn take_interrupted_commands(&mut self) -> Option<CommandTimes> {
        None
    }

    /// Takes the times of commands of an interrupted turn that has ended since the last call.
    fn take_ended_commands(&mut self) -> Option<CommandTimes> {
        None
    }

    /// Returns whether a turn of a session is in progress.
    fn is_in_turn(&self) -> bool {
        false
    }

    /// Returns whether nothing but the exit of the process is expected.
    fn has_ended(&self) -> bool;

    /// Returns whether any tool was used.
    fn used_tools(&self) -> bool;

    /// Returns whether all streams have ended.
    fn is_over(&self) -> bool;

    /// Ends the stream after the exit of the process. `duration` is the process's lifetime.
    fn finish(&mut self, exit: Exit, duration: Duration);
}

/// Reader of a run: decodes its lines and passes the events to the queue.
pub(crate) struct Reading {
    /// `None` after the end of the stream.
    assembler: Option<RunAssembler>,
    out: Events,
    queue: Producer,
    stop_signals: StopSignals,
    limits: Limits,
    panicked: Panicked,
    failed: Option<AgentError>,
}

impl Reading {
    pub(crate) fn new(
        assembler: RunAssembler,
        panicked: Panicked,
        queue: Producer,
        stop_signals: StopSignals,
        limits: Limits,
    ) -> Self {
        Self {
            assembler: Some(assembler),
            out: Events::new(),
            queue,
            stop_signals,
            limits,
            panicked,
            failed: None,
        }
    }
}

impl Reader for Reading {
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        self.stop_signals.poll(cx)
    }

    fn take_input(&mut self) -> Vec<u8> {
        Vec::new()
    }

    fn notice(&mut self, notice: Notice) {
        if self.assembler.is_some() {
            self.out.push(notice.event());
        }
    }

    fn frame(&mut self, frame: Frame<'_>) {
        if self.failed.is_some() {
            return;
        }
        let Some(assembler) = &mut self.assembler else {
            return;
        };
        match frame {
            Frame::Line(line) => assembler.line(line, &mut self.out),
            Frame::Oversize { bytes, head } => assembler.oversize_line(bytes, head, &mut self.out),
        }
    }

    fn lost_output(&mut self, bytes: u64) {
        if let Some(assembler) = &mut self.assembler {
            assembler.lost_output(bytes, &mut self.out);
        }
    }

    fn record_files(&self) -> Option<RecordFiles> {
        self.assembler.as_ref()?.record_files()
    }

    fn record_lines(&mut self, lines: &[String]) {
        if let Some(assembler) = &mut self.assembler {
            for line in lines {
                assembler.record_line(line, &mut self.out);
            }
        }
    }

    fn flush(&mut self) {
        if let Err(error) = self.queue.push(&mut self.out) {
            self.failed.get_or_insert(error);
        }
        if self.failed.is_none() {
            self.failed = self.panicked.error();
        }
    }

    fn failed(&self) -> Option<&AgentError> {
        self.failed.as_ref()
    }

    fn stop_wanted(&self) -> Option<Stop> {
        if !self.stop_signals.stop {
            None
        } else if self.has_ended() {
            // The turn has ended, so only the exit is awaited.
            Some(Stop::Lingering)
        } else {
            Some(Stop::Aborted)
        }
    }

    fn hopeless(&self) -> Option<&AgentError> {
        self.assembler.as_ref()?.hopeless()
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn force(&self) -> bool {
        self.stop_signals.force
    }

    fn stop_requested(&mut self) {
        if let Some(assembler) = &mut self.assembler {
            assembler.stop_requested();
        }
    }

    fn phase(&self) -> Phase {
        self.assembler
            .as_ref()
            .map_or(Phase::Ended, RunAssembler::phase)
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn since(&self) -> Option<Instant> {
        None
    }

    fn has_ended(&self) -> bool {
        self.assembler.as_ref().is_none_or(RunAssembler::has_ended)
    }

    fn used_tools(&self) -> bool {
        self.assembler
            .as_ref()
            .is_some_and(RunAssembler::used_tools)
    }

    fn is_over(&self) -> bool {
        self.assembler.is_none()
    }

    fn finish(&mut self, exit: Exit, duration: Duration) {
        let Some(assembler) = self.assembler.take() else {
            return;
        };
        let out = &mut self.out;
        // A panic of the decoder is caught elsewhere, and no other code should panic. A stream without an end would
        // hang its reader, so a panic is caught here as well.
        let finish = || assembler.finish(exit, millis(duration), out);
        if catch_unwind(AssertUnwindSafe(finish)).is_err() {
            for event in RunAssembler::refuse(panic_error()) {
                out.push(event);
            }
        }
        self.queue.close(out);
    }
}
