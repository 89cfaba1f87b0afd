//! Output after the answer to a prompt, and turns that an agent begins by itself.

use std::time::Duration;

use teamster_core::provider::Phase;
use teamster_core::{PermissionAnswer, RunStatus};

use super::*;
use crate::dialect::Announcement;

/// An agent that announces its own turns, and works in the background while its last call has this status.
#[derive(Default)]
struct Announcing {
    is_working: bool,
    /// True if it has a record of each session.
    has_record: bool,
    /// Number of lines of the record in the turn.
    lines: u64,
}

impl Dialect for Announcing {
    fn name(&self) -> &'static str {
        "Agent"
    }

    fn announces(&self, method: &str) -> Option<Announcement> {
        match method {
            "_own/begin" => Some(Announcement::Begin),
            "_own/end" => Some(Announcement::End),
            _ => None,
        }
    }

    fn meta(&mut self, meta: &Value) {
        self.is_working = meta["working"] == true;
    }

    fn works_in_background(&self) -> bool {
        self.is_working
    }

    fn record_files(&self, session: &str) -> Option<RecordFiles> {
        let files = || RecordFiles::new("/r", vec![format!("{session}.jsonl")], &["\"usage\""]);
        self.has_record.then(files)
    }

    fn record_line(&mut self, _: &str) {
        self.lines += 1;
    }

    fn figures(&mut self, _: &Value, _: &TurnSoFar) -> Figures {
        let mut figures = Figures::default();
        let lines = std::mem::take(&mut self.lines);
        figures.usage = (lines > 0).then(|| Usage::default().input_tokens(lines));
        figures
    }
}

fn announcing(one_turn: bool) -> Talk {
    let mut settings = settings();
    settings.one_turn = one_turn;
    with_dialect(Announcing::default(), settings)
}

fn with_dialect(dialect: Announcing, settings: AcpSettings) -> Talk {
    let mut talk = Talk::with(Box::new(dialect), settings);
    talk.initialized(json!({}));
    talk.answer("session/new", json!({"sessionId": SESSION}));
    talk
}

fn announce(talk: &mut Talk, method: &str) {
    talk.line(json!({"jsonrpc": "2.0", "method": method, "params": {"sessionId": SESSION}}));
}

/// Sends the answer to the prompt. The turn continues.
fn answer(talk: &mut Talk) {
    talk.answer("session/prompt", json!({"stopReason": "end_turn"}));
    assert!(!talk.assembler.is_over());
}

#[test]
fn updates_after_the_answer_belong_to_the_turn() {
    let mut talk = Talk::ready();
    talk.begin("hi");
    talk.text("one ");
    answer(&mut talk);
    let at_first = talk.assembler.awaited_silence().unwrap();
    talk.text("two ");
    // An agent that has more to say is given more time, and its tools all of theirs.
    assert!(talk.assembler.awaited_silence().unwrap() > at_first);
    talk.update(
        json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "ls",
                       "status": "in_progress"}),
    );
    assert_eq!(talk.assembler.awaited_silence(), None);
    talk.update(
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed"}),
    );
    talk.text("three");
    let events = talk.ended();
    assert_eq!(
        names(&events),
        [
            "session",
            "text",
            "text",
            "tool_use",
            "tool_result",
            "text",
            "turn_end",
            "done"
        ]
    );
    assert_eq!(result(&events).text, "one two three");
    assert_eq!(result(&events).status, RunStatus::Completed);
}

#[test]
fn an_announced_turn_of_its_own_is_a_part_of_the_answer() {
    let mut talk = announcing(true);
    talk.begin("hi");
    talk.text("It runs. ");
    announce(&mut talk, "_own/begin");
    answer(&mut talk);
    assert_eq!(talk.assembler.awaited_silence(), None);
    talk.text("It is over.");
    announce(&mut talk, "_own/end");
    let events = talk.ended();
    assert_eq!(
        names(&events),
        ["session", "text", "text", "turn_end", "done"]
    );
    assert_eq!(result(&events).text, "It runs. It is over.");
}

