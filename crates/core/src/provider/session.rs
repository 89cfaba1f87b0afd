//! Session protocols of CLIs.

mod assemble;

use serde::Serialize;

pub use assemble::SessionAssembler;

use crate::provider::{Decoder, Events};
use crate::{AgentError, Id, PermissionAnswer, PermissionMode, PermissionRequest, Turn};

/// Talks to one process of a session: a [`Decoder`] for its output and the other direction with it.
///
/// It is pure: no clock, no I/O. A new one is made for every process. The engine sees to it that there
/// is at most one turn at a time, that a turn ends when the decoder has pushed a
/// [`TurnEnd`](crate::TurnEnd) and [`activity`](Decoder::activity) is [`None`](crate::provider::Activity::None), and that
/// then [`finish`](Decoder::finish) is called: with an [`Exit`](crate::provider::Exit) that has neither code nor signal if the
/// process lives on, so it is called once for each turn.
///
/// What it has to write goes to [`exchange`](Self::exchange), which the engine empties after each call.
/// A line that comes while no turn is played goes to [`Decoder::line`] as well; if events come of it that
/// only a turn has, that is a turn that the CLI began by itself.
pub trait SessionProtocol: Decoder {
    /// The exchange between the protocol and the engine.
    fn exchange(&mut self) -> &mut Exchange;

    /// The process was started.
    fn open(&mut self) {}

    /// Carries out an order. Only orders within [`SessionCapabilities`](crate::SessionCapabilities) are
    /// given. Events, such as the error of a turn that cannot begin, go to `out`.
    fn order(&mut self, order: Order, out: &mut Events);

    /// Why this answer to the request with this id cannot be given to the CLI, if it cannot. The request
    /// is denied then, with this as the reason.
    fn unsupported_answer(&self, id: u64, answer: &PermissionAnswer) -> Option<String> {
        let _ = (id, answer);
        None
    }

    /// Whether the turn that has just ended was interrupted, by its end's own word.
    fn interrupted(&self) -> bool;

    /// The session's id, as soon as it is known and the session can be resumed by it.
    fn session_id(&self) -> Option<Id>;

    /// Cost of the session so far in USD, if the CLI reports it: an earlier process and this one
    /// together.
    fn session_cost_usd(&self) -> Option<f64> {
        None
    }
}

/// An order of the engine to a [`SessionProtocol`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Order {
    /// Play this turn. If the process is not ready for it yet, as soon as it is.
    Turn(Turn),
    /// Interrupt the turn that is being played.
    Interrupt,
    /// Say this in the turn that is being played. To be [settled](Exchange::settle).
    Steer(OrderId, String),
    /// Begin a new session in the same process. To be [settled](Exchange::settle).
    Clear(OrderId),
    /// Change the model. To be [settled](Exchange::settle).
    SetModel(OrderId, String),
    /// Change the permission mode. To be [settled](Exchange::settle).
    SetPermission(OrderId, PermissionMode),
    /// The answer to a [`PermissionRequest`], by its id.
    Answer(u64, PermissionAnswer),
    /// The process shall end: stdin is closed once what is written now has been read.
    Close,
}

/// The number of an [`Order`] whose caller waits for its end.
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
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes one line of JSON to the CLI. Every line is whole and valid: several CLIs end at the first
    /// that is not.
    pub fn write(&mut self, message: &impl Serialize) {
        let from = self.written.len();
        if serde_json::to_writer(&mut self.written, message).is_ok() {
            self.written.push(b'\n');
        } else {
            // Nothing that a protocol writes has keys that are no text, which is all that can fail.
            debug_assert!(false, "a message that is no JSON");
            self.written.truncate(from);
        }
    }

    /// An order was carried out, or could not be.
    pub fn settle(&mut self, order: OrderId, result: Result<(), AgentError>) {
        self.settled.push((order, result));
    }

    /// The CLI wants to know whether a tool may be used: [`Order::Answer`] will say.
    pub fn ask(&mut self, request: PermissionRequest) {
        self.asked.push(request);
    }

    /// A request needs no answer any more.
    pub fn withdraw(&mut self, id: u64) {
        self.asked.retain(|asked| asked.id != id);
        self.withdrawn.push(id);
    }

    /// Takes what is to be written.
    pub fn take_written(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.written)
    }

    /// Takes the orders that were carried out, or could not be.
    pub fn take_settled(&mut self) -> Vec<(OrderId, Result<(), AgentError>)> {
        std::mem::take(&mut self.settled)
    }

    /// Takes the requests for permission.
    pub fn take_asked(&mut self) -> Vec<PermissionRequest> {
        std::mem::take(&mut self.asked)
    }

    /// Takes the ids of requests that need no answer any more.
    pub fn take_withdrawn(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.withdrawn)
    }
}
