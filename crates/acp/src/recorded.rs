//! Decoder of recorded runs.

use std::borrow::Cow;

use teamster_core::provider::{
    DecodedResult, Decoder, Events, Exit, RecordFiles, SessionCommand, SessionProtocol,
};
use teamster_core::{AgentEvent, ErrorKind, PermissionPolicy, Turn, Usage};

use crate::protocol::AcpProtocol;

/// Decodes an agent's output as a session of one turn. Nothing is sent to an agent: the recorded responses match
/// because request ids are deterministic. Permission requests are denied, as in a run.
pub struct RecordedRun {
    protocol: AcpProtocol,
    turn: Option<Turn>,
    /// True if the turn must be interrupted before the next line.
    interrupt: bool,
}

impl RecordedRun {
    /// Creates the decoder of a run with this prompt.
    pub fn new(protocol: AcpProtocol, prompt: impl Into<String>) -> Self {
        Self {
            protocol,
            turn: Some(Turn::new(prompt)),
            interrupt: false,
        }
    }

    /// Applies the orders that precede the next line.
    fn advance(&mut self, out: &mut Events) {
        if let Some(turn) = self.turn.take() {
            self.protocol.open();
            self.protocol.command(SessionCommand::Turn(turn), out);
        }
        if std::mem::take(&mut self.interrupt) {
            self.protocol.command(SessionCommand::Interrupt, out);
        }
    }

    fn answer(&mut self, out: &mut Events) {
        let policy = PermissionPolicy::Deny;
        for request in self.protocol.outbox().take_requests() {
            if let Some(answer) = policy.answer(&request) {
                out.push(AgentEvent::Permission(Box::new(request.answered(&answer))));
                self.protocol
                    .command(SessionCommand::Answer(request.id, answer), out);
            }
        }
    }
}

impl Decoder for RecordedRun {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        self.advance(out);
        // Output after the end of the turn belongs to no run.
        if !self.protocol.has_ended() {
            self.protocol.line(line, out);
            self.answer(out);
        }
    }

    fn finish(&mut self, exit: &Exit, out: &mut Events) -> DecodedResult {
        self.advance(out);
        self.protocol.finish(exit, out)
    }

    fn stop_requested(&mut self) {
        self.interrupt = true;
    }

    fn record_files(&self) -> Option<RecordFiles> {
        self.protocol.record_files()
    }

    fn record_line(&mut self, line: &str) -> Option<Usage> {
        self.protocol.record_line(line)
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