#[test]
fn a_run_waits_for_work_in_the_background() {
    let mut talk = announcing(true);
    talk.begin("hi");
    talk.update(
        json!({"sessionUpdate": "agent_message_chunk", "_meta": {"working": true},
                       "content": {"type": "text", "text": "It runs. "}}),
    );
    answer(&mut talk);
    assert_eq!(talk.assembler.awaited_silence(), None);
    assert_eq!(talk.assembler.phase(), Phase::Background);
    announce(&mut talk, "_own/begin");
    assert_eq!(talk.assembler.phase(), Phase::Model);
    talk.update(
        json!({"sessionUpdate": "agent_message_chunk", "_meta": {"working": false},
                       "content": {"type": "text", "text": "It is over."}}),
    );
    announce(&mut talk, "_own/end");
    let events = talk.ended();
    assert_eq!(result(&events).text, "It runs. It is over.");

    // It is cut short by an interruption.
    talk.begin("again");
    talk.update(
        json!({"sessionUpdate": "agent_message_chunk", "_meta": {"working": true},
                       "content": {"type": "text", "text": "It runs. "}}),
    );
    answer(&mut talk);
    talk.command(SessionCommand::Interrupt);
    assert_eq!(talk.written()[0]["method"], "session/cancel");
    assert_eq!(result(&talk.ended()).status, RunStatus::Aborted);
}

#[test]
fn a_session_has_the_turns_of_its_agent_too() {
    let mut talk = announcing(false);
    talk.begin("hi");
    talk.update(
        json!({"sessionUpdate": "agent_message_chunk", "_meta": {"working": true},
                       "content": {"type": "text", "text": "It runs. "}}),
    );
    talk.end("end_turn");
    assert_eq!(talk.assembler.turn(), None);
    announce(&mut talk, "_own/begin");
    assert_eq!(talk.assembler.turn(), None, "it has no event yet");
    talk.text("It is over.");
    assert_eq!(
        talk.assembler.turn(),
        Some(teamster_core::provider::TurnOrigin::Unasked)
    );
    assert_eq!(talk.assembler.awaited_silence(), None);
    announce(&mut talk, "_own/end");
    let events = talk.ended();
    assert_eq!(names(&events), ["text", "turn_end", "done"]);
    assert_eq!(result(&events).text, "It is over.");
    assert_eq!(result(&events).status, RunStatus::Completed);

    // One without any event leaves nothing behind.
    announce(&mut talk, "_own/begin");
    announce(&mut talk, "_own/end");
    talk.begin("two");
    talk.text("new");
    let events = talk.end("end_turn");
    assert_eq!(names(&events), ["text", "turn_end", "done"]);
}

#[test]
fn the_record_of_an_announced_turn_is_read_before_its_end() {
    let keeping = Announcing {
        has_record: true,
        ..Announcing::default()
    };
    let mut talk = with_dialect(keeping, settings());
    talk.begin("hi");
    talk.text("It runs. ");
    talk.end("end_turn");
    announce(&mut talk, "_own/begin");
    talk.text("It is over.");
    announce(&mut talk, "_own/end");
    assert!(!talk.assembler.is_over());
    assert!(talk.assembler.awaited_silence().is_some());
    talk.assembler.record_line("{}");
    let events = talk.ended();
    assert_eq!(result(&events).text, "It is over.");
    assert_eq!(result(&events).usage.unwrap().input_tokens, Some(1));

    // The next one, which begins at once, is a turn by itself.
    announce(&mut talk, "_own/begin");
    talk.text("One.");
    announce(&mut talk, "_own/end");
    announce(&mut talk, "_own/begin");
    assert_eq!(result(&talk.ended()).text, "One.");
    talk.text("Two.");
    assert_eq!(
        talk.assembler.turn(),
        Some(teamster_core::provider::TurnOrigin::Unasked)
    );
    assert_eq!(talk.assembler.awaited_silence(), None);
    announce(&mut talk, "_own/end");
    assert_eq!(result(&talk.ended()).text, "Two.");

    // An interruption in between comes after the end.
    announce(&mut talk, "_own/begin");
    talk.text("Three.");
    announce(&mut talk, "_own/end");
    talk.command(SessionCommand::Interrupt);
    let events = talk.ended();
    assert_eq!(result(&events).text, "Three.");
    assert_eq!(result(&events).status, RunStatus::Completed);
}

