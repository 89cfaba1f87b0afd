//! Replays recorded sessions through a protocol, for tests of providers.
//!
//! A recording is the agent's output, line by line. The recorder's request ids may differ, and it may have sent other
//! requests. A recorded response therefore goes to the waiting request of the same kind, with the id changed to
//! match. A response without such a request is skipped.

mod in_any_order;

use std::collections::VecDeque;
use std::str::Lines;

use serde_json::{Value, json};
use teamster_core::provider::{
    CommandId, Exit, Outbox, SessionAssembler, SessionCommand, SessionProtocol, grammar,
};
use teamster_core::{
    AgentError, AgentEvent, ExecuteParams, PermissionAnswer, PermissionRequest, RunResult,
    SessionOptions, SessionProvider, Turn,
};

pub use in_any_order::in_any_order;

/// Returns the result of a turn.
///
/// # Panics
///
/// Panics if the events violate the stream grammar, or if one of them is unknown.
pub fn result(events: &[AgentEvent]) -> &RunResult {
    assert_eq!(grammar::check(events), Ok(()));
    let is_unknown = |event: &&AgentEvent| matches!(event, AgentEvent::Unknown(_));
    let unknown: Vec<_> = events.iter().filter(is_unknown).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    match events.last() {
        Some(AgentEvent::Done(done)) => &done.result,
        other => panic!("{other:?}"),
    }
}

/// Returns the type names of a turn's events, without those about the session. Repetitions of one type are merged.
pub fn names(events: &[AgentEvent]) -> Vec<&'static str> {
    let is_of_turn =
        |it: &&AgentEvent| !matches!(it, AgentEvent::Offers(_) | AgentEvent::Context(_));
    let of_turn = events.iter().filter(is_of_turn);
    let mut names: Vec<_> = of_turn.map(AgentEvent::type_name).collect();
    names.dedup();
    names
}

/// A recording that is being replayed.
pub struct Replay<'a> {
    assembler: SessionAssembler,
    lines: Lines<'a>,
    /// Requests without a response: id and method.
    waiting: VecDeque<(u64, String)>,
    written: Vec<Value>,
    asked: Vec<PermissionRequest>,
    settled: Vec<(CommandId, Result<(), AgentError>)>,
    answer: PermissionAnswer,
    grants_modes: bool,
}

impl<'a> Replay<'a> {
    /// Creates a replay of the recording `stdout` with this protocol.
    pub fn new(protocol: Box<dyn SessionProtocol>, stdout: &'a str) -> Self {
        Self {
            assembler: SessionAssembler::new(protocol),
            lines: stdout.lines(),
            waiting: VecDeque::new(),
            written: Vec::new(),
            asked: Vec::new(),
            settled: Vec::new(),
            answer: PermissionAnswer::Deny(None),
            grants_modes: false,
        }
    }

    /// Creates a replay of the recording `stdout` in a session of this provider, with changed parameters.
    pub fn of(
        provider: &dyn SessionProvider,
        stdout: &'a str,
        change: impl FnOnce(&mut ExecuteParams),
    ) -> Self {
        let mut params = ExecuteParams::new("");
        change(&mut params);
        Self::new(provider.protocol(&SessionOptions::new(params)), stdout)
    }

    /// Grants requests for a mode once the agent has sent its commands. This is for recordings without such requests.
    pub fn grant_modes(&mut self) -> &mut Self {
        self.grants_modes = true;
        self
    }

    /// Sets the answer to later permission requests. The default denies them.
    pub fn answer(&mut self, answer: PermissionAnswer) -> &mut Self {
        self.answer = answer;
        self
    }

    /// Plays a turn to its end and returns its events.
    pub fn turn(&mut self, prompt: &str) -> Vec<AgentEvent> {
        self.play(Turn::new(prompt), None)
    }

    /// Plays a turn and interrupts it before the first line that contains `before`.
    pub fn interrupted(&mut self, prompt: &str, before: &str) -> Vec<AgentEvent> {
        self.play(Turn::new(prompt), Some(before))
    }

    fn play(&mut self, turn: Turn, mut interrupt: Option<&str>) -> Vec<AgentEvent> {
        self.assembler.begin(turn);
        loop {
            self.deal();
            // A recording has no times: what follows an answer may be of the next turn.
            if self.assembler.awaited_silence().is_some() {
                self.assembler.silence();
            }
            if self.assembler.is_over() {
                self.assembler.end_turn(0);
                break;
            }
            let Some(line) = self.lines.next() else {
                let exit = Exit {
                    code: Some(0),
                    ..Exit::default()
                };
                self.assembler.finish(exit, 0);
                break;
            };
            if interrupt.is_some_and(|text| line.contains(text)) {
                interrupt = None;
                self.assembler.stop_requested();
                self.assembler.command(SessionCommand::Interrupt);
                self.deal();
            }
            self.line(line);
        }
        self.assembler.out().drain().collect()
    }

