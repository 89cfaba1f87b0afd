//! The end of a run, which has no line.

use serde_json::json;
use teamster_core::provider::{Exit, Stop};
use teamster_core::{AgentError, AgentEvent, ErrorCode, ErrorKind, Notice, NoticeLevel, RunStatus};
use teamster_testkit::events::payloads;

use super::super::OpenCodeDecoder;
use super::{
    SESSION, assert_types, decode, error, finish, names, resumed, run, say, start, stopped,
};

fn answer() -> Vec<String> {
    vec![start("m"), say("m", "Yes."), finish("m", "stop")]
}

fn with_stderr(code: i32, stderr: &str) -> Exit {
    Exit {
        stderr: stderr.into(),
        ..Exit::new(code)
    }
}

#[test]
fn a_last_line_that_is_cut_is_no_success() {
    let mut lines = answer();
    lines.push(r#"{"type":"step_start","sessi"#.to_owned());
    let (_, result) = run(&lines);
    assert_eq!(result.status, RunStatus::Incomplete);
    assert_eq!(result.diagnostics.malformed, 1);
    // A line of an unknown type is complete.
    lines.pop();
    lines.push(r#"{"type":"new","sessionID":"x"}"#.to_owned());
    assert_eq!(run(&lines).1.status, RunStatus::Completed);
}

#[test]
fn an_error_is_final_only_if_the_run_does_not_go_on() {
    let data =
        json!({"message": "second step is rejected", "statusCode": 400, "isRetryable": false});
    let failed = error("APIError", &data);
    let (events, result) = decode(
        OpenCodeDecoder::new(),
        &[answer(), vec![failed.clone()]].concat(),
        Exit::new(1),
    );
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors[0].kind, ErrorKind::Invalid);
    assert_types(&events[events.len() - 3..], "error turn_end done");

    let (events, result) = decode(
        OpenCodeDecoder::new(),
        &[vec![failed.clone()], answer()].concat(),
        Exit::new(1),
    );
    assert_eq!(
        (result.status, result.errors.len()),
        (RunStatus::Completed, 0)
    );
    assert_types(&events[..2], "session notice");

    // The last of two errors is the end.
    let other = error("APIError", &json!({"message": "no", "statusCode": 401}));
    let lines = [failed, other.clone(), other];
    let (events, result) = decode(OpenCodeDecoder::new(), &lines, Exit::new(1));
    assert_eq!(result.errors.len(), 1);
    assert_eq!(result.errors[0].kind, ErrorKind::Auth);
    assert_types(&events, "session notice error turn_end done");
}

#[test]
fn exit_1_after_a_good_answer_without_an_error_is_no_success() {
    let (_, result) = decode(OpenCodeDecoder::new(), &answer(), with_stderr(1, "EPIPE"));
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors[0].code, ErrorCode::CliStderr);
    // An exit by a signal is no success either.
    let killed = Exit {
        signal: Some("SIGKILL".into()),
        ..Exit::default()
    };
    let (_, result) = decode(OpenCodeDecoder::new(), &answer(), killed);
    assert_eq!(result.errors[0].code, ErrorCode::CliExitError);
}

#[test]
fn a_silent_resumed_session_may_be_of_another_directory() {
    let timeout = || {
        let error = AgentError::new(
            ErrorCode::StartupTimeout,
            ErrorKind::Timeout,
            "nothing came",
        );
        stopped(Stop::Timeout(error))
    };
    let (events, result) = decode(resumed(), &[], timeout());
    assert_eq!(result.status, RunStatus::TimedOut);
    let AgentEvent::Notice(notice) = &events[0] else {
        panic!("{events:?}")
    };
    assert_eq!(notice.level, NoticeLevel::Warning);
    assert!(notice.message.contains("working_directory"), "{notice:?}");
    // Not for a new session, and not once the run has printed a line.
    let (events, _) = decode(OpenCodeDecoder::new(), &[], timeout());
    assert_types(&events, "error done");
    let (events, _) = decode(resumed(), &answer()[..1], timeout());
    assert_types(&events, "session error done");
}