#[test]
fn text_between_turns_is_a_turn_until_the_agent_is_silent() {
    let mut talk = Talk::ready();
    talk.begin("one");
    talk.text("one");
    talk.end("end_turn");
    talk.text("by itself");
    assert_eq!(
        talk.assembler.turn(),
        Some(teamster_core::provider::TurnOrigin::Unasked)
    );
    assert!(talk.assembler.awaited_silence() > Some(Duration::from_millis(250)));
    let events = talk.ended();
    assert_eq!(names(&events), ["text", "turn_end", "done"]);
    assert_eq!(result(&events).text, "by itself");
    talk.begin("two");
    talk.text("two");
    assert_eq!(result(&talk.end("end_turn")).text, "two");
}

#[test]
fn a_request_between_turns_goes_to_the_caller() {
    let mut talk = Talk::ready();
    talk.begin("one");
    talk.text("one");
    talk.end("end_turn");
    talk.line(
        json!({"id": "p1", "method": "session/request_permission", "params": {
        "sessionId": SESSION, "toolCall": {"toolCallId": "t9", "title": "make"},
        "options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]}}),
    );
    let asked = talk.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(
        talk.assembler.awaited_silence(),
        None,
        "it waits for the answer"
    );
    talk.assembler.answer(&asked[0], PermissionAnswer::Allow);
    assert_eq!(talk.written()[0]["result"]["outcome"]["optionId"], "yes");
    // The agent need not report the end of such a call.
    let events = talk.ended();
    assert_eq!(
        names(&events),
        ["tool_use", "permission", "permission", "turn_end", "done"]
    );
}

#[test]
fn process_end_in_an_announced_turn_leaves_it_incomplete() {
    let mut talk = announcing(true);
    talk.begin("hi");
    talk.text("It runs. ");
    announce(&mut talk, "_own/begin");
    answer(&mut talk);
    talk.assembler.finish(
        Exit {
            code: Some(0),
            ..Exit::default()
        },
        0,
    );
    let events: Vec<_> = talk.assembler.out().drain().collect();
    assert_eq!(result(&events).status, RunStatus::Incomplete);
}

/// An agent that reports each call that runs.
struct Reporting;

impl Dialect for Reporting {
    fn name(&self) -> &'static str {
        "Agent"
    }
}

/// Plays a turn in which a command is announced, without arguments and an end. Returns the names of its events.
fn with_an_announced_command(mut talk: Talk) -> Vec<String> {
    talk.begin("hi");
    talk.update(
        json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "bash",
                       "kind": "execute", "status": "pending", "content": []}),
    );
    talk.text("It is done.");
    let events = talk.end("end_turn");
    names(&events).into_iter().map(str::to_owned).collect()
}

#[test]
fn a_call_that_was_only_announced_may_have_run() {
    let events = with_an_announced_command(Talk::ready());
    assert_eq!(events, ["session", "text", "tool_use", "turn_end", "done"]);
}

#[test]
fn an_announced_call_did_not_run_where_each_is_reported() {
    let mut talk = Talk::with(Box::new(Reporting), settings());
    talk.initialized(json!({}));
    talk.answer("session/new", json!({"sessionId": SESSION}));
    let events = with_an_announced_command(talk);
    assert_eq!(events, ["session", "text", "turn_end", "done"]);
}
