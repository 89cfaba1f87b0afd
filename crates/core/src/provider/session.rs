//! Session protocols of CLIs.

mod assemble;

use std::time::Duration;

use serde::Serialize;

pub use assemble::{SessionAssembler, TurnOrigin};

use crate::provider::{Decoder, Events};
use crate::{AgentError, Id, PermissionAnswer, PermissionMode, PermissionRequest, Turn};

/// Protocol of one process of a session: a [`Decoder`] of its output, and the encoder of its input.
///
/// It is pure: it uses no clock and no I/O. Every process has its own protocol. The engine guarantees:
///
/// - There is at most one turn at a time.
/// - A turn ends when the decoder has pushed a [`TurnEnd`](crate::TurnEnd) and
///   [`activity`](Decoder::activity) is [`None`](crate::provider::Activity::None).
/// - [`finish`](Decoder::finish) is called once for each turn, at its end. If the process continues, the
///   [`Exit`](crate::provider::Exit) has neither code nor signal.
///
/// Input for the CLI goes to [`exchange`](Self::exchange), which the engine empties after each call. Lines between
/// turns are passed to [`Decoder::line`] as well. If such a line yields events that only a turn has, the CLI
/// has begun an unasked turn.
pub trait SessionProtocol: Decoder {
    /// Returns the exchange between the protocol and the engine.
    fn exchange(&mut self) -> &mut Exchange;

    /// Called once after the start of the process.
    fn open(&mut self) {}

    /// Executes an order. The engine only sends orders within [`SessionCapabilities`](crate::SessionCapabilities).
    /// Events, such as the error of a turn that cannot begin, go to `out`.
    fn order(&mut self, order: Order, out: &mut Events);

    /// Returns the reason why the CLI does not support this answer to the request with this id, or `None` if it does.
    /// An unsupported answer becomes a denial with this reason.
    fn unsupported_answer(&self, id: u64, answer: &PermissionAnswer) -> Option<String> {
        let _ = (id, answer);
        None
    }

    /// Returns the silence that the protocol waits for, or `None` if it waits for none. This is for CLIs that may print
    /// more of a turn after they have reported its end.
    fn awaited_silence(&self) -> Option<Duration> {
        None
    }

    /// Called once the CLI has printed nothing of the turn for [`awaited_silence`](Self::awaited_silence). The lines of
    /// [`record_files`](Decoder::record_files) that exist by then were passed, unless a read of them takes longer.
    fn silence(&mut self, out: &mut Events) {
        let _ = out;
    }

    /// Returns whether the turn that has just ended was interrupted, as reported by the CLI.
    fn interrupted(&self) -> bool;

    /// Returns the session's id, or `None` until it is known and the session can be resumed by it.
    fn session_id(&self) -> Option<Id>;

    /// Returns the cost of the session so far in USD, including earlier processes. `None` if the CLI does not report
    /// it.
    fn session_cost_usd(&self) -> Option<f64> {
        None
    }
}

/// An order of the engine to a [`SessionProtocol`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Order {
    /// Start this turn, as soon as the process is ready.
    Turn(Turn),
    /// Interrupt the turn in progress.
    Interrupt,
    /// Send this message to the turn in progress. MUST be [settled](Exchange::settle).
    Steer(OrderId, String),
    /// Begin a new session in the same process. MUST be [settled](Exchange::settle).
    Clear(OrderId),
    /// Change the model. MUST be [settled](Exchange::settle).
    SetModel(OrderId, String),
    /// Change the permission mode. MUST be [settled](Exchange::settle).
    SetPermission(OrderId, PermissionMode),
    /// Answer the [`PermissionRequest`] with this id.
    Answer(u64, PermissionAnswer),
    /// End the process. The engine closes stdin after the pending input is written.
    Close,
}

/// Id of an [`Order`] whose caller waits for the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OrderId(pub u64);

/// Exchange between a [`SessionProtocol`] and the engine.
#[derive(Debug, Default)]
pub struct Exchange {
    written: Vec<u8>,
    settled: Vec<(OrderId, Result<(), AgentError>)>,
    asked: Vec<PermissionRequest>,
    withdrawn: Vec<u64>,
}

impl Exchange {
    /// Creates an empty exchange.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes one line of JSON to the CLI. Every line is complete and valid, because several CLIs exit at an invalid
    /// line.
    pub fn write(&mut self, message: &impl Serialize) {
        let from = self.written.len();
        if serde_json::to_writer(&mut self.written, message).is_ok() {
            self.written.push(b'\n');
        } else {
            // Only keys that are not strings can fail, and no protocol writes those.
            debug_assert!(false, "a message that is no JSON");
            self.written.truncate(from);
        }
    }

    /// Reports the outcome of an order.
    pub fn settle(&mut self, order: OrderId, result: Result<(), AgentError>) {
        self.settled.push((order, result));
    }

    /// Adds a permission request. [`Order::Answer`] will answer it.
    pub fn ask(&mut self, request: PermissionRequest) {
        self.asked.push(request);
    }

    /// Withdraws a request that needs no answer any more.
    pub fn withdraw(&mut self, id: u64) {
        self.asked.retain(|asked| asked.id != id);
        self.withdrawn.push(id);
    }

    /// Takes the pending input of the CLI.
    pub fn take_written(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.written)
    }

    /// Takes the outcomes of orders.
    pub fn take_settled(&mut self) -> Vec<(OrderId, Result<(), AgentError>)> {
        std::mem::take(&mut self.settled)
    }

    /// Takes the permission requests.
    pub fn take_asked(&mut self) -> Vec<PermissionRequest> {
        std::mem::take(&mut self.asked)
    }

    /// Takes the ids of withdrawn requests.
    pub fn take_withdrawn(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.withdrawn)
    }
}
