//! Sessions of the real CLI, and hand-made lines for cases that they do not cover.

use std::collections::VecDeque;
use std::path::Path;

use serde_json::{Value, json};
use teamster_core::provider::{CommandId, Exit, Outbox, SessionAssembler, SessionCommand, grammar};
use teamster_core::{
    AgentEvent, Decision, PermissionAnswer, PermissionMode, PermissionPolicy, PermissionRequest,
    RunResult, SessionOptions, Turn,
};

use super::state::CodexSession;

mod agents;
mod any;
mod approvals;
mod commands;
mod dialogs;
mod edges;
mod goals;
mod launching;
mod live;
mod mixed;
mod permissions;
mod recorded;
mod reviews;
mod shown;
mod texts;

const THREAD: &str = "01a1ffe2-7321-7082-a357-131ce2ecf12e";

/// Returns the options of a session in which everything is allowed, as in most recordings.
fn bypassing() -> SessionOptions {
    let mut options = SessionOptions::default();
    options.params.permission = PermissionMode::Bypass;
    // Isolates the session from files of this machine.
    options
        .params
        .env
        .insert("CODEX_HOME".into(), "/nowhere".into());
    options.params.working_directory = Some("/nowhere".into());
    options
}

/// A session and the remaining lines of the CLI.
struct Peer {
    session: SessionAssembler,
    lines: VecDeque<String>,
    /// Written lines that were not inspected yet.
    written: Vec<Value>,
    settled: Vec<(CommandId, Result<(), String>)>,
    unknown: u64,
    asked_for_models: u64,
}

impl Peer {
    fn new(options: &SessionOptions) -> Self {
        Self::of(CodexSession::new(options))
    }

    fn of(protocol: CodexSession) -> Self {
        let mut peer = Self {
            // Most of these turns have only the lines that the test is about.
            session: SessionAssembler::new(Box::new(protocol)).may_be_silent(|_| true),
            lines: VecDeque::new(),
            written: Vec::new(),
            settled: Vec::new(),
            unknown: 0,
            asked_for_models: 0,
        };
        peer.look();
        peer
    }

    /// Creates a session with the CLI's output of a recorded one.
    fn recorded(scenario: &str, options: &SessionOptions) -> Self {
        let mut peer = Self::new(options);
        peer.load(scenario);
        peer
    }

    fn load(&mut self, scenario: &str) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions");
        let file = folder.join(scenario).join("stdout.ndjson");
        let text = std::fs::read_to_string(file).unwrap();
        self.lines.extend(text.lines().map(str::to_owned));
    }

    fn look(&mut self) {
        let written = self.session.outbox(Outbox::take_input);
        for line in written
            .split(|b| *b == b'\n')
            .filter(|line| !line.is_empty())
        {
            let line: Value = serde_json::from_slice(line).unwrap();
            // The recordings do not have this request.
            if line["method"] == "model/list" {
                self.asked_for_models += 1;
            } else {
                self.written.push(line);
            }
        }
        let settled = self.session.outbox(Outbox::take_answers);
        self.settled.extend(
            (settled.into_iter()).map(|(command, result)| (command, result.map_err(|e| e.message))),
        );
    }

    fn line(&mut self, line: &str) {
        self.session.line(line.as_bytes());
        self.look();
    }

    fn json(&mut self, line: &Value) {
        self.line(&line.to_string());
    }

    fn command(&mut self, command: SessionCommand) {
        self.session.command(command);
        self.look();
    }

    fn begin(&mut self, prompt: &str) {
        self.session.begin(Turn::new(prompt));
        self.look();
    }

    /// Runs recorded lines up to the first match, which is not played.
    fn until(&mut self, is_it: impl Fn(&Value) -> bool) {
        while let Some(line) = self.lines.front() {
            if is_it(&serde_json::from_str(line).unwrap()) {
                return;
            }
            let line = line.clone();
            self.lines.pop_front();
            self.line(&line);
        }
        panic!("there is no such line");
    }

    /// Runs recorded lines to the end of the turn.
    fn end(&mut self) -> (Vec<AgentEvent>, RunResult) {
        while !self.session.is_over() {
            let line = self.lines.pop_front().expect("the turn has no end");
            self.line(&line);
        }
        self.over()
    }

    /// Returns the events and the result of the turn, which must be over.
    fn over(&mut self) -> (Vec<AgentEvent>, RunResult) {
        assert!(self.session.is_over());
        self.session.end_turn(0);
        self.result()
    }

    fn result(&mut self) -> (Vec<AgentEvent>, RunResult) {
        let events: Vec<_> = self.session.out().drain().collect();
        assert_eq!(grammar::check(&events), Ok(()));
        let result = match events.last() {
            Some(AgentEvent::Done(done)) => (*done.result).clone(),
            other => panic!("{other:?}"),
        };
        self.unknown += result.diagnostics.unknown + result.diagnostics.malformed;
        (events, result)
    }

    /// Runs a whole turn.
    fn turn(&mut self, prompt: &str) -> (Vec<AgentEvent>, RunResult) {
        self.begin(prompt);
        self.end()
    }

    /// Runs the remaining recorded lines, between two turns.
    fn rest(&mut self) {
        while let Some(line) = self.lines.pop_front() {
            self.line(&line);
        }
        assert_eq!(self.session.turn(), None);
    }

    /// Runs recorded lines until the CLI asks for permission.
    fn asked(&mut self) -> PermissionRequest {
        loop {
            let asked = self.session.outbox(Outbox::take_requests);
            if let Some(asked) = asked.into_iter().next() {
                return asked;
            }
            let line = self.lines.pop_front().expect("nothing is asked");
            self.line(&line);
        }
    }

    /// Answers like the engine.
    fn answer(&mut self, request: &PermissionRequest, answer: PermissionAnswer) {
        self.session.answer(request, answer);
        self.look();
    }

    /// Takes the methods of the written lines; those of answers are `answer`.
    fn methods(&mut self) -> Vec<String> {
        let method = |line: &Value| line["method"].as_str().unwrap_or("answer").to_owned();
        let methods = self.written.iter().map(method).collect();
        self.written.clear();
        methods
    }

    /// Returns the parameters of the last message with this method.
    fn params(&self, method: &str) -> &Value {
        let message = self.written.iter().rfind(|line| line["method"] == method);
        &message.unwrap_or_else(|| panic!("no {method} in {:?}", self.written))["params"]
    }
}

