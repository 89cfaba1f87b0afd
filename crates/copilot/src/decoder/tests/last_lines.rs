//! The last line without its code, repeated, or followed by other lines.

use serde_json::{Value, json};
use teamster_core::provider::Exit;
use teamster_core::{AgentEvent, ErrorCode, ErrorKind, Notice, NoticeLevel, RunResult, RunStatus};
use teamster_testkit::events::payloads;

use super::super::CopilotDecoder;
use super::{SESSION, assert_types, decode, delta, line, message, names, result, run, turn};

fn odd_result(code: &Value) -> String {
    json!({"type": "result", "sessionId": SESSION, "exitCode": code, "usage": []}).to_string()
}

fn failed(message: &str) -> String {
    line(
        "session.error",
        &json!({"errorType": "query", "message": message}),
    )
}

fn abort() -> String {
    line("abort", &json!({"reason": "user_abort"}))
}

fn ended_by(code: i32, stderr: &str, lines: &[String]) -> (Vec<&'static str>, RunResult) {
    let exit = Exit {
        code: Some(code),
        stderr: stderr.into(),
        ..Exit::default()
    };
    let (events, done) = decode(CopilotDecoder::new(), lines, exit);
    (names(&events), done)
}

fn notices(events: &[AgentEvent]) -> Vec<(NoticeLevel, String)> {
    payloads::<Notice>(events)
        .map(|n| (n.level, n.message.clone()))
        .collect()
}

#[test]
fn without_its_code_the_end_of_the_process_decides() {
    for code in [Value::Null, json!("x"), json!({})] {
        let lines = [message("a", "x"), odd_result(&code)];
        let (names, done) = ended_by(0, "", &lines);
        assert_eq!(names, ["text", "session", "turn_end", "done"]);
        assert_eq!(done.status, RunStatus::Completed);
        assert_eq!(done.session_id.as_deref(), Some(SESSION));
        let (names, done) = ended_by(1, "", &lines);
        assert_eq!(names, ["text", "session", "turn_end", "error", "done"]);
        assert_eq!(done.status, RunStatus::Failed);
        assert_eq!(done.errors[0].code, ErrorCode::CliExitError);
        let (_, done) = ended_by(1, "Error: No authentication information found.", &lines);
        assert_eq!(done.errors[0].kind, ErrorKind::Auth);
    }
    // It settles earlier failures.
    let lines = [failed("late"), message("a", "x"), odd_result(&Value::Null)];
    let (names, done) = ended_by(0, "", &lines);
    assert_eq!(names, ["text", "session", "notice", "turn_end", "done"]);
    assert_eq!(done.status, RunStatus::Completed);
    let (names, done) = ended_by(1, "", &lines);
    assert_eq!(names, ["text", "session", "error", "turn_end", "done"]);
    assert_eq!(done.errors[0].message, "late");
    // An interruption has exit code 0.
    let (_, done) = ended_by(0, "", &[abort(), odd_result(&Value::Null)]);
    assert_eq!(done.status, RunStatus::Failed);
    assert_eq!(done.errors[0].kind, ErrorKind::Aborted);
}

#[test]
fn a_code_may_be_a_text() {
    let status = |code| run(&[message("a", "x"), odd_result(&code)]).1.status;
    assert_eq!(status(json!("0")), RunStatus::Completed);
    assert_eq!(status(json!("1")), RunStatus::Failed);
    let (names, _) = ended_by(1, "", &[message("a", "x"), odd_result(&json!("0"))]);
    assert_eq!(names, ["text", "session", "turn_end", "done"]);
}

#[test]
fn a_failure_after_the_last_line_is_a_notice() {
    for (late, notice) in [
        (failed("late"), "late"),
        (abort(), "the run was interrupted"),
    ] {
        let (events, done) = run(&[message("a", "x"), result(0), late]);
        assert_types(&events, "text session turn_end notice done");
        assert_eq!(
            notices(&events),
            [(NoticeLevel::Warning, notice.to_owned())]
        );
        assert_eq!(done.status, RunStatus::Completed);
        assert!(done.errors.is_empty());
    }
}

