//! Recorded sessions through a protocol, for the tests of those who use it.
//!
//! A recording is an agent's output, line by line. The recorder may have numbered its
//! requests in another way, and made other requests as well: a response is given to the request of the
//! same sort that waits, under its own number, and left out if there is none.

mod in_any_order;

use std::collections::VecDeque;
use std::str::Lines;

use serde_json::{Value, json};
use teamster_core::provider::{
    Exchange, Exit, Order, OrderId, SessionAssembler, SessionProtocol, grammar,
};
use teamster_core::{
    AgentError, AgentEvent, Decision, ExecuteParams, Permission, PermissionAnswer,
    PermissionRequest, RunResult, SessionOptions, SessionProvider, Turn,
};

pub use in_any_order::in_any_order;

/// The result of a turn.
///
/// # Panics
///
/// If its events are no stream as it must be, or one of them is not known.
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

/// The names of the events' types, each once where several of one type follow one another.
pub fn names(events: &[AgentEvent]) -> Vec<&'static str> {
    let mut names: Vec<_> = events.iter().map(AgentEvent::type_name).collect();
    names.dedup();
    names
}

/// A recording that is being played.
pub struct Replay<'a> {
    assembler: SessionAssembler,
    lines: Lines<'a>,
    /// Requests that wait: number and method.
    waiting: VecDeque<(u64, String)>,
    written: Vec<Value>,
    asked: Vec<PermissionRequest>,
    settled: Vec<(OrderId, Result<(), AgentError>)>,
    answer: PermissionAnswer,
    grants_modes: bool,
}

impl<'a> Replay<'a> {
    /// The recording `stdout`, by this protocol.
    pub fn new(protocol: Box<dyn SessionProtocol>, stdout: &'a str) -> Self {
        Self {
            assembler: SessionAssembler::new(protocol, false),
            lines: stdout.lines(),
            waiting: VecDeque::new(),
            written: Vec::new(),
            asked: Vec::new(),
            settled: Vec::new(),
            answer: PermissionAnswer::Deny(None),
            grants_modes: false,
        }
    }

    /// The recording `stdout`, in a session of this provider's with changed parameters.
    pub fn of(
        provider: &dyn SessionProvider,
        stdout: &'a str,
        change: impl FnOnce(&mut ExecuteParams),
    ) -> Self {
        let mut params = ExecuteParams::new("");
        change(&mut params);
        Self::new(provider.protocol(&SessionOptions::new(params)), stdout)
    }

    /// The recording knows nothing of requests for a mode: they are granted once the agent has sent its
    /// commands.
    pub fn grant_modes(&mut self) -> &mut Self {
        self.grants_modes = true;
        self
    }

    /// Sets the answer to further permission requests.
    pub fn answer(&mut self, answer: PermissionAnswer) -> &mut Self {
        self.answer = answer;
        self
    }

    /// A turn, to its end.
    pub fn turn(&mut self, prompt: &str) -> Vec<AgentEvent> {
        self.play(Turn::new(prompt), None)
    }

    /// A turn that is interrupted before the first line with this text in it.
    pub fn interrupted(&mut self, prompt: &str, before: &str) -> Vec<AgentEvent> {
        self.play(Turn::new(prompt), Some(before))
    }

    fn play(&mut self, turn: Turn, mut interrupt: Option<&str>) -> Vec<AgentEvent> {
        self.assembler.begin(turn);
        loop {
            self.deal();
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
                self.assembler.order(Order::Interrupt);
                self.deal();
            }
            self.line(line);
        }
        self.assembler.out().drain().collect()
    }

    /// An order, to its end.
    pub fn order(&mut self, order: impl FnOnce(OrderId) -> Order) -> Result<(), AgentError> {
        let id = OrderId(u64::MAX);
        self.assembler.order(order(id));
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

    /// Messages written to the agent since the last call.
    pub fn written(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.written)
    }

    /// The requests for permission since this was called before.
    pub fn asked(&mut self) -> Vec<PermissionRequest> {
        std::mem::take(&mut self.asked)
    }

    /// The assembler of the events.
    pub fn assembler(&mut self) -> &mut SessionAssembler {
        &mut self.assembler
    }

    /// Gives a line to the protocol, under the number that it knows.
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

    /// Which of the requests that wait this answers.
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
                // Errors can be of any.
                has_error || method.starts_with("session/set_")
            }
        };
        let at = self.waiting.iter().position(|(_, method)| fits(method))?;
        self.waiting.remove(at).map(|(number, _)| number)
    }

    /// Simulates the engine after each line.
    fn deal(&mut self) {
        loop {
            let written = self.assembler.exchange(Exchange::take_written);
            for line in written.split(|b| *b == b'\n').filter(|it| !it.is_empty()) {
                let message: Value = serde_json::from_slice(line).unwrap_or(Value::Null);
                if let (Some(id), Some(method)) =
                    (message["id"].as_u64(), message["method"].as_str())
                {
                    self.waiting.push_back((id, method.to_owned()));
                }
                self.written.push(message);
            }
            let settled = self.assembler.exchange(Exchange::take_settled);
            self.settled.extend(settled);
            let asked = self.assembler.exchange(Exchange::take_asked);
            if asked.is_empty() {
                break;
            }
            for request in asked {
                let decision = match &self.answer {
                    PermissionAnswer::Deny(_) => Decision::Denied,
                    _ => Decision::Allowed,
                };
                let event = AgentEvent::Permission(Box::new(
                    Permission::new(request.tool_name.clone(), decision)
                        .tool_id(request.tool_id.clone()),
                ));
                self.assembler.runtime_event(event);
                let answer = Order::Answer(request.id, self.answer.clone());
                self.assembler.order(answer);
                self.asked.push(request);
            }
        }
    }
}
