//! Retries and errors.

use serde_json::{Value, json};
use teamster_core::{AgentEvent, ErrorKind, Retry, RunStatus};
use teamster_testkit::events::payloads;

use super::super::errors::kind_of_stderr;
use super::{assert_types, line, message, names, of_agent, result, run};

fn failure(data: &Value) -> String {
    line("model.call_failure", data)
}

fn retry(reason: &str) -> String {
    line(
        "assistant.turn_retry",
        &json!({"turnId": "0", "reason": reason}),
    )
}

fn retries(events: &[AgentEvent]) -> Vec<&Retry> {
    payloads(events).collect()
}

#[test]
fn failed_requests_are_classified() {
    let kind = |data: Value, reason: &str| {
        let (events, _) = run(&[failure(&data), retry(reason)]);
        retries(&events)[0].error.kind
    };
    let status = |code: u16| json!({"statusCode": code, "errorMessage": "\"x\""});
    assert_eq!(kind(status(401), "transient_auth_error"), ErrorKind::Auth);
    assert_eq!(kind(status(529), "api_error"), ErrorKind::Overloaded);
    assert_eq!(
        kind(status(413), "forced_compaction"),
        ErrorKind::ContextWindow
    );
    let transport = json!({"failureKind": "transport", "errorMessage": "\"cut\""});
    assert_eq!(kind(transport, "streaming_error"), ErrorKind::Network);
    let quota = json!({"statusCode": 429, "errorMessage": r#"{"code":"insufficient_quota"}"#});
    assert_eq!(kind(quota, "rate_limit"), ErrorKind::Quota);
    // The word alone.
    for (reason, expected) in [
        ("rate_limit", ErrorKind::RateLimit),
        ("api_error", ErrorKind::Overloaded),
        ("streaming_error", ErrorKind::Network),
        ("transient_auth_error", ErrorKind::Auth),
        ("something new", ErrorKind::Internal),
    ] {
        let (events, _) = run(&[retry(reason)]);
        let retry = retries(&events)[0];
        assert_eq!((retry.attempt, retry.error.kind), (1, expected), "{reason}");
    }
}

#[test]
fn a_retry_that_only_a_notice_reports_is_reported() {
    let reported = line(
        "session.info",
        &json!({"infoType": "model_retry", "message": "Retrying..."}),
    );
    let (events, _) = run(&[reported, result(0)]);
    assert_eq!(names(&events)[0], "notice");
}

fn error(data: &Value) -> String {
    line("session.error", data)
}

#[test]
fn errors_of_runs_are_classified() {
    let kind = |data: Value| {
        let (_, done) = run(&[error(&data), result(1)]);
        assert_eq!(done.status, RunStatus::Failed);
        assert_eq!(done.errors.len(), 1, "{:?}", done.errors);
        done.errors[0].kind
    };
    let cases = [
        (
            "authentication",
            None,
            "Authentication failed with provider",
            ErrorKind::Auth,
        ),
        ("authorization", None, "no", ErrorKind::Auth),
        ("policy", None, "no", ErrorKind::Permission),
        ("quota", None, "no", ErrorKind::Quota),
        ("context_limit", None, "no", ErrorKind::ContextWindow),
        (
            "rate_limit",
            Some(429),
            "429 Rate limit reached",
            ErrorKind::RateLimit,
        ),
        (
            "rate_limit",
            Some(429),
            "You exceeded your current quota",
            ErrorKind::Quota,
        ),
        (
            "query",
            Some(404),
            "Model 'x' not found on provider at y",
            ErrorKind::ModelNotFound,
        ),
        (
            "query",
            Some(400),
            "maximum context length is 8000",
            ErrorKind::ContextWindow,
        ),
        (
            "query",
            None,
            "rejected the prompt as too long",
            ErrorKind::ContextWindow,
        ),
        ("query", Some(400), "no", ErrorKind::Invalid),
        ("query", Some(503), "Last error: 503", ErrorKind::Overloaded),
        (
            "query",
            None,
            "Could not connect to local model provider",
            ErrorKind::Network,
        ),
        (
            "query",
            None,
            "Last error: Failed to parse chat-completions",
            ErrorKind::Protocol,
        ),
        // Reported by users of 0.0.367 to 1.0.40.
        (
            "query",
            None,
            r#"Execution failed: Error: Failed to get response from the AI model; retried 5 times (total retry wait time: 95.06 seconds) Last error: CAPIError: 503 {"error":{"message":"HTTP/2 GOAWAY connection terminated","type":"connection_error"}}"#,
            ErrorKind::Overloaded,
        ),
        (
            "query",
            None,
            "Execution failed: CAPIError: 400 400 Bad Request",
            ErrorKind::Invalid,
        ),
        (
            "query",
            None,
            "Execution failed: CAPIError: 403 403 Forbidden",
            ErrorKind::Auth,
        ),
        (
            "query",
            None,
            "Execution failed: CAPIError: Connection error.",
            ErrorKind::Network,
        ),
        (
            "execution",
            None,
            "Execution failed: terminated",
            ErrorKind::Network,
        ),
        (
            "execution",
            None,
            "Execution failed: terminated by the user",
            ErrorKind::Internal,
        ),
        (
            "query",
            None,
            "503 of the tests failed",
            ErrorKind::Internal,
        ),
        ("query", None, "CAPIError: Unknown", ErrorKind::Internal),
        (
            "query",
            None,
            "Execution failed: Error: Stream completed without a response.completed event",
            ErrorKind::Protocol,
        ),
        ("query", None, "something new", ErrorKind::Internal),
    ];
    for (error_type, status, text, expected) in cases {
        let data = json!({"errorType": error_type, "statusCode": status, "message": text});
        assert_eq!(kind(data), expected, "{error_type} {text}");
    }
    assert_eq!(kind(json!({})), ErrorKind::Internal);
}

#[test]
fn the_failed_request_explains_an_unspecific_error() {
    let (_, done) = run(&[
        failure(&json!({"statusCode": 502, "errorMessage": "\"Bad Gateway\""})),
        error(&json!({"errorType": "query", "message": "it failed"})),
        result(1),
    ]);
    assert_eq!(done.errors[0].kind, ErrorKind::Overloaded);
}

#[test]
fn an_error_that_the_run_overcame_is_a_notice() {
    let lost = error(&json!({"errorType": "query", "message": "lost"}));
    let (events, done) = run(&[lost.clone(), message("a", "x"), result(0)]);
    assert_types(&events, "text session notice turn_end done");
    assert_eq!(done.status, RunStatus::Completed);
    // Without the end, the failure is the best known error.
    let (_, done) = run(&[lost]);
    assert_eq!(done.status, RunStatus::Failed);
    assert_eq!(done.errors[0].message, "lost");
}

#[test]
fn the_error_of_a_sub_agent_is_not_that_of_the_run() {
    let failed = of_agent(
        "A",
        "session.error",
        &json!({"errorType": "query", "message": "m"}),
    );
    let (events, done) = run(&[failed, message("a", "x"), result(0)]);
    assert_types(&events[..2], "notice text");
    assert_eq!(done.status, RunStatus::Completed);
}

#[test]
fn failures_of_the_start_are_reported_on_stderr_alone() {
    let cases = [
        (
            "Error: No authentication information found.",
            ErrorKind::Auth,
        ),
        (
            "Error: No session, task, or name matched 'x'.",
            ErrorKind::SessionNotFound,
        ),
        (
            "Error: No session or task matched 'not-a-uuid'.",
            ErrorKind::SessionNotFound,
        ),
        (
            "Failed to read MCP config file \"x\": No such file or directory (os error 2)",
            ErrorKind::Mcp,
        ),
        (
            "Invalid JSON: key must be a string at line 1 column 2",
            ErrorKind::Mcp,
        ),
        (
            "BYOK providers require an explicit model.",
            ErrorKind::Invalid,
        ),
        (
            "Offline mode requires a local model provider.",
            ErrorKind::Invalid,
        ),
        ("error: Invalid command format.", ErrorKind::Invalid),
        (
            "error: invalid value 'silly' for '--reasoning-effort <level>'",
            ErrorKind::Invalid,
        ),
        (
            "error: the argument '--session-id <id>' cannot be used with '--trust-folder'",
            ErrorKind::Invalid,
        ),
        (
            "Invalid --deny-tool value. Error: Invalid rule format: ((x",
            ErrorKind::Invalid,
        ),
        ("--attachment file not found: /x.png", ErrorKind::Invalid),
        (
            "No prompt provided. Run in an interactive terminal",
            ErrorKind::Invalid,
        ),
        (
            "binary was terminated by signal SIGKILL.\nno platform package found.",
            ErrorKind::Internal,
        ),
        (
            "GitHub Copilot CLI: no platform package found.",
            ErrorKind::NotFound,
        ),
    ];
    for (stderr, expected) in cases {
        assert_eq!(kind_of_stderr(stderr), Some(expected), "{stderr}");
    }
    // Not every text on stderr is a failure.
    assert_eq!(kind_of_stderr("Package extraction took 7205ms"), None);
}