#[test]
fn the_log_alone_does_not_say_why_an_output_is_cut_short() {
    let log = "timestamp=2026-11-22T01:30:29.560Z level=ERROR message=\"Overloaded\"";
    let (_, result) = decode(OpenCodeDecoder::new(), &answer()[..2], with_stderr(0, log));
    assert_eq!(result.status, RunStatus::Incomplete);
    assert_eq!(result.errors[0].code, ErrorCode::StreamEndedEarly);
    // For a failed start, it is the only evidence.
    let (_, result) = decode(OpenCodeDecoder::new(), &[], with_stderr(1, log));
    assert_eq!(result.errors[0].message, log);
    assert_eq!(result.errors[0].kind, ErrorKind::Overloaded);
}

#[test]
fn the_race_of_first_runs_for_the_database_is_retryable() {
    let stderr = "Error: Unexpected error\n\nFailed query: \n  CREATE TABLE `workspace` (";
    let (_, result) = decode(OpenCodeDecoder::new(), &[], with_stderr(1, stderr));
    assert_eq!(result.status, RunStatus::Failed);
    assert!(result.errors[0].retryable, "{:?}", result.errors);
}

#[test]
fn an_error_line_of_another_shape_is_the_end_too() {
    for body in [
        json!("boom"),
        json!({"name": "X", "message": "boom"}),
        json!({"name": "X", "data": "boom"}),
    ] {
        let line = json!({"type": "error", "sessionID": "s", "error": body}).to_string();
        let (_, result) = decode(OpenCodeDecoder::new(), &[start("m"), line], Exit::new(1));
        assert_eq!(result.status, RunStatus::Failed);
        assert_eq!(result.errors.len(), 1);
        assert_eq!(
            (result.errors[0].code, result.errors[0].message.as_str()),
            (ErrorCode::CliError, "boom")
        );
        assert_eq!(result.diagnostics.unknown, 0);
    }
}

#[test]
fn recording_without_an_exit_status_may_be_complete() {
    let (_, result) = decode(OpenCodeDecoder::new(), &answer(), Exit::default());
    assert_eq!(
        (result.status, result.errors.len()),
        (RunStatus::Completed, 0)
    );
    let (_, result) = decode(OpenCodeDecoder::new(), &answer()[..2], Exit::default());
    assert_eq!(result.status, RunStatus::Failed);
}

#[test]
fn a_server_that_is_missing_is_a_notice_and_no_evidence() {
    let log = "timestamp=2026-11-22T04:18:31.244Z level=WARN run=f94403d0 \
        message=\"server unavailable\" key=probe type=local status=failed";
    let stderr = format!("{log}\n{log}\n");
    let (events, result) = decode(OpenCodeDecoder::new(), &answer(), with_stderr(0, &stderr));
    let notices: Vec<_> = payloads::<Notice>(&events)
        .map(|notice| (notice.level, notice.message.as_str()))
        .collect();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert_eq!(notices[0].0, NoticeLevel::Warning);
    assert!(notices[0].1.starts_with("the MCP server probe is missing"));
    assert_eq!(result.status, RunStatus::Completed);

    // Its text would be classified as an overloaded service.
    let (_, result) = decode(OpenCodeDecoder::new(), &[], with_stderr(1, &stderr));
    let error = result.errors.last().unwrap();
    assert_eq!(error.code, ErrorCode::CliExitError, "{error}");
    assert_eq!(error.kind, ErrorKind::Internal, "{error}");
}

/// Returns a line of the real program, with another session and another error.
fn failed(session: &str, small: bool, error: &str) -> String {
    format!(
        "timestamp=2026-11-22T08:00:41.395Z level=ERROR run=88a8a3ff message=\"stream error\" \
         providerID=mock modelID=mock-model session.id={session} small={small} agent=build \
         mode=primary {error}\n"
    )
}

const UNAVAILABLE: &str = "error.error=\"AI_APICallError: Internal server error\"";

