//! The lines are handwritten; recorded conversations are in `tests/sessions`.

mod any_order;
mod hooks;
mod offers;
mod plans;
mod questions;

use serde_json::{Value, json};
use teamster_core::provider::{CommandId, Outbox, SessionAssembler, SessionCommand, grammar};
use teamster_core::{
    AgentError, AgentEvent, ErrorKind, PermissionAnswer, PermissionMode, RunResult, RunStatus,
    SessionOptions, SessionProvider, Turn,
};
use teamster_testkit::events::{assert_types, names};

use crate::Claude;

const OLD: &str = "4e7c1419-faa6-4b9e-a712-01520d2026c2";
const NEW: &str = "0190b0b6-1f4e-7cc3-98c4-dc0c0c07398f";

/// A session with a scripted CLI.
struct Talk {
    session: SessionAssembler,
}

impl Talk {
    fn new(change: impl FnOnce(&mut SessionOptions)) -> Self {
        let mut options = SessionOptions::default();
        change(&mut options);
        // Some of these turns have only the lines that the test is about.
        let session = SessionAssembler::new(Claude.protocol(&options)).may_be_silent(|_| true);
        Self { session }
    }

    fn emit(&mut self, line: &Value) {
        self.session.line(line.to_string().as_bytes());
    }

    /// Returns the messages written to the CLI since the last call.
    fn written(&self) -> Vec<Value> {
        let written = self.session.outbox(Outbox::take_input);
        let lines = String::from_utf8(written).unwrap();
        let lines = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        // Only a test of what the session offers responds to this request.
        let is_other = |line: &Value| line["request"]["subtype"] != "initialize";
        lines.filter(is_other).collect()
    }

    fn settled(&self) -> Vec<(CommandId, Result<(), AgentError>)> {
        self.session.outbox(Outbox::take_answers)
    }

    /// Begins a turn whose message the CLI has received.
    fn turn(&mut self) {
        self.session.begin(Turn::new("x"));
        let uuid = self.written()[0]["uuid"].clone();
        self.emit(&init(OLD));
        self.emit(&replay(&uuid, OLD));
    }

    fn end(&mut self) -> (Vec<AgentEvent>, RunResult) {
        assert!(self.session.is_over());
        self.session.end_turn(0);
        let events: Vec<_> = self.session.out().drain().collect();
        assert_eq!(grammar::check(&events), Ok(()));
        let Some(AgentEvent::Done(done)) = events.last() else {
            panic!("{events:#?}");
        };
        let result = (*done.result).clone();
        (events, result)
    }
}

fn init(session: &str) -> Value {
    json!({"type": "system", "subtype": "init", "session_id": session, "model": "m",
        "claude_code_version": "2.1.197"})
}

fn replay(uuid: &Value, session: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": "x"}, "uuid": uuid,
        "session_id": session, "isReplay": true})
}

fn result(session: &str, more: &Value) -> Value {
    let mut line = json!({"type": "result", "subtype": "success", "is_error": false,
        "result": "answer", "num_turns": 1, "session_id": session});
    for (name, value) in more.as_object().unwrap() {
        line[name] = value.clone();
    }
    line
}

fn answer(request: &Value, response: &Value) -> Value {
    let mut line = json!({"type": "control_response", "response": {"subtype": "success",
        "request_id": request["request_id"]}});
    for (name, value) in response.as_object().unwrap() {
        line["response"][name] = value.clone();
    }
    line
}

fn ask(tool: &str) -> Value {
    json!({"type": "control_request", "request_id": "r-1", "request": {
        "subtype": "can_use_tool", "tool_name": tool, "tool_use_id": "t1",
        "input": {"a": 1}, "description": "what", "decision_reason": "why"}})
}

#[test]
fn tools_are_settled_when_the_session_is_opened() {
    let mut talk = Talk::new(|options| options.params.permission = PermissionMode::ReadOnly);
    for (n, mode) in [PermissionMode::ReadOnly, PermissionMode::Bypass]
        .into_iter()
        .enumerate()
    {
        talk.session.command(SessionCommand::SetPermission(
            CommandId::new(n as u64),
            mode,
        ));
    }
    let settled = talk.settled();
    assert_eq!(settled[0].1, Ok(()));
    assert!(
        settled[1]
            .1
            .as_ref()
            .is_err_and(|e| e.kind == ErrorKind::Invalid)
    );

    let mut talk = Talk::new(|_| {});
    let read_only = SessionCommand::SetPermission(CommandId::new(0), PermissionMode::ReadOnly);
    talk.session.command(read_only);
    let settled = talk.settled();
    assert!(
        settled[0]
            .1
            .as_ref()
            .is_err_and(|e| e.message.starts_with("permission: "))
    );
    assert!(talk.written().is_empty());
}

