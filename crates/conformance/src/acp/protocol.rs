//! A protocol that records the agent's lines as evidence.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use teamster_core::provider::{
    Activity, Decoder, Events, Exchange, Exit, Order, RunSummary, SessionProtocol,
};
use teamster_core::{ErrorKind, Id, PermissionAnswer};

use crate::agent::Printed;

/// Wrapper of another protocol that records the received lines.
pub(crate) struct Watched {
    inner: Box<dyn SessionProtocol>,
    directory: PathBuf,
    printed: Arc<Printed>,
}

impl Watched {
    pub(crate) fn new(
        inner: Box<dyn SessionProtocol>,
        directory: PathBuf,
        printed: Arc<Printed>,
    ) -> Self {
        Self {
            inner,
            directory,
            printed,
        }
    }
}

impl Decoder for Watched {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        self.printed.keep(&self.directory, line);
        self.inner.line(line, out);
    }

    fn plain_line(&mut self, line: &[u8]) {
        self.printed.keep(&self.directory, line);
        self.inner.plain_line(line);
    }

    fn finish(&mut self, exit: &Exit, out: &mut Events) -> RunSummary {
        self.inner.finish(exit, out)
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

impl SessionProtocol for Watched {
    fn exchange(&mut self) -> &mut Exchange {
        self.inner.exchange()
    }

    fn open(&mut self) {
        self.inner.open();
    }

    fn order(&mut self, order: Order, out: &mut Events) {
        self.inner.order(order, out);
    }

    fn unsupported_answer(&self, id: u64, answer: &PermissionAnswer) -> Option<String> {
        self.inner.unsupported_answer(id, answer)
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
}