// The following functions make lines in recorded shapes.

fn answer(id: u64, result: &Value) -> Value {
    json!({"id": id, "result": result})
}

fn opened(id: u64) -> Value {
    answer(
        id,
        &json!({"thread": {"id": THREAD}, "model": "gpt-5.5", "approvalPolicy": "on-request",
                "sandbox": {"type": "readOnly", "networkAccess": false}}),
    )
}

fn turn_answer(id: u64, turn: &str) -> Value {
    answer(id, &json!({"turn": {"id": turn, "status": "inProgress"}}))
}

fn notification(method: &str, mut params: Value) -> Value {
    if params["threadId"].is_null() {
        params["threadId"] = json!(THREAD);
    }
    json!({"method": method, "params": params, "emittedAtMs": 1})
}

fn turn_started(turn: &str) -> Value {
    notification(
        "turn/started",
        json!({"turn": {"id": turn, "status": "inProgress"}}),
    )
}

fn turn_ended(turn: &str, status: &str) -> Value {
    notification(
        "turn/completed",
        json!({"turn": {"id": turn, "status": status, "error": null}}),
    )
}

fn item(stage: &str, turn: &str, item: &Value) -> Value {
    notification(
        &format!("item/{stage}"),
        json!({"turnId": turn, "item": item}),
    )
}

fn delta(turn: &str, message: &str, text: &str) -> Value {
    notification(
        "item/agentMessage/delta",
        json!({"turnId": turn, "itemId": message, "delta": text}),
    )
}

fn message(stage: &str, turn: &str, id: &str, text: &str) -> Value {
    item(
        stage,
        turn,
        &json!({"type": "agentMessage", "id": id, "text": text}),
    )
}

fn command(stage: &str, turn: &str, id: &str, status: &str) -> Value {
    item(
        stage,
        turn,
        &json!({"type": "commandExecution", "id": id, "command": "/bin/bash -lc x",
                "processId": "77", "status": status, "aggregatedOutput": "out",
                "exitCode": (status == "completed").then_some(0)}),
    )
}

/// Returns a session whose thread is open and whose first turn `t1` is active.
fn open_session(options: &SessionOptions) -> Peer {
    let mut peer = Peer::new(options);
    peer.begin("hi");
    peer.json(&answer(1, &json!({"userAgent": "x"})));
    peer.json(&opened(2));
    peer.json(&turn_answer(3, "t1"));
    peer.json(&turn_started("t1"));
    peer
}

/// Returns a session after its first turn, in which a prompt `/name` is a command.
fn session_with_commands() -> Peer {
    let mut options = bypassing();
    options.params.slash_commands = true;
    let mut peer = open_session(&options);
    peer.json(&turn_ended("t1", "completed"));
    peer.end();
    peer.written.clear();
    peer
}
