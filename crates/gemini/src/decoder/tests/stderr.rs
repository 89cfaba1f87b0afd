//! stderr of a run without a result.

use teamster_core::provider::{Exit, Stop};
use teamster_core::{AgentError, AgentEvent, Notice, RunResult};
use teamster_core::{ErrorCode, ErrorKind, ExecuteParams, NoticeSource, RunStatus};
use teamster_testkit::events::payloads;

use super::{delta, error, init, run_with, success};

fn never_began(stderr: &str, code: i32) -> (ErrorKind, ErrorCode, String) {
    let ended = Exit {
        stderr: stderr.into(),
        ..Exit::new(code)
    };
    let (_, result) = run_with(&ExecuteParams::new("hi"), &[], ended);
    assert_eq!(result.status, RunStatus::Failed);
    let error = error(&result);
    (error.kind, error.code, error.message.clone())
}

#[test]
fn a_failed_start_is_explained_on_stderr() {
    let noise = "Warning: Basic terminal detected (TERM=dumb).\nYOLO mode is enabled.\n";
    let (kind, code, message) = never_began(
        &format!("{noise}\u{1b}[31mGemini CLI is not running in a trusted directory.\u{1b}[0m\n"),
        55,
    );
    assert_eq!((kind, code), (ErrorKind::Permission, ErrorCode::CliStderr));
    assert_eq!(message, "Gemini CLI is not running in a trusted directory.");
    let (kind, _, message) = never_began("Unknown arguments: x\nUsage: gemini\n\n  --help", 1);
    assert_eq!(
        (kind, message.as_str()),
        (ErrorKind::Invalid, "Unknown arguments: x")
    );
    let (kind, _, _) = never_began(
        "Error resuming session: No previous sessions found for this project.",
        42,
    );
    assert_eq!(kind, ErrorKind::SessionNotFound);
    // For an unknown message, the exit code decides.
    let (kind, _, message) = never_began(&format!("{noise}Etwas fehlt.\n    at x.js:1\n"), 41);
    assert_eq!((kind, message.as_str()), (ErrorKind::Auth, "Etwas fehlt."));
    let (kind, code, _) = never_began(noise, 41);
    assert_eq!((kind, code), (ErrorKind::Auth, ErrorCode::CliExitError));
    let (kind, code, message) = never_began(noise, 1);
    assert_eq!((kind, code), (ErrorKind::Internal, ErrorCode::CliExitError));
    assert!(message.contains("exited with code 1"), "{message}");
}

/// Returns the CLI's message about a request that it repeats, as recorded except for the length of the stack.
fn attempt(number: u32, status: u16) -> String {
    format!(
        "Ripgrep is not available. Falling back to GrepTool.\n\
         Attempt {number} failed with status {status}. Retrying with backoff... _ApiError: \
         {{\"error\":{{\"code\":{status},\"message\":\"It did not go.\"}}}}\n    \
         at throwErrorIfNotOK (file:///x.js:267833:24)\n    \
         at async Turn.run (file:///x.js:333001:24) {{\n  status: {status}\n}}\n"
    )
}

fn gone(stderr: String, exit: Exit, lines: &[String]) -> (Vec<AgentEvent>, RunResult) {
    run_with(&ExecuteParams::new("hi"), lines, Exit { stderr, ..exit })
}

fn killed() -> Exit {
    Exit {
        signal: Some("SIGKILL".into()),
        ..Exit::default()
    }
}

#[test]
fn a_cli_that_is_killed_while_it_repeats_a_request() {
    let stderr = attempt(1, 503) + &attempt(2, 429);
    let (_, result) = gone(stderr, killed(), &[init()]);
    assert_eq!(result.status, RunStatus::Failed);
    let AgentError {
        code,
        kind,
        message,
        ..
    } = error(&result);
    assert_eq!(
        (*code, *kind),
        (ErrorCode::CliExitError, ErrorKind::RateLimit)
    );
    assert_eq!(
        message,
        "the CLI was ended by SIGKILL before its run was over; the last reported request \
         failed with status 429"
    );
}