#[test]
fn unanswered_requests_are_refused_and_reported() {
    let mut talk = Talk::new(|_| {});
    talk.turn();
    talk.emit(&json!({"type": "control_request", "request_id": "r-9",
        "request": {"subtype": "hook_callback", "x": 1}}));
    assert_eq!(
        talk.written(),
        [
            json!({"type": "control_response", "response": {"subtype": "error",
            "request_id": "r-9", "error": "hook_callback is not supported"}})
        ]
    );
    talk.emit(&result(OLD, &json!({})));
    let (events, _) = talk.end();
    assert_types(&events, "session notice text turn_end done");
}

#[test]
fn a_question_between_two_turns_begins_none() {
    let mut talk = Talk::new(|_| {});
    talk.turn();
    talk.emit(&result(OLD, &json!({})));
    talk.end();
    talk.emit(&ask("Bash"));
    assert_eq!(talk.session.turn(), None);
    let asked = talk.session.outbox(Outbox::take_requests);
    assert_eq!(asked[0].message.as_deref(), Some("why"));
    let id = asked[0].id;
    talk.session
        .command(SessionCommand::Answer(id, PermissionAnswer::Deny(None)));
    let response = &talk.written()[0]["response"]["response"];
    assert_eq!(response["behavior"], "deny");
    assert!(
        response["message"]
            .as_str()
            .is_some_and(|it| !it.is_empty())
    );
}

#[test]
fn a_prompt_that_is_refused_is_an_error() {
    let mut talk = Talk::new(|_| {});
    talk.session.begin(Turn::new("x"));
    let uuid = talk.written()[0]["uuid"].clone();
    let lifecycle =
        |state: &str| json!({"type": "command_lifecycle", "command_uuid": uuid, "state": state});
    talk.emit(&lifecycle("queued"));
    assert!(!talk.session.is_over());
    talk.emit(&lifecycle("refused"));
    let (events, result) = talk.end();
    assert_types(&events, "error turn_end done");
    assert_eq!(
        result.errors[0].message,
        "Claude Code refused the prompt: refused"
    );
    assert_eq!(result.status, RunStatus::Failed);
}

#[test]
fn a_refused_message_is_a_notice() {
    let mut talk = Talk::new(|_| {});
    talk.turn();
    talk.session
        .command(SessionCommand::Steer(CommandId::new(1), "y".into()));
    let uuid = talk.written()[0]["uuid"].clone();
    talk.emit(&json!({"type": "command_lifecycle", "command_uuid": uuid, "state": "refused"}));
    talk.emit(&result(OLD, &json!({})));
    let (events, _) = talk.end();
    assert_types(&events, "session notice text turn_end done");
}

#[test]
fn a_failure_in_the_middle_of_a_turn_is_no_final_error() {
    let mut talk = Talk::new(|_| {});
    talk.turn();
    talk.session
        .command(SessionCommand::Steer(CommandId::new(1), "y".into()));
    talk.emit(&result(
        OLD,
        &json!({"is_error": true, "result": "API Error: 500"}),
    ));
    assert!(!talk.session.is_over());
    talk.emit(&init(OLD));
    talk.emit(&result(OLD, &json!({})));
    let (events, result) = talk.end();
    assert_types(&events, "session notice text turn_end done");
    assert_eq!(result.status, RunStatus::Completed);
    assert_eq!(result.num_turns, Some(2));
}

#[test]
fn process_end_between_the_parts_of_a_turn_is_incomplete() {
    let mut talk = Talk::new(|_| {});
    talk.turn();
    talk.session
        .command(SessionCommand::Steer(CommandId::new(1), "y".into()));
    talk.emit(&result(OLD, &json!({})));
    talk.session
        .finish(teamster_core::provider::Exit::new(0), 0);
    let events: Vec<_> = talk.session.out().drain().collect();
    let Some(AgentEvent::Done(done)) = events.last() else {
        panic!("{events:#?}");
    };
    assert_eq!(done.result.status, RunStatus::Incomplete);
}

