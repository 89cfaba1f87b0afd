//! Recorded sessions of the real program. `stdin.ndjson` beside each is its input: the same commands with the same
//! ids as the protocol writes. `three_turns` is of 0.87.1; `questions` is of 1.6.0, with an extension that names the
//! session and asks before each call.
#![cfg(test)]

use std::str::Lines;

use serde_json::{Value, json};
use teamster_core::provider::{CommandId, Outbox, SessionAssembler, SessionCommand, grammar};
use teamster_core::{
    AgentEvent, ErrorKind, PermissionAnswer, RunResult, RunStatus, SessionOptions, SessionProvider,
    ToolResult, Turn,
};
use teamster_pi::Pi;
use teamster_testkit::events::{payloads, tokens};

const THREE_TURNS: &str = include_str!("sessions/three_turns/stdout.ndjson");
const THREE_TURNS_IN: &str = include_str!("sessions/three_turns/stdin.ndjson");
const QUESTIONS: &str = include_str!("sessions/questions/stdout.ndjson");
const QUESTIONS_IN: &str = include_str!("sessions/questions/stdin.ndjson");

struct Recorded {
    session: SessionAssembler,
    lines: Lines<'static>,
    written: String,
}

impl Recorded {
    fn new(stdout: &'static str) -> Self {
        let session = SessionAssembler::new(Pi.protocol(&SessionOptions::default()));
        let mut recorded = Self {
            session,
            lines: stdout.lines(),
            written: String::new(),
        };
        recorded.until(|line| line.contains("get_state"));
        recorded
    }

    /// Reads lines up to and including the first match.
    fn until(&mut self, is_last: impl Fn(&str) -> bool) {
        loop {
            let written = self.session.outbox(Outbox::take_input);
            // The recordings have no requests for models.
            for line in String::from_utf8(written).unwrap().lines() {
                if !line.contains("\"get_available_") {
                    self.written.push_str(line);
                    self.written.push('\n');
                }
            }
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
    let mut recorded = Recorded::new(THREE_TURNS);

    recorded.session.begin(Turn::new("Say hi"));
    let (events, result) = recorded.end();
    let tools = [
        "session",
        "thinking",
        "usage",
        "context",
        "tool_use",
        "tool_result",
    ];
    let answer = ["text", "usage", "context", "turn_end", "done"];
    assert_eq!(names(&events), [&tools[..], &answer[..]].concat());
    assert_eq!(result.status, RunStatus::Completed);
    assert_eq!(result.text, "It says hi.");
    let usage = result.usage.unwrap();
    assert_eq!(tokens(Some(usage)), Some((300, 50)));
    assert_eq!(
        (usage.cache_read_tokens, usage.cache_write_tokens),
        (Some(61), Some(81))
    );

    recorded.session.begin(Turn::new("Be slow"));
    recorded.until(|line| line.contains("tool_execution_start"));
    let id = CommandId::new(1);
    recorded
        .session
        .command(SessionCommand::Steer(id, "Faster".to_owned()));
    let (_, result) = recorded.end();
    assert_eq!(result.text, "You said: faster.");
    assert_eq!(result.usage.unwrap().input_tokens, Some(700));
    let settled = recorded.session.outbox(Outbox::take_answers);
    assert_eq!(settled, [(id, Ok(()))]);

    recorded.session.begin(Turn::new("Go on"));
    recorded.until(|line| line.contains("message_update") && line.contains("on and on"));
    recorded.session.stop_requested();
    recorded.session.command(SessionCommand::Interrupt);
    let (_, result) = recorded.end();
    assert_eq!(result.status, RunStatus::Aborted);
    assert_eq!(result.text, "This goes on and on ");
    assert_eq!(result.errors[0].kind, ErrorKind::Aborted);

    assert_eq!(commands(&recorded.written), commands(THREE_TURNS_IN));
}

#[test]
fn an_extension_s_questions_are_answered() {
    let mut recorded = Recorded::new(QUESTIONS);
    for (prompt, choice, output, text) in [
        ("Say one", "Yes", "one\n", "It says one."),
        ("Say two", "No", "The user said no.", "I did not run it."),
    ] {
        recorded.session.begin(Turn::new(prompt));
        recorded.until(|line| line.contains("extension_ui_request"));
        let asked = recorded.session.outbox(Outbox::take_requests);
        let [request] = &asked[..] else {
            panic!("{asked:#?}");
        };
        assert_eq!(request.message.as_deref(), Some("Run bash?"));
        let schema = request.schema.as_ref().unwrap();
        assert_eq!(schema["properties"]["value"]["enum"], json!(["Yes", "No"]));
        let answer = PermissionAnswer::AllowWith(json!({"value": choice}));
        recorded
            .session
            .command(SessionCommand::Answer(request.id, answer));
        let (events, result) = recorded.end();
        assert_eq!(
            names(&events).join(" "),
            "session usage context tool_use permission tool_result text usage context turn_end done"
        );
        let outputs: Vec<_> = payloads::<ToolResult>(&events)
            .map(|result| result.output.clone())
            .collect();
        assert_eq!(outputs, [output]);
        assert_eq!(result.status, RunStatus::Completed);
        assert_eq!(result.text, text);
        assert_eq!(result.usage.unwrap().output_tokens, Some(40));
    }
    assert_eq!(commands(&recorded.written), commands(QUESTIONS_IN));
}
