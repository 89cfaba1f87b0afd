//! A protocol that records the agent's lines as evidence.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use teamster_core::provider::{
    Activity, DecodedResult, Decoder, Events, Exit, Outbox, RecordFiles, SessionCommand,
    SessionProtocol,
};
use teamster_core::{ErrorKind, Id, PermissionAnswer, PermissionMode, Usage};

use super::Printed;

/// Wrapper of another protocol or decoder that records the received lines.
pub(crate) struct Watched<P: ?Sized> {
    inner: Box<P>,
    directory: PathBuf,
    printed: Arc<Printed>,
}

impl<P: ?Sized> Watched<P> {
    pub(crate) fn new(inner: Box<P>, directory: PathBuf, printed: Arc<Printed>) -> Self {
        Self {
            inner,
            directory,
            printed,
        }
    }
}

impl<P: Decoder + ?Sized> Decoder for Watched<P> {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        self.printed.keep(&self.directory, line);
        self.inner.line(line, out);
    }

    fn takes_text(&self) -> bool {
        self.inner.takes_text()
    }

    fn plain_line(&mut self, line: &[u8]) {
        self.printed.keep(&self.directory, line);
        self.inner.plain_line(line);
    }

    fn finish(&mut self, exit: &Exit, out: &mut Events) -> DecodedResult {
        self.inner.finish(exit, out)
    }

    fn record_files(&self) -> Option<RecordFiles> {
        self.inner.record_files()
    }

    fn record_line(&mut self, line: &str) -> Option<Usage> {
        self.inner.record_line(line)
    }

    fn recorded_model(&self) -> Option<String> {
        self.inner.recorded_model()
    }

    fn stop_requested(&mut self) {
        self.inner.stop_requested();
    }

    fn activity(&self) -> Activity {
        self.inner.activity()
    }

    fn stderr_evidence<'a>(&self, stderr: &'a str) -> Cow<'a, str> {
        self.inner.stderr_evidence(stderr)
    }

    fn classify_exit_code(&self, code: i32) -> Option<ErrorKind> {
        self.inner.classify_exit_code(code)
    }

    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        self.inner.classify_stderr(stderr)
    }
}

impl<P: SessionProtocol + ?Sized> SessionProtocol for Watched<P> {
    fn outbox(&mut self) -> &mut Outbox {
        self.inner.outbox()
    }

    fn open(&mut self) {
        self.inner.open();
    }

    fn command(&mut self, command: SessionCommand, out: &mut Events) {
        self.inner.command(command, out);
    }

    fn unsupported_answer(&self, id: u64, answer: &PermissionAnswer) -> Option<String> {
        self.inner.unsupported_answer(id, answer)
    }

    fn awaited_silence(&self) -> Option<Duration> {
        self.inner.awaited_silence()
    }

    fn silence(&mut self, out: &mut Events) {
        self.inner.silence(out);
    }

    fn interrupted(&self) -> bool {
        self.inner.interrupted()
    }

    fn session_id(&self) -> Option<Id> {
        self.inner.session_id()
    }

    fn session_cost_usd(&self) -> Option<f64> {
        self.inner.session_cost_usd()
    }

    fn permission_mode(&self) -> Option<PermissionMode> {
        self.inner.permission_mode()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use teamster_acp::{AcpProtocol, AcpSettings, PlainDialect};
    use teamster_core::provider::SessionAssembler;
    use teamster_core::{SessionOptions, Turn};

    use super::*;

    /// Made by hand: the shortest turn of an agent.
    #[test]
    fn a_watched_turn_ends_with_the_silence_of_its_agent() {
        let dialect = Box::new(PlainDialect::new("Agent"));
        let protocol = AcpProtocol::new(dialect, AcpSettings::of(&SessionOptions::default()));
        let printed = Arc::new(Printed::default());
        let watched = Watched::new(Box::new(protocol), "/work".into(), printed);
        let mut assembler = SessionAssembler::new(Box::new(watched));
        assembler.begin(Turn::new("hi"));
        for (id, result) in [
            (1, json!({"protocolVersion": 1})),
            (2, json!({"sessionId": "s1"})),
            (3, json!({"stopReason": "end_turn"})),
        ] {
            assert!(!assembler.is_over());
            let line = json!({"jsonrpc": "2.0", "id": id, "result": result});
            assembler.line(line.to_string().as_bytes());
        }
        assert_eq!(
            assembler.awaited_silence(),
            Some(Duration::from_millis(250))
        );
        assembler.silence();
        assert!(assembler.is_over());
    }
}
