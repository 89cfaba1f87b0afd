//! Shared logic of all providers between a session protocol and the streams of its turns.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::provider::{
    Activity, DecodedResult, Decoder, Events, Exit, Outbox, Phase, RecordFiles, RunAssembler,
    Secrets, SessionCommand, SessionProtocol, Stop,
};
use crate::readable_json::readable;
use crate::setters::setters;
use crate::sync::lock;
use crate::{
    AgentError, AgentEvent, ErrorKind, Id, LogEntry, PermissionAnswer, PermissionMode,
    PermissionRequest, Turn, Usage,
};

/// Limit of events between turns that are kept for the next turn.
const HEAD: usize = 256;

/// Origin of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnOrigin {
    /// The caller sent its prompt.
    Asked,
    /// The CLI began it by itself.
    Unasked,
}

/// Runs a [`SessionProtocol`] on the lines of one process, and a [`RunAssembler`] for each turn.
///
/// It is pure, and both the engine and tests use it.
///
/// [`out`](Self::out) has the events of the current turn only. After each call, the caller takes them, ends the turn
/// if [`is_over`](Self::is_over) returns true, and processes [`outbox`](Self::outbox).
pub struct SessionAssembler {
    protocol: Shared,
    include_native: bool,
    secrets: Secrets,
    turn: Option<Current>,
    out: Events,
    head: Vec<LogEntry>,
    heard: bool,
    resumes: bool,
    may_be_silent: fn(&str) -> bool,
    reset_time: fn(&str) -> Option<u64>,
}

struct Current {
    assembler: RunAssembler,
    asked: bool,
}

setters! {
    SessionAssembler {
        /// Attaches the native line to every event ([`RunAssembler::include_native`]).
        set include_native: bool,
        /// Sets whether the first turn resumes an existing session ([`RunAssembler::resumes`]).
        set resumes: bool,
        /// Sets which prompts may have no output, such as commands of the CLI ([`RunAssembler::may_be_silent`]).
        set may_be_silent: fn(&str) -> bool,
        /// Removes secrets from notices, errors and the end of stderr.
        set secrets as hide: Secrets,
        /// Sets a function that finds the time at which a limit resets ([`RunAssembler::reset_time`]).
        set reset_time: fn(&str) -> Option<u64>,
    }
}

impl SessionAssembler {
    /// Creates an assembler for a process that was just started.
    pub fn new(mut protocol: Box<dyn SessionProtocol>) -> Self {
        protocol.open();
        Self {
            protocol: Shared(Arc::new(Mutex::new(protocol))),
            include_native: false,
            secrets: Secrets::default(),
            turn: None,
            out: Events::new(),
            head: Vec::new(),
            heard: false,
            resumes: false,
            may_be_silent: |_| false,
            reset_time: |_| None,
        }
    }

    /// Begins a turn. No other turn may be in progress.
    pub fn begin(&mut self, turn: Turn) {
        debug_assert!(self.turn.is_none(), "one turn at a time");
        self.turn = Some(self.current(Some(&turn)));
        for entry in self.head.drain(..) {
            self.out.push_entry(entry);
        }
        self.command(SessionCommand::Turn(turn));
    }

    /// Creates the state of a turn; of an unasked one without `turn`.
    fn current(&mut self, turn: Option<&Turn>) -> Current {
        self.out = Events::new();
        let decoder = Box::new(self.protocol.clone());
        let mut assembler = RunAssembler::new(decoder)
            .include_native(self.include_native)
            .hide(self.secrets.clone())
            .reset_time(self.reset_time);
        if self.heard {
            assembler = assembler.started();
        }
        let may_be_silent = |turn: &Turn| (self.may_be_silent)(&turn.prompt);
        assembler = assembler.may_be_silent(turn.is_none_or(may_be_silent));
        if turn.is_some() {
            assembler = assembler.resumes(std::mem::take(&mut self.resumes));
        }
        Current {
            assembler,
            asked: turn.is_some(),
        }
    }

    /// Processes one line without its newline.
    pub fn line(&mut self, line: &[u8]) {
        self.heard = true;
        let idle = self.turn.is_none();
        if idle {
            self.turn = Some(self.current(None));
        }
        if let Some(turn) = &mut self.turn {
            turn.assembler.line(line, &mut self.out);
        }
        if idle {
            self.unasked_or_not();
        }
    }

    /// Keeps the turn if the line that arrived between turns began an unasked one, and discards it otherwise.
    fn unasked_or_not(&mut self) {
        if self.out.as_slice().iter().any(is_of_a_turn) {
            let later: Vec<_> = self.out.drain_entries(0).collect();
            for entry in self.head.drain(..).chain(later) {
                self.out.push_entry(entry);
            }
            return;
        }
        self.turn = None;
        let entries: Vec<_> = self.out.drain_entries(0).collect();
        self.keep(entries);
    }