#[test]
fn a_request_that_was_overcome_explains_nothing() {
    let (_, result) = gone(attempt(1, 429), killed(), &[init(), delta("x")]);
    assert_eq!(error(&result).kind, ErrorKind::Internal);
    assert!(error(&result).message.contains("SIGKILL"));
    let (_, result) = gone(attempt(1, 429), Exit::new(247), &[init(), delta("x")]);
    assert_eq!(error(&result).kind, ErrorKind::Overloaded);
    assert!(error(&result).message.contains("exited with code 247"));
}

#[test]
fn the_kind_of_a_request_that_failed_without_a_status() {
    let stderr = "Attempt 1 failed. Retrying with backoff... Error: exception TypeError: fetch \
                  failed sending request\n    at file:///x.js:1:1\n";
    let (_, result) = gone(stderr.into(), Exit::new(1), &[init()]);
    assert_eq!(error(&result).kind, ErrorKind::Network);
    assert!(error(&result).message.contains("exited with code 1"));
    assert!(
        error(&result)
            .message
            .ends_with("fetch failed sending request")
    );
}

#[test]
fn run_ended_from_outside_has_its_error_and_a_request_notice() {
    let timeout = AgentError::new(ErrorCode::WatchdogTimeout, ErrorKind::Timeout, "too long");
    let stopped = Exit {
        stop: Some(Stop::Timeout(timeout)),
        ..Exit::new(0)
    };
    for (exit, code) in [
        (stopped, ErrorCode::WatchdogTimeout),
        (Exit::new(0), ErrorCode::StreamEndedEarly),
    ] {
        let (events, result) = gone(attempt(3, 429), exit, &[init()]);
        assert_eq!(error(&result).code, code);
        assert!(!error(&result).message.contains("_ApiError"));
        let notices =
            payloads::<Notice>(&events).map(|notice| (notice.source, notice.message.as_str()));
        assert_eq!(
            notices.collect::<Vec<_>>(),
            [(
                NoticeSource::Stderr,
                "the last reported request failed with status 429"
            )]
        );
    }
}

#[test]
fn failed_sub_agent_is_a_warning_and_no_reason_of_the_end() {
    // As 0.61.0 prints it, with a shorter stack.
    let stderr = "Subagent 'generalist' failed: _ApiError: {\"error\":{\"code\":400,\"message\":\"Request contains an \
                  invalid argument.\",\"status\":\"INVALID_ARGUMENT\"}}\n    at x (file:///x.js:1:1) {\n  status: 400\n}\n";
    let ended = |code| Exit {
        stderr: stderr.into(),
        ..Exit::new(code)
    };
    let lines = [init(), delta("It failed."), success()];
    let (events, result) = run_with(&ExecuteParams::new("hi"), &lines, ended(0));
    assert_eq!(result.status, RunStatus::Completed);
    let notices =
        payloads::<Notice>(&events).map(|notice| (notice.source, notice.message.as_str()));
    let expected =
        "the sub-agent \"generalist\" failed: API error 400: Request contains an invalid argument.";
    assert_eq!(
        notices.collect::<Vec<_>>(),
        [(NoticeSource::Stderr, expected)]
    );
    let (_, result) = run_with(&ExecuteParams::new("hi"), &[init()], ended(1));
    assert!(!error(&result).message.contains("argument"), "{result:?}");
}

#[test]
fn the_explanation_is_found_between_repeated_requests() {
    let several = "Attempt 2 failed with status 429. Retrying with backoff... RetryableQuotaError: \
                   Too much.\nSuggested retry after 2s.\n    at x (file:///x.js:1:1) {\n  cause: {\n    \
                   code: 429\n  },\n  status: 429\n}\n";
    let stderr = format!(
        "{}{several}Attempt 3 failed: Too much.. Max attempts reached\nIt cannot go on.\n    at y \
         (file:///x.js:2:2) {{\n  a: 1\n}}\nAttempt this again later.\n",
        attempt(1, 500)
    );
    let (_, result) = gone(stderr, Exit::new(1), &[init()]);
    assert_eq!(error(&result).code, ErrorCode::CliStderr);
    assert_eq!(
        error(&result).message,
        "It cannot go on.\nAttempt this again later."
    );
}