#[test]
fn clearing_an_empty_session_needs_no_cli() {
    let mut talk = Talk::new(|_| {});
    talk.session
        .command(SessionCommand::Clear(CommandId::new(1)));
    assert_eq!(talk.settled(), [(CommandId::new(1), Ok(()))]);
    assert!(talk.written().is_empty());
    // A resumed session is not empty.
    let mut talk = Talk::new(|options| options.params.session_id = Some(OLD.into()));
    talk.session
        .command(SessionCommand::Clear(CommandId::new(1)));
    assert_eq!(talk.written().len(), 1);
    talk.emit(&init(NEW));
    talk.emit(&result(NEW, &json!({"result": "", "num_turns": 0})));
    assert_eq!(talk.settled(), [(CommandId::new(1), Ok(()))]);
    assert_eq!(talk.session.session_id().as_deref(), Some(NEW));
}

#[test]
fn a_conversation_that_is_not_cleared_is_an_error_of_the_order() {
    let mut talk = Talk::new(|_| {});
    talk.turn();
    talk.emit(&result(OLD, &json!({})));
    talk.end();
    talk.session
        .command(SessionCommand::Clear(CommandId::new(1)));
    talk.session.begin(Turn::new("next"));
    talk.written();
    talk.emit(&init(OLD));
    talk.emit(&result(
        OLD,
        &json!({"result": "Unknown command: /clear", "num_turns": 0}),
    ));
    let settled = talk.settled();
    let error = settled[0].1.as_ref().unwrap_err();
    assert!(
        error.message.ends_with("Unknown command: /clear"),
        "{error:?}"
    );
    assert_eq!(talk.written()[0]["message"]["content"], "next");
    assert_eq!(talk.session.session_id().as_deref(), Some(OLD));
    talk.emit(&init(OLD));
    talk.emit(&result(OLD, &json!({})));
    let (_, ended) = talk.end();
    assert_eq!(ended.text, "answer");
}

#[test]
fn clearing_waits_for_the_end_of_the_turn() {
    let mut talk = Talk::new(|_| {});
    talk.turn();
    talk.session
        .command(SessionCommand::Clear(CommandId::new(1)));
    talk.session
        .command(SessionCommand::Clear(CommandId::new(2)));
    assert!(talk.written().is_empty());
    talk.emit(&result(OLD, &json!({})));
    assert!(talk.written().is_empty(), "it is still the engine's turn");
    talk.end();
    assert_eq!(talk.written()[0]["message"]["content"], "/clear");
    talk.emit(&init(NEW));
    talk.emit(&result(NEW, &json!({"result": "", "num_turns": 0})));
    assert_eq!(talk.settled(), [(CommandId::new(1), Ok(()))]);
    assert_eq!(talk.written().len(), 1, "and once more");
}

#[test]
fn turn_that_waits_for_a_cleared_conversation_can_be_aborted() {
    let mut talk = Talk::new(|_| {});
    talk.turn();
    talk.emit(&result(OLD, &json!({})));
    talk.end();
    talk.session
        .command(SessionCommand::Clear(CommandId::new(1)));
    talk.session.begin(Turn::new("never"));
    talk.session
        .command(SessionCommand::Steer(CommandId::new(2), "nor this".into()));
    talk.written();
    talk.session.stop_requested();
    talk.session.command(SessionCommand::Interrupt);
    let (_, ended) = talk.end();
    assert_eq!(ended.status, RunStatus::Aborted);
    let settled = talk.settled();
    assert_eq!(settled[0].0, CommandId::new(2));
    assert_eq!(settled[0].1.as_ref().unwrap_err().kind, ErrorKind::Aborted);
    talk.emit(&init(NEW));
    talk.emit(&result(NEW, &json!({"result": "", "num_turns": 0})));
    assert_eq!(talk.settled(), [(CommandId::new(1), Ok(()))]);
    assert!(talk.written().is_empty());
}

