//! Isolation of panics in decoders.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use teamster_core::provider::{
    Activity, DecodedResult, Decoder, Events, Exit, Outbox, RecordFiles, SessionCommand,
    SessionProtocol,
};
use teamster_core::{
    AgentError, ErrorCode, ErrorKind, Id, PermissionAnswer, PermissionMode, Usage,
};

/// Flag that is set when the decoder panics.
#[derive(Debug, Clone, Default)]
pub(crate) struct Panicked(Arc<AtomicBool>);

impl Panicked {
    /// Returns the error if the decoder has panicked.
    pub(crate) fn error(&self) -> Option<AgentError> {
        self.0.load(Ordering::Relaxed).then(panic_error)
    }
}

pub(crate) fn panic_error() -> AgentError {
    AgentError::new(
        ErrorCode::StreamEndedEarly,
        ErrorKind::Internal,
        "the decoder of this CLI's output panicked, so the run could not be read to its end; this \
         is a bug in teamster, the message on standard error has the location",
    )
}

/// Passes all calls to a decoder until it panics, and none afterwards. So a bug in a decoder affects one run, and
/// that run still ends properly.
pub(crate) struct Guarded<D: Decoder + ?Sized> {
    decoder: Box<D>,
    panicked: Panicked,
}

impl<D: Decoder + ?Sized> Guarded<D> {
    pub(crate) fn new(decoder: Box<D>) -> (Self, Panicked) {
        let panicked = Panicked::default();
        let guarded = Self {
            decoder,
            panicked: panicked.clone(),
        };
        (guarded, panicked)
    }

    fn has_panicked(&self) -> bool {
        self.panicked.0.load(Ordering::Relaxed)
    }

    fn catch<T>(&mut self, call: impl FnOnce(&mut D) -> T) -> Option<T> {
        if self.has_panicked() {
            return None;
        }
        // The decoder is never used again, so its state does not matter. Events are
        // pushed as complete values.
        let decoder = &mut *self.decoder;
        let result = catch_unwind(AssertUnwindSafe(|| call(decoder)));
        if result.is_err() {
            self.panicked.0.store(true, Ordering::Relaxed);
        }
        result.ok()
    }

    fn ask<T>(&self, otherwise: T, question: impl FnOnce(&D) -> T) -> T {
        if self.has_panicked() {
            return otherwise;
        }
        catch_unwind(AssertUnwindSafe(|| question(&*self.decoder))).unwrap_or(otherwise)
    }
}

// Implements every method, including those with a default, which would silently replace the decoder's own.
impl<D: Decoder + ?Sized> Decoder for Guarded<D> {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        self.catch(|decoder| decoder.line(line, out));
    }

    fn stop_requested(&mut self) {
        self.catch(Decoder::stop_requested);
    }

    fn takes_text(&self) -> bool {
        self.ask(false, D::takes_text)
    }

    fn plain_line(&mut self, line: &[u8]) {
        self.catch(|decoder| decoder.plain_line(line));
    }

    fn finish(&mut self, exit: &Exit, out: &mut Events) -> DecodedResult {
        let before = self.has_panicked();
        let summary = self.catch(|decoder| decoder.finish(exit, out));
        if summary.is_none() && !before {
            out.error(panic_error());
        }
        summary.unwrap_or_default()
    }

    fn record_files(&self) -> Option<RecordFiles> {
        self.ask(None, D::record_files)
    }

    fn record_line(&mut self, line: &str) -> Option<Usage> {
        self.catch(|decoder| decoder.record_line(line)).flatten()
    }

    fn recorded_model(&self) -> Option<String> {
        self.ask(None, D::recorded_model)
    }

    fn activity(&self) -> Activity {
        self.ask(Activity::None, D::activity)
    }

    fn stderr_evidence<'a>(&self, stderr: &'a str) -> Cow<'a, str> {
        self.ask(Cow::Borrowed(stderr), |d| d.stderr_evidence(stderr))
    }

    fn classify_exit_code(&self, code: i32) -> Option<ErrorKind> {
        self.ask(None, |decoder| decoder.classify_exit_code(code))
    }

    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        self.ask(None, |decoder| decoder.classify_stderr(stderr))
    }
}

impl SessionProtocol for Guarded<dyn SessionProtocol> {
    fn outbox(&mut self) -> &mut Outbox {
        self.decoder.outbox()
    }

    fn open(&mut self) {
        self.catch(SessionProtocol::open);
    }

    fn command(&mut self, command: SessionCommand, out: &mut Events) {
        self.catch(|protocol| protocol.command(command, out));
    }

    fn unsupported_answer(&self, id: u64, answer: &PermissionAnswer) -> Option<String> {
        self.ask(None, |protocol| protocol.unsupported_answer(id, answer))
    }

    fn awaited_silence(&self) -> Option<Duration> {
        self.ask(None, SessionProtocol::awaited_silence)
    }

    fn silence(&mut self, out: &mut Events) {
        self.catch(|protocol| protocol.silence(out));
    }

    fn interrupted(&self) -> bool {
        self.ask(false, SessionProtocol::interrupted)
    }

    fn session_id(&self) -> Option<Id> {
        self.ask(None, SessionProtocol::session_id)
    }

    fn session_cost_usd(&self) -> Option<f64> {
        self.ask(None, SessionProtocol::session_cost_usd)
    }

    fn permission_mode(&self) -> Option<PermissionMode> {
        self.ask(None, SessionProtocol::permission_mode)
    }
}
