//! From lines to events.

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
use crate::orders::Orders;
use crate::queue::Producer;
use crate::session::commands::CommandTimes;
use crate::watchdog::Limits;

/// Makes something of what one process prints, and knows what is wanted of it.
pub(crate) trait Reader: Send {
    /// Looks at what the caller wants; whether there is news.
    fn poll(&mut self, cx: &mut Context<'_>) -> bool;

    /// Takes the pending input of the process.
    fn take_input(&mut self) -> Vec<u8>;

    /// A line, or what is known of one that was too long.
    fn frame(&mut self, frame: Frame<'_>);

    /// The files in which the CLI records what it does not print.
    fn record_files(&self) -> Option<RecordFiles>;

    /// Takes lines of these files.
    fn record_lines(&mut self, lines: &[String]);

    /// Something that the engine itself has to say.
    fn notice(&mut self, notice: Notice);

    /// Hands over the events. A failure here, or in the decoder, makes it [`failed`](Self::failed).
    fn flush(&mut self);

    /// Why lines are no longer decoded.
    fn failed(&self) -> Option<&AgentError>;

    /// Why the process must be stopped now, beside a failure.
    fn stop_wanted(&self) -> Option<Stop>;

    /// When [`stop_wanted`](Self::stop_wanted) is to be asked again although nothing has happened.
    fn deadline(&self) -> Option<Instant>;

    /// Whether it is to be stopped by force.
    fn force(&self) -> bool;

    /// The process is about to be stopped.
    fn stop_requested(&mut self);

    /// The CLI's current activity as seen in its output.
    fn phase(&self) -> Phase;

    /// The limits of time that hold now.
    fn limits(&self) -> Limits;

    /// When the limit of the phase began, if that was later than the last line.
    fn since(&self) -> Option<Instant>;

    /// Whether a turn is being interrupted, which the process may live through.
    fn is_interrupting(&self) -> bool {
        false
    }

    /// When commands ran, if a turn is about to be interrupted while one does.
    fn take_interrupted_commands(&mut self) -> Option<CommandTimes> {
        None
    }

    /// Whether a turn that was interrupted has come to its end since the last call.
    fn take_interrupted_is_over(&mut self) -> bool {
        false
    }

    /// Whether nothing more is expected of the process but its end.
    fn has_ended(&self) -> bool;

    /// Whether any tool was used.
    fn used_tools(&self) -> bool;

    /// Whether all streams have their end.
    fn is_over(&self) -> bool;

    /// The process is gone, after this time: gives the stream its end.
    fn finish(&mut self, exit: Exit, duration: Duration);
}

/// Decodes the lines of a run and hands the events over.
pub(crate) struct Reading {
    /// Gone when the stream has its end.
    assembler: Option<RunAssembler>,
    out: Events,
    queue: Producer,
    orders: Orders,
    limits: Limits,
    panicked: Panicked,
    failed: Option<AgentError>,
}

impl Reading {
    pub(crate) fn new(
        assembler: RunAssembler,
        panicked: Panicked,
        queue: Producer,
        orders: Orders,
        limits: Limits,
    ) -> Self {
        Self {
            assembler: Some(assembler),
            out: Events::new(),
            queue,
            orders,
            limits,
            panicked,
            failed: None,
        }
    }
}

impl Reader for Reading {
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        self.orders.poll(cx)
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
        if !self.orders.stop {
            None
        } else if self.has_ended() {
            // There is nothing left to abort, only to wait for.
            Some(Stop::Lingering)
        } else {
            Some(Stop::Aborted)
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn force(&self) -> bool {
        self.orders.force
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
        // The decoder cannot panic, and with that the rest should not either; but a stream without
        // an end would hang its reader.
        let finish = || assembler.finish(exit, millis(duration), out);
        if catch_unwind(AssertUnwindSafe(finish)).is_err() {
            for event in RunAssembler::refuse(panic_error()) {
                out.push(event);
            }
        }
        self.queue.close(out);
    }
}