#[test]
fn without_a_turn_interrupt_and_steer_do_nothing() {
    let mut talk = Talk::new(|_| {});
    talk.session.command(SessionCommand::Interrupt);
    talk.session
        .command(SessionCommand::Steer(CommandId::new(1), "x".into()));
    assert!(talk.settled()[0].1.is_err());
    assert!(talk.written().is_empty());
}

#[test]
fn a_refused_request_has_the_reason() {
    let mut talk = Talk::new(|_| {});
    talk.session
        .command(SessionCommand::SetModel(CommandId::new(1), "x".into()));
    let request = talk.written()[0].clone();
    let no = answer(
        &request,
        &json!({"subtype": "error", "error": "no such model"}),
    );
    talk.emit(&no);
    // A duplicate response is ignored.
    talk.emit(&no);
    let settled = talk.settled();
    assert_eq!(settled.len(), 1);
    let error = settled[0].1.as_ref().unwrap_err();
    assert_eq!(error.message, "Claude Code refused that: no such model");
}

#[test]
fn interrupt_is_reported_once_and_a_late_one_has_no_effect() {
    let mut talk = Talk::new(|_| {});
    talk.turn();
    talk.session.command(SessionCommand::Interrupt);
    talk.session.command(SessionCommand::Interrupt);
    assert_eq!(talk.written().len(), 1);
    talk.emit(&result(OLD, &json!({})));
    let (_, ended) = talk.end();
    assert_eq!(ended.status, RunStatus::Completed);
    talk.session.command(SessionCommand::Interrupt);
    assert!(talk.written().is_empty());
}

#[test]
fn turn_that_begins_during_its_interrupt_has_an_end() {
    let mut talk = Talk::new(|_| {});
    talk.session.begin(Turn::new("x"));
    let uuid = talk.written()[0]["uuid"].clone();
    talk.session.command(SessionCommand::Interrupt);
    let requests = talk.written();
    talk.emit(&json!({"type": "command_lifecycle", "command_uuid": uuid, "state": "started"}));
    talk.emit(&answer(
        &requests[0],
        &json!({"response": {"cancelled": false}}),
    ));
    talk.emit(&answer(&requests[1], &json!({})));
    assert!(!talk.session.is_over());
    talk.emit(&init(OLD));
    assert_eq!(talk.written()[0]["request"]["subtype"], "interrupt");
    assert!(!talk.session.is_over());
    talk.emit(&result(
        OLD,
        &json!({"is_error": true, "terminal_reason": "aborted_streaming"}),
    ));
    let (_, ended) = talk.end();
    assert_eq!(ended.status, RunStatus::Aborted);
}

#[test]
fn a_fork_is_not_the_session_that_it_came_from() {
    let mut talk = Talk::new(|options| {
        options.params.session_id = Some(OLD.into());
        options.params.fork = true;
    });
    assert_eq!(talk.session.session_id(), None);
    talk.session.begin(Turn::new("x"));
    let uuid = talk.written()[0]["uuid"].clone();
    talk.emit(&init(NEW));
    assert_eq!(talk.session.session_id(), None, "nothing is written down");
    talk.emit(&replay(&uuid, NEW));
    assert_eq!(talk.session.session_id().as_deref(), Some(NEW));
}

#[test]
fn odd_lines_are_reported_and_harmless() {
    let mut talk = Talk::new(|_| {});
    talk.turn();
    for odd in [
        json!({"type": "control_request", "request_id": 7, "request": []}),
        json!({"type": "control_request", "request_id": "r", "request": {"subtype": "can_use_tool",
            "input": null, "tool_name": 1, "permission_suggestions": {}}}),
        json!({"type": "control_response", "response": "x"}),
        json!({"type": "control_cancel_request"}),
        json!({"type": "command_lifecycle", "command_uuid": [], "state": {}}),
        json!({"type": "brand_new"}),
        json!({"no": "type"}),
    ] {
        talk.emit(&odd);
    }
    let asked = talk.session.outbox(Outbox::take_requests);
    assert_eq!(asked.len(), 1);
    talk.session.command(SessionCommand::Answer(
        asked[0].id,
        PermissionAnswer::AllowAlways,
    ));
    assert_eq!(talk.written().len(), 1);
    talk.emit(&result(
        OLD,
        &json!({"origin": 1, "errors": 2, "result": 3}),
    ));
    let (_, ended) = talk.end();
    assert_eq!(ended.status, RunStatus::Completed);
}
