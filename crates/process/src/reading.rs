//! From lines to events.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use teamster_core::{AgentError, Events, Exit, Phase, RunAssembler};

use crate::framing::Frame;
use crate::guard::{Panicked, panic_error};
use crate::on_disk::Notice;
use crate::queue::Producer;

/// Decodes lines and hands the events over.
pub(crate) struct Reading {
    /// Gone when the stream has its end.
    assembler: Option<RunAssembler>,
    out: Events,
    panicked: Panicked,
    /// Why lines are no longer decoded.
    pub(crate) failed: Option<AgentError>,
}

impl Reading {
    pub(crate) fn new(assembler: RunAssembler, panicked: Panicked) -> Self {
        Self {
            assembler: Some(assembler),
            out: Events::new(),
            panicked,
            failed: None,
        }
    }

    /// Something that the engine itself has to say.
    pub(crate) fn notice(&mut self, notice: Notice) {
        if self.assembler.is_some() {
            self.out.push(notice.event());
        }
    }

    pub(crate) fn frame(&mut self, frame: Frame<'_>) {
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

    /// Hands over the events. A failure here, or in the decoder, ends the run.
    pub(crate) fn flush(&mut self, queue: &Producer) {
        if let Err(error) = queue.push(&mut self.out) {
            self.failed.get_or_insert(error);
        }
        if self.failed.is_none() {
            self.failed = self.panicked.error();
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.assembler
            .as_ref()
            .map_or(Phase::Ended, RunAssembler::phase)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.assembler.as_ref().is_none_or(RunAssembler::has_ended)
    }

    /// The process is about to be stopped.
    pub(crate) fn stop_requested(&mut self) {
        if let Some(assembler) = &mut self.assembler {
            assembler.stop_requested();
        }
    }

    pub(crate) fn used_tools(&self) -> bool {
        self.assembler
            .as_ref()
            .is_some_and(RunAssembler::used_tools)
    }

    /// Whether the stream has its end.
    pub(crate) fn is_over(&self) -> bool {
        self.assembler.is_none()
    }

    /// Gives the stream its end.
    pub(crate) fn finish(&mut self, exit: Exit, duration: Duration, queue: &Producer) {
        let Some(assembler) = self.assembler.take() else {
            return;
        };
        let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let out = &mut self.out;
        // The decoder cannot panic, and with that the rest should not either; but a stream without
        // an end would hang its reader.
        if catch_unwind(AssertUnwindSafe(|| assembler.finish(exit, ms, out))).is_err() {
            for event in RunAssembler::refuse(panic_error()) {
                out.push(event);
            }
        }
        queue.close(out);
    }
}