    /// Keeps entries between turns for the next turn. Only the last of what the session offers counts.
    fn keep(&mut self, entries: impl IntoIterator<Item = LogEntry>) {
        for mut entry in entries.into_iter().filter(is_kept) {
            if let AgentEvent::Offers(change) = &mut entry.event
                && let Some(at) = self.head.iter().position(is_of_offers)
                && let AgentEvent::Offers(mut all) = self.head.remove(at).event
            {
                all.update(change);
                *change = all;
            }
            if self.head.len() < HEAD || is_of_offers(&entry) {
                self.head.push(entry);
            }
        }
    }

    /// Reports a line that was longer than the limit: `bytes` long, beginning with `head`.
    pub fn oversize_line(&mut self, bytes: u64, head: &[u8]) {
        self.heard = true;
        let idle = self.turn.is_none();
        if idle {
            self.turn = Some(self.current(None));
        }
        if let Some(turn) = &mut self.turn {
            turn.assembler.oversize_line(bytes, head, &mut self.out);
        }
        if idle {
            self.unasked_or_not();
        }
    }

    /// Reports output of the turn of this size, in bytes, that was left out ([`RunAssembler::lost_output`]).
    pub fn lost_output(&mut self, bytes: u64) {
        if let Some(turn) = &mut self.turn {
            turn.assembler.lost_output(bytes, &mut self.out);
        }
    }

    /// Returns the silence that the protocol waits for ([`SessionProtocol::awaited_silence`]).
    pub fn awaited_silence(&self) -> Option<Duration> {
        self.protocol.lock().awaited_silence()
    }

    /// Reports that silence to the protocol.
    pub fn silence(&mut self) {
        let protocol = &self.protocol;
        match &mut self.turn {
            Some(turn) => {
                (turn.assembler).events(&mut self.out, |out| protocol.lock().silence(out));
            }
            None => protocol.lock().silence(&mut Events::new()),
        }
    }

    /// Returns the files in which the CLI records data that it does not print, as soon as they are known.
    pub fn record_files(&self) -> Option<RecordFiles> {
        self.protocol.lock().record_files()
    }

    /// Passes a new line of these files to the protocol.
    pub fn record_line(&mut self, line: &str) {
        let replaced = readable(line);
        let line = replaced.as_deref().unwrap_or(line);
        self.protocol.lock().record_line(line);
    }

    /// Passes a command to the protocol.
    pub fn command(&mut self, command: SessionCommand) {
        if let Some(turn) = &mut self.turn {
            let protocol = &self.protocol;
            turn.assembler
                .events(&mut self.out, |out| protocol.lock().command(command, out));
        } else {
            let mut out = Events::new();
            self.protocol.lock().command(command, &mut out);
            self.keep(out.drain_entries(0));
        }
    }

    /// Answers a permission request. The stream reports the outcome: an unsupported answer is a denial, with the
    /// reason.
    pub fn answer(&mut self, request: &PermissionRequest, mut answer: PermissionAnswer) {
        let unsupported = (request.unanswered(&answer))
            .or_else(|| (self.protocol.lock()).unsupported_answer(request.id, &answer));
        if unsupported.is_some() {
            answer = PermissionAnswer::Deny(unsupported);
        }
        if let Some(reported) = request.reported(&answer) {
            self.runtime_event(AgentEvent::Permission(Box::new(reported)));
        }
        self.command(SessionCommand::Answer(request.id, answer));
    }

    /// Adds an event of the engine to the turn in progress, or to the next one.
    pub fn runtime_event(&mut self, event: AgentEvent) {
        match &mut self.turn {
            Some(turn) => turn.assembler.events(&mut self.out, |out| out.push(event)),
            None if self.head.len() < HEAD => self.head.push(event.into()),
            None => {}
        }
    }

    /// Returns the events of the turn that were not taken yet.
    pub fn out(&mut self) -> &mut Events {
        &mut self.out
    }

    /// Returns who began the turn in progress, or `None` if there is none.
    pub fn turn(&self) -> Option<TurnOrigin> {
        self.turn.as_ref().map(|turn| {
            if turn.asked {
                TurnOrigin::Asked
            } else {
                TurnOrigin::Unasked
            }
        })
    }

    /// Returns whether the turn in progress has reached its end.
    pub fn is_over(&self) -> bool {
        (self.turn.as_ref()).is_some_and(|turn| turn.assembler.has_ended())
    }

    /// Returns the error that ends the turn in progress ([`RunAssembler::hopeless`]).
    pub fn hopeless(&self) -> Option<&AgentError> {
        self.turn.as_ref()?.assembler.hopeless()
    }

