//! The lines of a recorded run to events.

use std::borrow::Cow;

use teamster_core::provider::{Decoder, Events, Exit, Order, RunSummary, SessionProtocol};
use teamster_core::{ErrorKind, Turn};

use crate::protocol::AcpProtocol;

/// Decodes what an agent has printed in a session of one turn. Nothing is written to it: its answers are
/// those to the requests that the protocol makes, which have the same numbers each time.
pub struct RecordedRun {
    protocol: AcpProtocol,
    turn: Option<Turn>,
}

impl RecordedRun {
    /// A run of this prompt.
    pub fn new(protocol: AcpProtocol, prompt: impl Into<String>) -> Self {
        Self {
            protocol,
            turn: Some(Turn::new(prompt)),
        }
    }
}

impl Decoder for RecordedRun {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        if let Some(turn) = self.turn.take() {
            self.protocol.open();
            self.protocol.order(Order::Turn(turn), out);
        }
        self.protocol.line(line, out);
    }

    fn finish(&mut self, exit: &Exit, out: &mut Events) -> RunSummary {
        self.protocol.finish(exit, out)
    }

    fn stderr_evidence<'a>(&self, stderr: &'a str) -> Cow<'a, str> {
        self.protocol.stderr_evidence(stderr)
    }

    fn classify_exit_code(&self, code: i32) -> Option<ErrorKind> {
        self.protocol.classify_exit_code(code)
    }

    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        self.protocol.classify_stderr(stderr)
    }
}
