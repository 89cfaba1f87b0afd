//! A recorded session of the real program. `sessions/three_turns/stdin.ndjson` is its input: the same commands with
//! the same ids as the protocol writes.
#![cfg(test)]

use std::str::Lines;

use serde_json::Value;
use teamster_core::provider::{Exchange, Order, OrderId, SessionAssembler, grammar};
use teamster_core::{
    AgentEvent, ErrorKind, RunResult, RunStatus, SessionOptions, SessionProvider, Turn,
};
use teamster_pi::Pi;

const STDOUT: &str = include_str!("sessions/three_turns/stdout.ndjson");
const STDIN: &str = include_str!("sessions/three_turns/stdin.ndjson");

struct Recorded {
    session: SessionAssembler,
    lines: Lines<'static>,
    written: String,
}

impl Recorded {
    fn new() -> Self {
        let session = SessionAssembler::new(Pi.protocol(&SessionOptions::default()), false);
        let mut recorded = Self {
            session,
            lines: STDOUT.lines(),
            written: String::new(),
        };
        recorded.until(|line| line.contains("get_state"));
        recorded
    }

    /// Reads lines up to and including the first match.
    fn until(&mut self, is_last: impl Fn(&str) -> bool) {
        loop {
            let written = self.session.exchange(Exchange::take_written);
            self.written.push_str(&String::from_utf8(written).unwrap());
            let line = self.lines.next().expect("the recording has ended");
            self.session.line(line.as_bytes());
            if is_last(line) {
                return;
            }
        }
    }

    fn end(&mut self) -> (Vec<AgentEvent>, RunResult) {
        while !self.session.is_over() {
            self.until(|_| true);
        }
        self.session.end_turn(0);
        let events: Vec<_> = self.session.out().drain().collect();
        assert_eq!(grammar::check(&events), Ok(()));
        assert!(events.iter().all(|event| event.type_name() != "unknown"));
        let Some(AgentEvent::Done(done)) = events.last() else {
            panic!("{events:#?}");
        };
        let result = (*done.result).clone();
        (events, result)
    }
}

/// Returns the types of the events, with consecutive duplicates merged.
fn names(events: &[AgentEvent]) -> Vec<&'static str> {
    let mut names: Vec<_> = events.iter().map(AgentEvent::type_name).collect();
    names.dedup();
    names
}

fn commands(lines: &str) -> Vec<Value> {
    let read = lines.lines().map(serde_json::from_str);
    read.collect::<Result<_, _>>().unwrap()
}

#[test]
fn turns_with_a_tool_a_word_in_between_and_an_interruption() {
    let mut recorded = Recorded::new();

    recorded.session.begin(Turn::new("Say hi"));
    let (events, result) = recorded.end();
    let tools = ["session", "thinking", "usage", "tool_use", "tool_result"];
    let answer = ["text", "usage", "turn_end", "done"];
    assert_eq!(names(&events), [&tools[..], &answer[..]].concat());
    assert_eq!(result.status, RunStatus::Completed);
    assert_eq!(result.text, "It says hi.");
    let usage = result.usage.unwrap();
    assert_eq!(
        (usage.input_tokens, usage.output_tokens),
        (Some(300), Some(50))
    );
    assert_eq!(
        (usage.cache_read_tokens, usage.cache_write_tokens),
        (Some(61), Some(81))
    );

    recorded.session.begin(Turn::new("Be slow"));
    recorded.until(|line| line.contains("tool_execution_start"));
    let id = OrderId(1);
    recorded
        .session
        .order(Order::Steer(id, "Faster".to_owned()));
    let (_, result) = recorded.end();
    assert_eq!(result.text, "You said: faster.");
    assert_eq!(result.usage.unwrap().input_tokens, Some(700));
    let settled = recorded.session.exchange(Exchange::take_settled);
    assert_eq!(settled, [(id, Ok(()))]);

    recorded.session.begin(Turn::new("Go on"));
    recorded.until(|line| line.contains("message_update") && line.contains("on and on"));
    recorded.session.stop_requested();
    recorded.session.order(Order::Interrupt);
    let (_, result) = recorded.end();
    assert_eq!(result.status, RunStatus::Aborted);
    assert_eq!(result.text, "This goes on and on ");
    assert_eq!(result.errors[0].kind, ErrorKind::Aborted);

    assert_eq!(commands(&recorded.written), commands(STDIN));
}