    /// Returns the CLI's current activity.
    pub fn phase(&self) -> Phase {
        match &self.turn {
            Some(turn) => turn.assembler.phase(),
            None => Phase::Idle,
        }
    }

    /// Returns whether any tool was used in the turn in progress.
    pub fn used_tools(&self) -> bool {
        (self.turn.as_ref()).is_some_and(|turn| turn.assembler.used_tools())
    }

    /// Announces that the process is about to be stopped from outside, or the turn to be interrupted.
    pub fn stop_requested(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.assembler.stop_requested();
        }
    }

    /// Returns whether the turn that has ended was interrupted.
    pub fn interrupted(&self) -> bool {
        self.protocol.lock().interrupted()
    }

    /// Returns why the turn in progress is interrupted: by its caller, or because of an error that cannot heal.
    pub fn interruption(&self) -> Stop {
        let hopeless = self.hopeless().cloned();
        hopeless.map_or(Stop::Aborted, Stop::Failed)
    }

    /// Returns the session's id, or `None` until the session can be resumed by it.
    pub fn session_id(&self) -> Option<Id> {
        self.protocol.lock().session_id()
    }

    /// Returns the cost of the session so far in USD, if the CLI reports it.
    pub fn session_cost_usd(&self) -> Option<f64> {
        self.protocol.lock().session_cost_usd()
    }

    /// Returns the permission mode to which the CLI has changed the session by itself.
    pub fn permission_mode(&self) -> Option<PermissionMode> {
        self.protocol.lock().permission_mode()
    }

    /// Ends the turn while the process continues. `done` is the last event in [`out`](Self::out).
    pub fn end_turn(&mut self, duration_ms: u64) {
        let stop = self.interrupted().then(|| self.interruption());
        let exit = Exit {
            stop,
            ..Exit::default()
        };
        self.end(exit, duration_ms);
    }

    /// Ends the turn, if there is one, after the end of the process.
    pub fn finish(&mut self, exit: Exit, duration_ms: u64) {
        self.end(exit, duration_ms);
    }

    fn end(&mut self, exit: Exit, duration_ms: u64) {
        if let Some(turn) = self.turn.take() {
            turn.assembler.finish(exit, duration_ms, &mut self.out);
        }
    }

    /// Calls `take` with the outbox between the protocol and the engine.
    pub fn outbox<T>(&self, take: impl FnOnce(&mut Outbox) -> T) -> T {
        take(self.protocol.lock().outbox())
    }
}

/// Returns whether an event occurs only in a turn.
fn is_of_a_turn(event: &AgentEvent) -> bool {
    matches!(
        event,
        AgentEvent::Text(_)
            | AgentEvent::Thinking(_)
            | AgentEvent::ToolUse(_)
            | AgentEvent::Permission(_)
            | AgentEvent::Error(_)
    )
}

fn is_of_offers(entry: &LogEntry) -> bool {
    matches!(entry.event, AgentEvent::Offers(_))
}

/// Returns whether an entry between turns is kept for the next turn.
fn is_kept(entry: &LogEntry) -> bool {
    matches!(
        entry.event,
        AgentEvent::SessionStarted(_)
            | AgentEvent::Offers(_)
            | AgentEvent::PermissionMode(_)
            | AgentEvent::Notice(_)
            | AgentEvent::RateLimit(_)
            | AgentEvent::Unknown(_)
            | AgentEvent::Error(_)
    )
}

/// The protocol, as the decoder of the current turn.
#[derive(Clone)]
struct Shared(Arc<Mutex<Box<dyn SessionProtocol>>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Box<dyn SessionProtocol>> {
        // A protocol that panicked is not used again.
        lock(&self.0)
    }
}

impl Decoder for Shared {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        self.lock().line(line, out);
    }

    fn takes_text(&self) -> bool {
        self.lock().takes_text()
    }

    fn plain_line(&mut self, line: &[u8]) {
        self.lock().plain_line(line);
    }

    fn stop_requested(&mut self) {
        self.lock().stop_requested();
    }

    fn finish(&mut self, exit: &Exit, out: &mut Events) -> DecodedResult {
        self.lock().finish(exit, out)
    }

    fn recorded_model(&self) -> Option<String> {
        self.lock().recorded_model()
    }

    fn record_line(&mut self, line: &str) -> Option<Usage> {
        self.lock().record_line(line)
    }

    fn activity(&self) -> Activity {
        self.lock().activity()
    }

    fn stderr_evidence<'a>(&self, stderr: &'a str) -> Cow<'a, str> {
        self.lock().stderr_evidence(stderr)
    }

    fn classify_exit_code(&self, code: i32) -> Option<ErrorKind> {
        self.lock().classify_exit_code(code)
    }

    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        self.lock().classify_stderr(stderr)
    }
}

#[cfg(test)]
mod tests;