/// If the service requests a delay, the CLI prints its pause after a message of several lines.
#[test]
fn repeated_request_with_a_delay_explains_no_failure() {
    let limit = |number: u32, then: &str| {
        format!(
            "Attempt {number} failed: You exceeded your current quota, please check your plan.\n\
             Suggested retry after 1s.. {then}\n"
        )
    };
    let repeated = limit(1, "Retrying after 5141ms...") + &limit(2, "Retrying after 11626ms...");
    let (_, result) = gone(repeated.clone(), killed(), &[init()]);
    let AgentError {
        code,
        kind,
        message,
        ..
    } = error(&result);
    assert_eq!(
        (*code, *kind),
        (ErrorCode::CliExitError, ErrorKind::RateLimit)
    );
    assert_eq!(
        message,
        "the CLI was ended by SIGKILL before its run was over; the last reported request \
         failed: You exceeded your current quota, please check your plan."
    );
    let given_up = repeated + &limit(3, "Max attempts reached") + "It cannot go on.\n";
    let (_, result) = gone(given_up, Exit::new(1), &[init()]);
    assert_eq!(error(&result).message, "It cannot go on.");
    let overloaded = "Attempt 2 failed: The model is overloaded. Please try again later.. Max \
                      attempts reached\n";
    let (_, result) = gone(overloaded.into(), Exit::new(1), &[init()]);
    assert_eq!(error(&result).kind, ErrorKind::Overloaded);
    assert!(
        error(&result)
            .message
            .ends_with("reported request failed: The model is overloaded. Please try again later.")
    );
    // A text with only the same beginning is another program's.
    let other = "Attempt 1 failed: no such hook\nNothing follows.";
    assert_eq!(super::super::stderr::evidence(other), other);
}

#[test]
fn notices_of_servers_explain_no_failure() {
    let stderr = "[INFO] MCP issues detected. Run /mcp list for status.\n\
                MCP ERROR (tiny)\n\
                \u{1b}[31m[ERROR] MCP ERROR (tiny)\u{1b}[0m\n\
                [ERROR] Error during discovery for MCP server 'x': y\n\
                [ERROR] Something else\n";
    assert_eq!(
        super::super::stderr::evidence(stderr),
        "[ERROR] Something else"
    );
}

#[test]
fn an_error_that_the_result_calls_unknown_is_found_on_stderr() {
    let unknown = r#"{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: An unknown error occurred.]"}}"#;
    let reported = |stderr: &str| {
        let ended = Exit {
            stderr: stderr.into(),
            ..Exit::new(1)
        };
        let (_, done) = run_with(&ExecuteParams::new("hi"), &[init(), unknown.into()], ended);
        let [error] = &done.errors[..] else {
            panic!("{:?}", done.errors);
        };
        (error.kind, error.message.clone())
    };
    let thrown = |error: &str| {
        format!(
            "Ripgrep is not available.\nError when talking to Gemini API Full report available at: \
             /tmp/gemini-client-error-Turn.run-1.json {error}\n    at x (file:///x.js:1:2) {{\n  \
             [cause]: SocketError: other side closed\n}}\n"
        )
    };
    let (kind, message) = reported(&thrown("TypeError: terminated"));
    assert_eq!(kind, ErrorKind::Network);
    assert!(message.starts_with("terminated: "), "{message}");
    let (kind, message) = reported(&thrown(
        "RetryableQuotaError: Slow: down.\nSuggested retry after 1s.",
    ));
    assert_eq!(kind, ErrorKind::Internal);
    assert_eq!(message, "Slow: down.\nSuggested retry after 1s.");
    // Without any other information.
    let (kind, message) = reported("Ripgrep is not available.\n");
    assert_eq!(
        (kind, &*message),
        (ErrorKind::Internal, "An unknown error occurred.")
    );
}
