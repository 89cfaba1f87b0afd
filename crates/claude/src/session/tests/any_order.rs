//! Random lines of the CLI and random orders, in any order.

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use teamster_core::provider::grammar::Checker;
use teamster_core::provider::{CommandId, Exit, Outbox, SessionAssembler, SessionCommand};
use teamster_core::{
    PermissionAnswer, PermissionMode, PermissionPolicy, SessionOptions, SessionProvider, Turn,
};

use super::{NEW, OLD, ask, init, replay, result};
use crate::Claude;

/// A step. The numbers select ids that were written.
#[derive(Debug, Clone)]
enum Step {
    Line(usize, usize),
    Garbage(Vec<u8>),
    Turn(&'static str),
    Steer,
    Interrupt,
    Clear,
    SetModel,
    SetPermission(PermissionMode),
    Answer(u64, bool),
    /// The process exits, and a new one starts.
    Exit,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let line = (0..lines("", "").len(), 0..8_usize).prop_map(|(line, id)| Step::Line(line, id));
    let modes = prop_oneof![
        Just(PermissionMode::Default),
        Just(PermissionMode::ReadOnly),
        Just(PermissionMode::Bypass)
    ];
    let step = prop_oneof![
        12 => line,
        1 => prop::collection::vec(any::<u8>(), 0..40).prop_map(Step::Garbage),
        4 => prop_oneof![Just("x"), Just(""), Just("/x")].prop_map(Step::Turn),
        2 => Just(Step::Steer),
        2 => Just(Step::Interrupt),
        1 => Just(Step::Clear),
        1 => Just(Step::SetModel),
        1 => modes.prop_map(Step::SetPermission),
        1 => (0..4_u64, any::<bool>()).prop_map(|(id, yes)| Step::Answer(id, yes)),
        1 => Just(Step::Exit),
    ];
    prop::collection::vec(step, 0..60)
}

/// Returns lines that refer to a message and a request.
fn lines(message: &str, request: &str) -> Vec<Value> {
    let message = json!(message);
    let session = |id: &str| -> Vec<Value> {
        let of = json!({"session_id": id, "parent_tool_use_id": null});
        let with = |mut line: Value| {
            for (name, value) in of.as_object().into_iter().flatten() {
                line[name] = value.clone();
            }
            line
        };
        let text = json!({"type": "text", "text": "a"});
        let tool = json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": {}});
        let done = json!({"type": "tool_result", "tool_use_id": "t1", "content": "x"});
        let assistant = |content: &Value| json!({"type": "assistant", "message": {"id": "m1", "model": "m", "content": [content]}});
        let start = json!({"type": "message_start", "message": {"id": "m2"}});
        let delta = json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "text_delta", "text": "b"}});
        let child = json!({"type": "assistant", "parent_tool_use_id": "t1", "session_id": id,
            "message": {"id": "m3", "content": [{"type": "tool_use", "id": "t2", "name": "Read"}]}});
        vec![
            init(id),
            replay(&message, id),
            with(json!({"type": "stream_event", "event": start})),
            with(json!({"type": "stream_event", "event": delta})),
            with(assistant(&text)),
            with(assistant(&tool)),
            with(json!({"type": "user", "message": {"content": [done]}})),
            child,
            result(id, &json!({"total_cost_usd": 0.5})),
            result(
                id,
                &json!({"total_cost_usd": 0.25, "num_turns": 0, "result": ""}),
            ),
            result(
                id,
                &json!({"is_error": true, "terminal_reason": "aborted_tools"}),
            ),
            result(
                id,
                &json!({"origin": {"kind": "task-notification"},
                "model_usage_since_last_result": {"m": {"inputTokens": 3, "costUSD": 0.5}}}),
            ),
        ]
    };
    let lifecycle =
        |state: &str| json!({"type": "command_lifecycle", "command_uuid": message, "state": state});
    let answer = |response: Value| {
        json!({"type": "control_response",
            "response": {"subtype": "success", "request_id": request, "response": response}})
    };
    let task = |state: &str| json!({"type": "system", "subtype": state, "task_id": "j", "status": "completed"});
    let mut all = session(OLD);
    all.extend(session(NEW));
    all.extend(["queued", "started", "completed", "cancelled", "refused"].map(lifecycle));
    all.extend([
        answer(json!({"cancelled": true})),
        answer(json!({"cancelled": false})),
        json!({"type": "control_response",
            "response": {"subtype": "error", "request_id": request, "error": "no"}}),
        ask("Bash"),
        json!({"type": "control_cancel_request", "request_id": "r-1"}),
        json!({"type": "control_request", "request_id": "r-2", "request": {"subtype": "new"}}),
        task("task_started"),
        task("task_notification"),
        json!({"type": "conversation_reset"}),
    ]);
    all
}

