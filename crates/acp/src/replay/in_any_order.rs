//! Property test: recorded lines in random order, mixed with orders.

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use teamster_core::provider::grammar::Checker;
use teamster_core::provider::{
    CommandId, Exit, Outbox, SessionAssembler, SessionCommand, SessionProtocol,
};
use teamster_core::{PermissionAnswer, PermissionMode, Turn};

/// Plays the lines of these recordings in random order, some with modified values, mixed with turns of these prompts
/// and with orders.
///
/// # Panics
///
/// Panics if a turn violates the stream grammar, or if an order is settled twice.
pub fn in_any_order(
    recordings: &[&str],
    prompts: &'static [&'static str],
    protocol: impl Fn() -> Box<dyn SessionProtocol>,
) {
    let (lines, answers) = recorded(recordings);
    let steps = prop::collection::vec(step(prompts), 0..120);
    let played = TestRunner::new(Config::default()).run(&steps, |steps| {
        let mut engine = Engine::new(protocol());
        for step in steps {
            engine.take(step, &lines, &answers);
            engine.deal();
        }
        if engine.is_playing {
            engine.assembler.finish(Exit::default(), 0);
            engine.end();
        }
        let settled = &engine.settled;
        prop_assert!(settled.values().all(|times| *times == 1), "{settled:?}");
        Ok(())
    });
    if let Err(error) = played {
        panic!("{error}");
    }
}

/// Session id in all recorded lines.
const SESSION: &str = "s";

#[derive(Debug, Clone)]
enum Step {
    /// A recorded line, optionally with one value replaced.
    Line(Index, Option<(Index, Value)>),
    /// A recorded response, for the oldest waiting request.
    Answer(Index),
    Turn(&'static str),
    Permit(PermissionAnswer),
    Interrupt,
    Order(u8),
}

fn step(prompts: &'static [&'static str]) -> impl Strategy<Value = Step> {
    let odd = select(vec![
        json!(null),
        json!(-1),
        json!("Info: x"),
        json!([]),
        json!({}),
    ]);
    let change = prop::option::weighted(0.2, (any::<Index>(), odd));
    let permit = select(vec![PermissionAnswer::Allow, PermissionAnswer::Deny(None)]);
    prop_oneof![
        12 => (any::<Index>(), change).prop_map(|(line, change)| Step::Line(line, change)),
        4 => any::<Index>().prop_map(Step::Answer),
        2 => select(prompts).prop_map(Step::Turn),
        1 => permit.prop_map(Step::Permit),
        1 => Just(Step::Interrupt),
        1 => (0..4_u8).prop_map(Step::Order),
    ]
}

/// Returns the recorded lines in two lists: messages with a method, and responses.
fn recorded(recordings: &[&str]) -> (Vec<Value>, Vec<Value>) {
    let lines = recordings.iter().flat_map(|recording| recording.lines());
    lines
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap_or_default();
            if let Some(id) = line["params"].get_mut("sessionId") {
                *id = json!(SESSION);
            }
            if let Some(id) = line["result"].get_mut("sessionId") {
                *id = json!(SESSION);
            }
            line
        })
        .partition(|line| line.get("method").is_some())
}

/// Replaces one value inside another, at a random position.
fn change(value: &mut Value, at: Index, new: &Value) {
    let mut left = at.index(count(value));
    put(value, &mut left, new);
}

fn count(value: &Value) -> usize {
    let inner: usize = match value {
        Value::Object(fields) => fields.values().map(count).sum(),
        Value::Array(items) => items.iter().map(count).sum(),
        _ => 0,
    };
    1 + inner
}

/// Returns whether the value was replaced.
fn put(value: &mut Value, left: &mut usize, new: &Value) -> bool {
    if *left == 0 {
        *value = new.clone();
        return true;
    }
    *left -= 1;
    match value {
        Value::Object(fields) => fields.values_mut().any(|it| put(it, left, new)),
        Value::Array(items) => items.iter_mut().any(|it| put(it, left, new)),
        _ => false,
    }
}

/// Simulates the engine.
struct Engine {
    assembler: SessionAssembler,
    checker: Checker,
    /// Ids of requests without a response.
    waiting: Vec<u64>,
    asked: Vec<u64>,
    settled: HashMap<CommandId, u32>,
    ordered: u64,
    is_playing: bool,
}

impl Engine {
    fn new(protocol: Box<dyn SessionProtocol>) -> Self {
        Self {
            assembler: SessionAssembler::new(protocol),
            checker: Checker::new(),
            waiting: Vec::new(),
            asked: Vec::new(),
            settled: HashMap::new(),
            ordered: 0,
            is_playing: false,
        }
    }

    fn take(&mut self, step: Step, lines: &[Value], answers: &[Value]) {
        match step {
            Step::Line(at, odd) => {
                let mut line = at.get(lines).clone();
                if let Some((at, value)) = odd {
                    change(&mut line, at, &value);
                }
                self.assembler.line(line.to_string().as_bytes());
            }
            Step::Answer(at) => {
                if self.waiting.is_empty() {
                    return;
                }
                let mut line = at.get(answers).clone();
                line["id"] = json!(self.waiting.remove(0));
                self.assembler.line(line.to_string().as_bytes());
            }
            Step::Turn(prompt) => {
                if !self.is_playing {
                    self.is_playing = true;
                    self.assembler.begin(Turn::new(prompt));
                }
            }
            Step::Permit(answer) => {
                if let Some(number) = self.asked.pop() {
                    self.assembler
                        .command(SessionCommand::Answer(number, answer));
                }
            }
            Step::Interrupt => self.assembler.command(SessionCommand::Interrupt),
            Step::Order(which) => {
                self.ordered += 1;
                let id = CommandId::new(self.ordered);
                self.assembler.command(match which {
                    0 => SessionCommand::Clear(id),
                    1 => SessionCommand::SetModel(id, "m".into()),
                    2 => SessionCommand::SetPermission(id, PermissionMode::Bypass),
                    _ => SessionCommand::Steer(id, "more".into()),
                });
            }
        }
    }

    fn deal(&mut self) {
        let written = self.assembler.outbox(Outbox::take_input);
        for line in written.split(|b| *b == b'\n').filter(|it| !it.is_empty()) {
            let message: Value = serde_json::from_slice(line).unwrap_or_default();
            if message.get("method").is_some() {
                self.waiting.extend(message["id"].as_u64());
            }
        }
        for (id, _) in self.assembler.outbox(Outbox::take_answers) {
            *self.settled.entry(id).or_default() += 1;
        }
        let asked = self.assembler.outbox(Outbox::take_requests);
        self.asked.extend(asked.iter().map(|request| request.id));
        // The agent may have begun a turn by itself.
        self.is_playing |= self.assembler.turn().is_some();
        if self.assembler.awaited_silence().is_some() {
            self.assembler.silence();
        }
        if self.is_playing && self.assembler.is_over() {
            self.assembler.end_turn(0);
            self.end();
        }
        self.check();
    }

    fn check(&mut self) {
        for event in self.assembler.out().drain() {
            assert_eq!(self.checker.event(&event), Ok(()), "{event:?}");
        }
    }

    fn end(&mut self) {
        self.check();
        self.is_playing = false;
        assert_eq!(std::mem::take(&mut self.checker).finish(), Ok(()));
    }
}
