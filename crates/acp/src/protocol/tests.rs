//! The lines are made up, based on the output of real agents.

mod commands;
mod elicitation;
mod ending;
mod extensions;
mod modes;
mod offered;
mod permissions;
mod random;
mod schema;
mod starting;
mod turns;

use serde_json::{Value, json};
use teamster_core::provider::{CommandId, Exit, Outbox, SessionAssembler, SessionCommand, grammar};
use teamster_core::{AgentEvent, PermissionRequest, RunResult, Turn};

use super::*;
use crate::dialect::PlainDialect;

const SESSION: &str = "s1";

/// A protocol with a scripted agent.
struct Talk {
    assembler: SessionAssembler,
}

fn settings() -> AcpSettings {
    let options = teamster_core::SessionOptions::default();
    let mut settings = AcpSettings::of(&options);
    settings.directory = "/work".into();
    settings
}

#[expect(clippy::needless_pass_by_value, reason = "shorter tests")]
impl Talk {
    fn new(settings: AcpSettings) -> Self {
        Self::with(Box::new(PlainDialect::new("Agent")), settings)
    }

    fn with(dialect: Box<dyn Dialect>, settings: AcpSettings) -> Self {
        let protocol = AcpProtocol::new(dialect, settings);
        Self {
            // Most of these turns have only the lines that the test is about.
            assembler: SessionAssembler::new(Box::new(protocol)).may_be_silent(|_| true),
        }
    }

    /// Creates one with a session that is ready.
    fn ready() -> Self {
        Self::ready_with(settings(), json!({}))
    }

    fn ready_with(settings: AcpSettings, capabilities: Value) -> Self {
        let mut talk = Self::new(settings);
        talk.initialized(capabilities);
        talk.answer("session/new", json!({"sessionId": SESSION}));
        talk
    }

    fn initialized(&mut self, capabilities: Value) {
        self.answer(
            "initialize",
            json!({"protocolVersion": 1, "agentCapabilities": capabilities}),
        );
    }

    /// Returns all messages written since the last call.
    fn written(&mut self) -> Vec<Value> {
        let bytes = self.assembler.outbox(Outbox::take_input);
        bytes
            .split(|b| *b == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .inspect(schema::check)
            .collect()
    }

    /// Returns the id of the only written request, whose method must be `method`.
    fn request(&mut self, method: &str) -> u64 {
        let written = self.written();
        let [request] = written.as_slice() else {
            panic!("{written:?}");
        };
        assert_eq!(request["method"], method);
        request["id"].as_u64().unwrap()
    }

    fn answer(&mut self, method: &str, result: Value) {
        let id = self.request(method);
        self.line(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn refuse(&mut self, method: &str, code: i64, message: &str) {
        let id = self.request(method);
        let error = json!({"code": code, "message": message});
        self.line(json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    fn line(&mut self, line: Value) {
        self.assembler.line(line.to_string().as_bytes());
    }

    fn update(&mut self, update: Value) {
        self.line(json!({"jsonrpc": "2.0", "method": "session/update",
                         "params": {"sessionId": SESSION, "update": update}}));
    }

    /// Passes a line in which each `HALF` is a lone surrogate.
    fn line_with_half(&mut self, line: &Value) {
        let line = line.to_string().replace("HALF", "\\ud83d");
        self.assembler.line(line.as_bytes());
    }

    fn update_with_half(&mut self, update: &Value) {
        self.line_with_half(&json!({"jsonrpc": "2.0", "method": "session/update",
                                    "params": {"sessionId": SESSION, "update": update}}));
    }

    fn text(&mut self, text: &str) {
        self.update(json!({"sessionUpdate": "agent_message_chunk",
                           "content": {"type": "text", "text": text}}));
    }

    fn begin(&mut self, prompt: &str) {
        self.assembler.begin(Turn::new(prompt));
    }

    fn end(&mut self, stop_reason: &str) -> Vec<AgentEvent> {
        self.answer("session/prompt", json!({"stopReason": stop_reason}));
        self.ended()
    }

    /// Reports the silence that the protocol waits for, if it does.
    fn be_silent(&mut self) {
        if self.assembler.awaited_silence().is_some() {
            self.assembler.silence();
        }
    }

    /// Returns the events of the turn, which must end with the agent's silence.
    fn ended(&mut self) -> Vec<AgentEvent> {
        self.be_silent();
        assert!(self.assembler.is_over());
        self.assembler.end_turn(0);
        let events: Vec<_> = self.assembler.out().drain().collect();
        assert_eq!(grammar::check(&events), Ok(()));
        events
    }

    fn asked(&mut self) -> Vec<PermissionRequest> {
        self.assembler.outbox(Outbox::take_requests)
    }

    fn settled(&mut self) -> Vec<(CommandId, Result<(), AgentError>)> {
        self.assembler.outbox(Outbox::take_answers)
    }

    fn command(&mut self, command: SessionCommand) {
        self.assembler.command(command);
    }
}

fn result(events: &[AgentEvent]) -> &RunResult {
    match events.last() {
        Some(AgentEvent::Done(done)) => &done.result,
        other => panic!("{other:?}"),
    }
}

fn names(events: &[AgentEvent]) -> Vec<&str> {
    events.iter().map(AgentEvent::type_name).collect()
}
