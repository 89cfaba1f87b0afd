//! Random sequences of lines and orders.

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::sample::select;
use teamster_core::provider::grammar::Checker;
use teamster_core::{PermissionAnswer, PermissionMode};

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Turn(String),
    Update(Value),
    /// Response to the oldest waiting request if true, else to the newest.
    Answer(Value, bool),
    Fail(bool),
    Permission(u8),
    Question(u8),
    Allow(PermissionAnswer),
    Interrupt,
    Silence,
    Clear,
    Model,
    Mode,
    Steer,
    Line(String),
}

fn update() -> impl Strategy<Value = Value> {
    let id = select(vec!["a", "b", "c"]);
    let status = select(vec!["pending", "in_progress", "completed", "failed", "odd"]);
    let kind = select(vec![
        "agent_message_chunk",
        "agent_thought_chunk",
        "user_message_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
        "usage_update",
        "current_mode_update",
        "new",
    ]);
    (kind, id, status, any::<bool>()).prop_map(|(kind, id, status, more)| {
        let mut update = json!({"sessionUpdate": kind, "content": {"type": "text", "text": id}});
        if kind.starts_with("tool") {
            update = json!({"sessionUpdate": kind, "toolCallId": id, "status": status});
            if more {
                update["rawInput"] = json!({"x": 1});
                update["content"] = json!([{"type": "diff", "path": "p"}, 7]);
            }
        } else if more {
            update["messageId"] = json!(id);
        }
        update
    })
}

fn step() -> impl Strategy<Value = Step> {
    let answers = select(vec![
        json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}}),
        json!({"sessionId": "s1", "modes": {"currentModeId": "m"}}),
        json!({"sessionId": "s2"}),
        json!({"stopReason": "end_turn"}),
        json!({"stopReason": "cancelled"}),
        json!({}),
        json!(null),
    ]);
    prop_oneof![
        2 => "[/a]{0,3}".prop_map(Step::Turn),
        6 => update().prop_map(Step::Update),
        6 => (answers, any::<bool>()).prop_map(|(answer, old)| Step::Answer(answer, old)),
        1 => any::<bool>().prop_map(Step::Fail),
        2 => any::<u8>().prop_map(Step::Permission),
        1 => any::<u8>().prop_map(Step::Question),
        1 => select(vec![
            PermissionAnswer::Allow,
            PermissionAnswer::AllowAlways,
            PermissionAnswer::Deny(None),
        ])
        .prop_map(Step::Allow),
        1 => Just(Step::Interrupt),
        3 => Just(Step::Silence),
        1 => Just(Step::Clear),
        1 => Just(Step::Model),
        1 => Just(Step::Mode),
        1 => Just(Step::Steer),
        1 => "[{}\":a1\\\\]{0,12}".prop_map(Step::Line),
    ]
}

/// Simulates the engine.
struct Engine {
    talk: Talk,
    waiting: Vec<u64>,
    settled: HashMap<CommandId, u32>,
    ordered: u64,
    asked: Vec<u64>,
    checker: Checker,
}

impl Engine {
    fn deal(&mut self) {
        for message in self.talk.written() {
            if message.get("method").is_some() {
                self.waiting.extend(message["id"].as_u64());
            }
        }
        for (id, _) in self.talk.settled() {
            *self.settled.entry(id).or_default() += 1;
        }
        let asked = self.talk.asked();
        self.asked
            .extend(asked.into_iter().map(|request| request.id));
        let over = self.talk.assembler.is_over();
        if over {
            self.talk.assembler.end_turn(0);
        }
        for event in self.talk.assembler.out().drain() {
            assert_eq!(self.checker.event(&event), Ok(()));
        }
        if over {
            assert_eq!(std::mem::take(&mut self.checker).finish(), Ok(()));
        }
    }

    fn command(&mut self, command: impl FnOnce(CommandId) -> SessionCommand) {
        self.ordered += 1;
        self.talk.command(command(CommandId::new(self.ordered)));
    }

    fn take(&mut self, step: Step) {
        let in_turn = self.talk.assembler.turn().is_some();
        match step {
            Step::Turn(prompt) if !in_turn => self.talk.begin(&prompt),
            Step::Turn(_) => {}
            Step::Update(update) => self.talk.update(update),
            Step::Answer(result, old) => {
                let at = if old {
                    0
                } else {
                    self.waiting.len().saturating_sub(1)
                };
                if at < self.waiting.len() {
                    let id = self.waiting.remove(at);
                    self.talk.line(json!({"id": id, "result": result}));
                }
            }
            Step::Fail(old) => {
                let at = if old {
                    0
                } else {
                    self.waiting.len().saturating_sub(1)
                };
                if at < self.waiting.len() {
                    let id = self.waiting.remove(at);
                    self.talk
                        .line(json!({"id": id, "error": {"code": -32000, "message": "no"}}));
                }
            }
            Step::Permission(id) => {
                let call = if id % 2 == 0 { "a" } else { "b" };
                self.talk.line(json!({"id": id,
                    "method": "session/request_permission", "params": {
                    "toolCall": {"toolCallId": call},
                    "options": [{"optionId": "o", "kind": "allow_once"}]}}));
            }
            Step::Question(id) => {
                let call = if id % 2 == 0 { "a" } else { "" };
                self.talk
                    .line(json!({"id": id, "method": "elicitation/create", "params": {
                    "mode": "form", "toolCallId": call, "requestedSchema": {}}}));
                if id % 5 == 0 {
                    self.talk
                        .line(json!({"method": "$/cancel_request", "params": {"requestId": id}}));
                }
            }
            Step::Allow(answer) => {
                if let Some(id) = self.asked.pop() {
                    self.talk.command(SessionCommand::Answer(id, answer));
                }
            }
            Step::Interrupt => self.talk.command(SessionCommand::Interrupt),
            Step::Silence => self.talk.be_silent(),
            // Orders to clear are only sent between turns.
            Step::Clear if in_turn => {}
            Step::Clear => self.command(SessionCommand::Clear),
            Step::Model => self.command(|id| SessionCommand::SetModel(id, "m".into())),
            Step::Mode => {
                self.command(|id| SessionCommand::SetPermission(id, PermissionMode::Bypass));
            }
            Step::Steer => self.command(|id| SessionCommand::Steer(id, "x".into())),
            Step::Line(line) => self.talk.assembler.line(line.as_bytes()),
        }
        self.deal();
    }
}

proptest! {
    #[test]
    fn random_lines_keep_the_grammar_and_settle_each_order_once(
        steps in proptest::collection::vec(step(), 0..60),
        resume in any::<bool>(),
    ) {
        let mut settings = settings();
        settings.asks = true;
        if resume {
            settings.session_id = Some("s0".into());
        }
        let mut engine = Engine {
            talk: Talk::new(settings),
            waiting: Vec::new(),
            settled: HashMap::new(),
            ordered: 0,
            asked: Vec::new(),
            checker: Checker::new(),
        };
        engine.deal();
        for step in steps {
            engine.take(step);
        }
        // Reject all requests that still wait.
        for _ in 0..8 {
            engine.take(Step::Fail(true));
        }
        if engine.talk.assembler.turn().is_some() {
            engine.talk.assembler.finish(Exit::default(), 0);
            for event in engine.talk.assembler.out().drain() {
                prop_assert_eq!(engine.checker.event(&event), Ok(()));
            }
            prop_assert_eq!(std::mem::take(&mut engine.checker).finish(), Ok(()));
        }
        prop_assert!(engine.settled.values().all(|times| *times == 1));
    }
}
