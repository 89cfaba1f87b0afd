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
/// Input for the CLI goes to [`outbox`](Self::outbox), which the engine empties after each call. Lines between
/// turns are passed to [`Decoder::line`] as well. If such a line yields events that only a turn has, the CLI
/// has begun an unasked turn.
pub trait SessionProtocol: Decoder {
    /// Returns what the protocol has for the engine.
    fn outbox(&mut self) -> &mut Outbox;

    /// Called once after the start of the process.
    fn open(&mut self) {}

    /// Executes a command. The engine only sends commands within [`SessionCapabilities`](crate::SessionCapabilities).
    /// Events, such as the error of a turn that cannot begin, go to `out`.
    fn command(&mut self, command: SessionCommand, out: &mut Events);

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

    /// Returns the permission mode to which the CLI has changed the session by itself, or `None` since the last
    /// [`SessionCommand::SetPermission`]. A later process of the session begins in it.
    fn permission_mode(&self) -> Option<PermissionMode> {
        None
    }
}

/// A command of the engine to a [`SessionProtocol`].
#[derive(Debug)]
#[non_exhaustive]
pub enum SessionCommand {
    /// Start this turn, as soon as the process is ready.
    Turn(Turn),
    /// Interrupt the turn in progress.
    Interrupt,
    /// Send this message to the turn in progress. MUST be [answered](Outbox::answer).
    Steer(CommandId, String),
    /// Begin a new session in the same process. MUST be [answered](Outbox::answer).
    Clear(CommandId),
    /// Change the model. MUST be [answered](Outbox::answer).
    SetModel(CommandId, String),
    /// Change the permission mode. MUST be [answered](Outbox::answer).
    SetPermission(CommandId, PermissionMode),
    /// Answer the [`PermissionRequest`] with this id.
    Answer(u64, PermissionAnswer),
    /// End the process. The engine closes stdin after the pending input is written.
    Close,
}

/// Id of a [`SessionCommand`] whose caller waits for the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(u64);

impl CommandId {
    /// Creates the id with this number. The numbers of a process's commands MUST differ.
    pub fn new(number: u64) -> Self {
        Self(number)
    }
}

/// What a [`SessionProtocol`] has for the engine: input for the CLI, answers to commands, and requests.
#[derive(Debug, Default)]
pub struct Outbox {
    input: Vec<u8>,
    answers: Vec<(CommandId, Result<(), AgentError>)>,
    requests: Vec<PermissionRequest>,
    withdrawn: Vec<u64>,
}

impl Outbox {
    /// Creates an empty outbox.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes one line of JSON to the CLI. Every line is complete and valid, because several CLIs exit at an invalid
    /// line.
    pub fn write(&mut self, message: &impl Serialize) {
        let from = self.input.len();
        if serde_json::to_writer(&mut self.input, message).is_ok() {
            self.input.push(b'\n');
        } else {
            // Only keys that are not strings can fail, and no protocol writes those.
            debug_assert!(false, "a message that is no JSON");
            self.input.truncate(from);
        }
    }

    /// Reports the outcome of a command.
    pub fn answer(&mut self, command: CommandId, result: Result<(), AgentError>) {
        self.answers.push((command, result));
    }

    /// Answers a command that the process does not support, if it must be answered.
    pub fn refuse(&mut self, command: &SessionCommand, why: &str) {
        if let SessionCommand::Steer(id, _)
        | SessionCommand::Clear(id)
        | SessionCommand::SetModel(id, _)
        | SessionCommand::SetPermission(id, _) = command
        {
            self.answer(*id, Err(AgentError::invalid_params(why)));
        }
    }

    /// Adds a permission request. [`SessionCommand::Answer`] will answer it.
    pub fn ask(&mut self, request: PermissionRequest) {
        self.requests.push(request);
    }

    /// Withdraws a request that needs no answer any more.
    pub fn withdraw(&mut self, id: u64) {
        self.requests.retain(|request| request.id != id);
        self.withdrawn.push(id);
    }

    /// Takes the pending input of the CLI.
    pub fn take_input(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.input)
    }

    /// Takes the outcomes of commands.
    pub fn take_answers(&mut self) -> Vec<(CommandId, Result<(), AgentError>)> {
        std::mem::take(&mut self.answers)
    }

    /// Takes the permission requests.
    pub fn take_requests(&mut self) -> Vec<PermissionRequest> {
        std::mem::take(&mut self.requests)
    }

    /// Takes the ids of withdrawn requests.
    pub fn take_withdrawn(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.withdrawn)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ToolKind;

    #[test]
    fn parts_of_an_outbox_are_taken_once() {
        let mut outbox = Outbox::new();
        outbox.write(&json!({"a": 1}));
        outbox.write(&json!("b"));
        assert_eq!(outbox.take_input(), b"{\"a\":1}\n\"b\"\n");
        outbox.answer(CommandId::new(7), Ok(()));
        assert_eq!(outbox.take_answers(), [(CommandId::new(7), Ok(()))]);
        let request = |id| PermissionRequest::new(id, "Bash", ToolKind::Execute, json!({}));
        for id in [1, 2, 3] {
            outbox.ask(request(id));
        }
        // One that was taken before can be withdrawn too.
        outbox.withdraw(2);
        outbox.withdraw(9);
        assert_eq!(outbox.take_requests(), [request(1), request(3)]);
        assert_eq!(outbox.take_withdrawn(), [2, 9]);
        assert!(outbox.take_input().is_empty() && outbox.take_answers().is_empty());
        assert!(outbox.take_requests().is_empty() && outbox.take_withdrawn().is_empty());
    }
}