fn retries(events: &[AgentEvent]) -> Vec<(u32, ErrorKind, &str)> {
    events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::Retry(retry) => {
                assert!(retry.error.retryable && retry.max_attempts.is_none());
                Some((retry.attempt, retry.error.kind, &*retry.error.message))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn silently_repeated_requests_are_reported_by_the_log() {
    let stderr = failed(SESSION, false, UNAVAILABLE)
        + &failed(SESSION, true, UNAVAILABLE)
        + &failed("ses_of_a_sub_agent", false, UNAVAILABLE)
        + &failed(
            SESSION,
            false,
            "error.error.type=overloaded_error error.error.message=Overloaded",
        );
    let (events, result) = decode(OpenCodeDecoder::new(), &answer(), with_stderr(0, &stderr));
    assert_eq!(result.status, RunStatus::Completed);
    assert_types(&events, "session text usage retry retry turn_end done");
    assert_eq!(
        retries(&events),
        [
            (1, ErrorKind::Overloaded, "Internal server error"),
            (2, ErrorKind::Overloaded, "Overloaded")
        ]
    );
}

#[test]
fn the_request_with_which_a_run_ended_was_not_repeated() {
    let last = [error(
        "APIError",
        &json!({"message": "Internal server error", "statusCode": 500, "isRetryable": true}),
    )];
    for (times, reported) in [(1, 0), (6, 5)] {
        let stderr = failed(SESSION, false, UNAVAILABLE).repeat(times);
        let (events, result) = decode(OpenCodeDecoder::new(), &last, with_stderr(1, &stderr));
        assert_eq!(result.status, RunStatus::Failed);
        assert_eq!(retries(&events).len(), reported, "{times}");
    }
}

#[test]
fn a_conversation_that_was_too_long_is_no_retry() {
    let too_long = "prompt is too long: 250000 tokens > 200000 maximum";
    let log = failed(
        SESSION,
        false,
        &format!("error.error=\"AI_APICallError: {too_long}\""),
    );
    let first = error("ContextOverflowError", &json!({"message": too_long}));
    let lines = [vec![first.clone()], answer(), vec![first]].concat();
    let (events, _) = decode(
        OpenCodeDecoder::new(),
        &lines,
        with_stderr(1, &log.repeat(2)),
    );
    assert!(retries(&events).is_empty(), "{events:?}");
}

#[test]
fn a_try_that_was_reported_is_not_reported_again_by_the_log() {
    let lines = [vec![start("m")], answer()].concat();
    let stderr = failed(SESSION, false, "error.error.message=Overloaded");
    let (events, _) = decode(OpenCodeDecoder::new(), &lines, with_stderr(0, &stderr));
    let reported = names(&events);
    assert_eq!(reported.iter().filter(|name| **name == "retry").count(), 1);
}

#[test]
fn the_help_of_a_version_without_auto_shows_that_it_is_too_old() {
    // Beginning of the help that 1.3.0 prints on stdout and 1.15.13 on stderr.
    let old = "opencode run [message..]\n\nrun opencode with a message\n\nOptions:\n  -h, --help  show help";
    let new = format!("{old}\n      --auto  auto-approve permissions");
    let lines: Vec<_> = old.lines().map(str::to_owned).collect();
    for (lines, stderr) in [
        (&lines[..], "ERROR 2026-11-23T06:08:38 +818ms x"),
        (&[], old),
    ] {
        let (_, result) = decode(OpenCodeDecoder::new(), lines, with_stderr(1, stderr));
        let [error] = &result.errors[..] else {
            panic!("{:?}", result.errors)
        };
        assert_eq!(error.kind, ErrorKind::Invalid);
        assert!(
            error.message.contains("1.18.17 or newer"),
            "{}",
            error.message
        );
        assert!(error.message.contains("npm install -g opencode-ai"));
    }
    // An unknown flag of the caller.
    let (_, result) = decode(OpenCodeDecoder::new(), &[], with_stderr(1, &new));
    assert_eq!(result.errors[0].code, ErrorCode::CliStderr);
    assert_eq!(result.errors[0].kind, ErrorKind::Invalid);
}

/// Made by hand: JavaScript cuts a text inside a character.
#[test]
fn half_a_character_loses_no_message_of_an_error() {
    let line = error(
        "APIError",
        &json!({"message": "Overloaded HALF", "statusCode": 529}),
    );
    let (_, result) = run(&[start("m"), line.replace("HALF", "\\ud83d")]);
    assert_eq!(result.errors[0].message, "Overloaded \u{fffd}");
}