    /// Sends a command and plays lines until it is settled.
    ///
    /// # Errors
    ///
    /// Returns the command's error, or one if the recording ends first.
    pub fn command(
        &mut self,
        command: impl FnOnce(CommandId) -> SessionCommand,
    ) -> Result<(), AgentError> {
        let id = CommandId::new(u64::MAX);
        self.assembler.command(command(id));
        loop {
            self.deal();
            if let Some(at) = self.settled.iter().position(|(it, _)| *it == id) {
                return self.settled.remove(at).1;
            }
            match self.lines.next() {
                Some(line) => self.line(line),
                None => return Err(AgentError::invalid_params("the recording has ended")),
            }
        }
    }

    /// Returns the messages written to the agent since the last call.
    pub fn written(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.written)
    }

    /// Returns the permission requests since the last call.
    pub fn asked(&mut self) -> Vec<PermissionRequest> {
        std::mem::take(&mut self.asked)
    }

    /// Returns the assembler of the events.
    pub fn assembler(&mut self) -> &mut SessionAssembler {
        &mut self.assembler
    }

    /// Passes a line to the protocol, with the request id that the protocol expects.
    fn line(&mut self, line: &str) {
        let Ok(mut message) = serde_json::from_str::<Value>(line) else {
            return self.assembler.line(line.as_bytes());
        };
        if message.get("method").is_some() || message.get("id").is_none() {
            self.assembler.line(line.as_bytes());
            if self.grants_modes && line.contains("available_commands_update") {
                self.answer_modes();
            }
            return;
        }
        let Some(number) = self.number_for(&message) else {
            return;
        };
        message["id"] = json!(number);
        self.assembler.line(message.to_string().as_bytes());
    }

    fn answer_modes(&mut self) {
        self.deal();
        let is_mode = |(_, method): &(u64, String)| method == "session/set_mode";
        if let Some(at) = self.waiting.iter().position(is_mode)
            && let Some((number, _)) = self.waiting.remove(at)
        {
            let line = json!({"jsonrpc": "2.0", "id": number, "result": {}});
            self.assembler.line(line.to_string().as_bytes());
        }
    }

    /// Returns the id of the waiting request that this response fits, and removes it.
    fn number_for(&mut self, response: &Value) -> Option<u64> {
        let result = &response["result"];
        let has_error = response.get("error").is_some();
        let has = |name: &str| result.get(name).is_some();
        let fits = |method: &str| {
            if has("protocolVersion") {
                method == "initialize"
            } else if has("stopReason") {
                method == "session/prompt"
            } else if has("sessionId") || has("modes") || has("configOptions") {
                matches!(
                    method,
                    "session/new"
                        | "session/load"
                        | "session/resume"
                        | "session/fork"
                        | "session/set_config_option"
                )
            } else {
                // An error can respond to any request.
                has_error || method.starts_with("session/set_")
            }
        };
        let at = self.waiting.iter().position(|(_, method)| fits(method))?;
        self.waiting.remove(at).map(|(number, _)| number)
    }

    /// Simulates the engine's work after each line.
    fn deal(&mut self) {
        loop {
            let written = self.assembler.outbox(Outbox::take_input);
            for line in written.split(|b| *b == b'\n').filter(|it| !it.is_empty()) {
                let message: Value = serde_json::from_slice(line).unwrap_or(Value::Null);
                if let (Some(id), Some(method)) =
                    (message["id"].as_u64(), message["method"].as_str())
                {
                    self.waiting.push_back((id, method.to_owned()));
                }
                self.written.push(message);
            }
            let settled = self.assembler.outbox(Outbox::take_answers);
            self.settled.extend(settled);
            let asked = self.assembler.outbox(Outbox::take_requests);
            if asked.is_empty() {
                break;
            }
            for request in asked {
                let event = request.answered(&self.answer);
                self.assembler
                    .runtime_event(AgentEvent::Permission(Box::new(event)));
                let answer = SessionCommand::Answer(request.id, self.answer.clone());
                self.assembler.command(answer);
                self.asked.push(request);
            }
        }
    }
}