#[test]
fn a_failure_in_another_turn_after_the_last_line_is_an_error() {
    let (events, done) = run(&[
        message("a", "x"),
        result(0),
        turn("assistant.turn_start"),
        failed("late"),
    ]);
    assert_types(&events, "text session turn_end error done");
    assert_eq!(done.status, RunStatus::Failed);
}

#[test]
fn repeated_last_line_ends_no_other_turn() {
    let (events, done) = run(&[message("a", "x"), result(0), result(0)]);
    assert_types(&events, "text session turn_end done");
    assert_eq!(done.status, RunStatus::Completed);
    let (events, done) = run(&[message("a", "x"), result(0), result(1)]);
    assert_types(&events, "text session turn_end error done");
    assert_eq!(done.status, RunStatus::Failed);
    // A reported error stays an error.
    let (events, done) = run(&[message("a", "x"), result(1), result(0), abort()]);
    assert_types(&events, "text session error turn_end done");
    assert_eq!(done.status, RunStatus::Failed);
    let again = [message("a", "x"), result(0), failed("why"), result(1)];
    let (events, done) = run(&again);
    assert_types(&events, "text session turn_end error done");
    assert_eq!(done.errors[0].message, "why");
    // With a turn in between, it ends that turn.
    let (events, done) = run(&[message("a", "x"), result(0), message("b", "y"), result(0)]);
    assert_types(&events, "text session turn_end text turn_end done");
    assert_eq!(done.status, RunStatus::Completed);
}

/// Returns a turn whose message is never completed, although the request succeeded.
fn cut_turn(id: &str, text: &str) -> Vec<String> {
    vec![
        turn("assistant.turn_start"),
        turn("model.call_start"),
        delta(id, text),
        line("model.call_finished", &json!({"outcome": "success"})),
        turn("assistant.turn_end"),
    ]
}

#[test]
fn a_last_message_without_an_end_is_incomplete() {
    let mut lines = cut_turn("a", "half");
    lines.push(result(0));
    let (events, done) = run(&lines);
    // The model was not asked to continue.
    assert_types(&events, "text session turn_end error done");
    assert_eq!(done.status, RunStatus::Incomplete);
    assert_eq!(done.errors[0].code, ErrorCode::StreamEndedEarly);
    assert_eq!(done.text, "half");
}

#[test]
fn a_message_that_continues_and_ends_is_complete() {
    let mut lines = cut_turn("a", "half, ");
    lines.push(turn("assistant.turn_start"));
    lines.extend([message("b", "whole"), turn("assistant.turn_end"), result(0)]);
    let (events, done) = run(&lines);
    assert_types(&events, "text notice text session turn_end done");
    assert!(notices(&events)[0].1.contains("the CLI continues it"));
    assert_eq!(done.status, RunStatus::Completed);
    assert_eq!(done.final_message.as_deref(), Some("half, whole"));
}

#[test]
fn the_record_decides_whether_an_answer_is_complete() {
    let of = |reason: &str| {
        let record = json!({"type": "session.usage_record", "data": {"usage":
            {"model": "m", "inputTokens": 1, "outputTokens": 1, "finishReason": reason}}});
        let exit = Exit {
            code: Some(0),
            record: vec![record.to_string()],
            ..Exit::default()
        };
        let mut lines = cut_turn("a", "text");
        lines.push(result(0));
        let (_, done) = decode(CopilotDecoder::new(), &lines, exit);
        (done.status, done.errors.first().map(|e| e.kind))
    };
    assert_eq!(of("stop"), (RunStatus::Completed, None));
    assert_eq!(of("length"), (RunStatus::Failed, Some(ErrorKind::Invalid)));
}