/// Simulates an engine and asserts the invariants.
struct Engine {
    session: SessionAssembler,
    checker: Option<Checker>,
    messages: Vec<String>,
    requests: Vec<String>,
    orders: u64,
    settled: HashSet<CommandId>,
}

impl Engine {
    fn new() -> Self {
        let mut this = Self {
            session: start(),
            checker: None,
            messages: vec!["none".into()],
            requests: vec!["none".into()],
            orders: 0,
            settled: HashSet::new(),
        };
        this.settle();
        this
    }

    fn next_order(&mut self) -> CommandId {
        self.orders += 1;
        CommandId::new(self.orders)
    }

    fn settle(&mut self) {
        let events: Vec<_> = self.session.out().drain().collect();
        if let Some(checker) = &mut self.checker {
            for event in &events {
                assert_eq!(checker.event(event), Ok(()), "{event:?}");
            }
        } else {
            assert!(events.is_empty(), "{events:?}");
        }
        let written = self.session.outbox(Outbox::take_input);
        assert!(written.is_empty() || written.last() == Some(&b'\n'));
        for line in written.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
            let line: Value = serde_json::from_slice(line).expect("a line of JSON");
            if let Some(id) = line["uuid"].as_str() {
                self.messages.push(id.to_owned());
            } else if line["type"] == "control_request" {
                let id = line["request_id"].as_str().expect("an id");
                self.requests.push(id.to_owned());
            }
        }
        for (command, _) in self.session.outbox(Outbox::take_answers) {
            assert!(self.settled.insert(command), "{command:?} twice");
            assert!(command <= CommandId::new(self.orders));
        }
        if self.session.is_over() {
            self.session.end_turn(0);
            self.done();
        }
    }

    /// Checks the events of a turn that has ended.
    fn done(&mut self) {
        let events: Vec<_> = self.session.out().drain().collect();
        let mut checker = self.checker.take().expect("a turn");
        for event in &events {
            assert_eq!(checker.event(event), Ok(()), "{event:?}");
        }
        assert_eq!(checker.finish(), Ok(()));
        self.settle();
    }

    fn line(&mut self, line: &[u8]) {
        self.session.line(line);
        if self.session.turn().is_some() {
            self.checker.get_or_insert_default();
        }
        self.settle();
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Line(line, id) => {
                let message = &self.messages[id % self.messages.len()];
                let request = &self.requests[id % self.requests.len()];
                let line = lines(message, request)[*line].to_string();
                self.line(line.as_bytes());
            }
            Step::Garbage(line) => self.line(line),
            Step::Turn(prompt) => {
                if self.session.turn().is_none() {
                    self.checker = Some(Checker::new());
                    self.session.begin(Turn::new(*prompt));
                }
            }
            Step::Steer => {
                let command = self.next_order();
                self.session
                    .command(SessionCommand::Steer(command, "more".into()));
            }
            Step::Interrupt => {
                self.session.stop_requested();
                self.session.command(SessionCommand::Interrupt);
            }
            Step::Clear => {
                let command = self.next_order();
                self.session.command(SessionCommand::Clear(command));
            }
            Step::SetModel => {
                let command = self.next_order();
                self.session
                    .command(SessionCommand::SetModel(command, "m".into()));
            }
            Step::SetPermission(mode) => {
                let command = self.next_order();
                self.session
                    .command(SessionCommand::SetPermission(command, *mode));
            }
            Step::Answer(id, yes) => {
                let answer = if *yes {
                    PermissionAnswer::AllowAlways
                } else {
                    PermissionAnswer::Deny(None)
                };
                self.session.command(SessionCommand::Answer(*id, answer));
            }
            Step::Exit => {
                let exit = Exit::new(1);
                if self.session.turn().is_some() {
                    self.session.finish(exit, 0);
                    self.done();
                }
                self.session = start();
            }
        }
        self.settle();
    }
}

fn start() -> SessionAssembler {
    let mut options = SessionOptions::default();
    options.permissions = PermissionPolicy::Allow;
    SessionAssembler::new(Claude.protocol(&options))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_grammar_holds_and_no_order_is_settled_twice(steps in steps()) {
        let mut engine = Engine::new();
        for step in &steps {
            engine.step(step);
        }
    }
}
