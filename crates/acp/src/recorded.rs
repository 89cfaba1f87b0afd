//! The lines of a recorded run to events.

use std::borrow::Cow;

use teamster_core::provider::{Decoder, Events, Exit, Order, RunSummary, SessionProtocol};
use teamster_core::{AgentEvent, ErrorKind, PermissionPolicy, Turn};

use crate::protocol::AcpProtocol;

/// Decodes an agent's output in a session of one turn. Nothing is written to it: its answers are those to
/// the requests that the protocol makes, which have the same numbers each time. Its permission requests
/// are denied, as in a run.
pub struct RecordedRun {
    protocol: AcpProtocol,
    turn: Option<Turn>,
    /// The turn is to be interrupted.
    interrupt: bool,
}

impl RecordedRun {
    /// A run of this prompt.
    pub fn new(protocol: AcpProtocol, prompt: impl Into<String>) -> Self {
        Self {
            protocol,
            turn: Some(Turn::new(prompt)),
            interrupt: false,
        }
    }

    /// Does what was done before the next line came.
    fn advance(&mut self, out: &mut Events) {
        if let Some(turn) = self.turn.take() {
            self.protocol.open();
            self.protocol.order(Order::Turn(turn), out);
        }
        if std::mem::take(&mut self.interrupt) {
            self.protocol.order(Order::Interrupt, out);
        }
    }

    fn answer(&mut self, out: &mut Events) {
        let policy = PermissionPolicy::Deny;
        for request in self.protocol.exchange().take_asked() {
            if let Some(answer) = policy.answer(&request) {
                out.push(AgentEvent::Permission(Box::new(request.answered(&answer))));
                self.protocol.order(Order::Answer(request.id, answer), out);
            }
        }
    }
}

impl Decoder for RecordedRun {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        self.advance(out);
        // What comes after the turn belongs to no run.
        if !self.protocol.has_ended() {
            self.protocol.line(line, out);
            self.answer(out);
        }
    }

    fn finish(&mut self, exit: &Exit, out: &mut Events) -> RunSummary {
        self.advance(out);
        self.protocol.finish(exit, out)
    }

    fn stop_requested(&mut self) {
        self.interrupt = true;
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
