//! Ends of runs, which the CLI does not always report correctly.

use serde_json::json;
use teamster_core::provider::Exit;
use teamster_core::{ErrorCode, ErrorKind, ExecuteParams, PermissionMode, RunStatus};

use super::{
    SESSION, assert_types, call, delta, error, error_line, failed, failure, init, names, result,
    run, run_with, success,
};

/// Returns the error kind of a run that failed with this message and exit code.
fn kind(message: &str, code: i32) -> ErrorKind {
    let params = ExecuteParams::new("hi");
    let (_, result) = run_with(
        &params,
        &[init(), failure("unknown", message)],
        Exit::new(code),
    );
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(error(&result).code, ErrorCode::CliError);
    assert_eq!(result.usage, None);
    assert!(result.usage_by_model.is_empty());
    error(&result).kind
}

#[test]
fn errors_of_the_service_are_classified_by_their_text() {
    for (message, code, expected) in [
        (
            r#"[API Error: {"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]"#,
            144,
            ErrorKind::Auth,
        ),
        (
            r#"[API Error: {"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
            144,
            ErrorKind::ContextWindow,
        ),
        // Made by hand, after errors of Code Assist and Vertex AI, whose answers are lists.
        (
            r#"[API Error: [{"error":{"code":503,"message":"It is away.","status":"UNAVAILABLE"}}]]"#,
            0,
            ErrorKind::Overloaded,
        ),
        (
            r#"[API Error: [{"code":503,"message":"It is away."}]]"#,
            0,
            ErrorKind::Internal,
        ),
        (
            "[API Error: No capacity available for model gemini-3.1-pro-preview on the server]",
            0,
            ErrorKind::Overloaded,
        ),
        (
            r#"[API Error: {"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}]"#,
            144,
            ErrorKind::Auth,
        ),
        (
            r#"[API Error: {"error":{"code":400,"message":"Bad.","status":"INVALID_ARGUMENT"}}]"#,
            144,
            ErrorKind::Invalid,
        ),
        (
            r#"[API Error: {"error":{"code":401,"message":"Who?","status":"UNAUTHENTICATED"}}]"#,
            145,
            ErrorKind::Auth,
        ),
        (
            r#"[API Error: {"error":{"code":500,"message":"An internal error has occurred.","status":"INTERNAL"}}]"#,
            244,
            ErrorKind::Overloaded,
        ),
        (
            "[API Error: models/x is not found for API version v1beta.]",
            1,
            ErrorKind::ModelNotFound,
        ),
        (
            "[API Error: You have exhausted your daily quota on this model.]\nPlease wait",
            173,
            ErrorKind::Quota,
        ),
        (
            "[API Error: Resource has been exhausted (e.g. check quota).]\nPlease wait",
            173,
            ErrorKind::RateLimit,
        ),
        (
            "[API Error: exception TypeError: fetch failed sending request]",
            1,
            ErrorKind::Network,
        ),
        ("[API Error: terminated]", 1, ErrorKind::Network),
        (
            "[API Error: Expected property name or '}' in JSON at position 1]",
            1,
            ErrorKind::Protocol,
        ),
        (
            "[API Error: Incomplete JSON segment at the end]",
            1,
            ErrorKind::Protocol,
        ),
    ] {
        assert_eq!(kind(message, code), expected, "{message}");
    }
}

/// A stream contains broken JSON. Node quotes the text, which may contain any words.
#[test]
fn broken_json_in_the_stream_is_a_fault_of_the_protocol() {
    for message in [
        r#"Unexpected token '}', "{"candidates": [}" is not valid JSON"#,
        r#"Unexpected token 'b', "daily quota "... is not valid JSON"#,
        "Unexpected end of JSON input",
        "Unterminated string in JSON at position 20",
        "Unexpected non-whitespace character after JSON at position 4 (line 1 column 5)",
        r#"exception parsing stream chunk {"a": [}. SyntaxError: Unexpected token '}', "{"a": [}" is not valid JSON"#,
    ] {
        let line = failure("unknown", &format!("[API Error: {message}]"));
        let (_, result) = run_with(&ExecuteParams::new("hi"), &[init(), line], Exit::new(1));
        assert_eq!(error(&result).kind, ErrorKind::Protocol, "{message}");
        assert!(error(&result).retryable);
        assert_eq!(error(&result).message, message);
    }
    // In the service's response to a request, it is a fault of the request.
    let answer = r#"[API Error: {"error":{"code":400,"message":"\"x\" is not valid JSON"}}]"#;
    assert_eq!(kind(answer, 144), ErrorKind::Invalid);
}

#[test]
fn a_connection_that_breaks_or_gives_nothing_is_the_networks() {
    for message in [
        "other side closed",
        "Headers Timeout Error",
        "Body Timeout Error",
        "Connect Timeout Error (attempted address: x:443, timeout: 10000ms)",
        "aborted",
        "This operation was aborted",
        "exception Error: Premature close sending request",
    ] {
        let wrapped = format!("[API Error: {message}]");
        assert_eq!(kind(&wrapped, 1), ErrorKind::Network, "{message}");
    }
}

#[test]
fn a_404_is_the_model_or_the_address() {
    for (message, expected) in [
        ("404 page not found", ErrorKind::Invalid),
        ("404 Not Found", ErrorKind::Invalid),
        (
            r#"{"error":{"message":"404 page not found\n","code":404,"status":"Not Found"}}"#,
            ErrorKind::Invalid,
        ),
        (
            r#"{"error":{"message":"No route.","code":404,"status":"Not Found"}}"#,
            ErrorKind::Invalid,
        ),
        (
            r#"{"error":{"code":404,"message":"Requested entity was not found.","status":"NOT_FOUND"}}"#,
            ErrorKind::ModelNotFound,
        ),
        (
            r#"{"error":{"code":404,"message":"No such Model.","status":"Not Found"}}"#,
            ErrorKind::ModelNotFound,
        ),
        (r#"{"error":{"code":404}}"#, ErrorKind::ModelNotFound),
        ("Model not found", ErrorKind::ModelNotFound),
    ] {
        let wrapped = format!("[API Error: {message}]");
        assert_eq!(kind(&wrapped, 1), expected, "{message}");
    }
}

#[test]
fn unclear_words_give_the_exit_code_modulo_256() {
    for (code, expected) in [
        (144, ErrorKind::Invalid),
        (145, ErrorKind::Auth),
        (147, ErrorKind::Auth),
        (173, ErrorKind::RateLimit),
        (244, ErrorKind::Overloaded),
        (246, ErrorKind::Overloaded),
        (247, ErrorKind::Overloaded),
        (17, ErrorKind::Overloaded),
        (41, ErrorKind::Auth),
        (53, ErrorKind::MaxTurns),
        (55, ErrorKind::Permission),
        (1, ErrorKind::Internal),
        (2, ErrorKind::Internal),
    ] {
        assert_eq!(
            kind("[API Error: Es ging nicht.]", code),
            expected,
            "{code}"
        );
    }
}

#[test]
fn the_clis_own_types_of_errors() {
    for (kind, expected) in [
        ("FatalTurnLimitedError", ErrorKind::MaxTurns),
        ("FatalAuthenticationError", ErrorKind::Auth),
        ("FatalInputError", ErrorKind::Invalid),
        ("FatalCancellationError", ErrorKind::Aborted),
    ] {
        let (_, result) = run(&[init(), failure(kind, "It failed.")]);
        assert_eq!(error(&result).kind, expected);
    }
}

#[test]
fn a_message_is_for_a_person() {
    let message = |message: &str| {
        let (_, result) = run(&[init(), failure("unknown", message)]);
        error(&result).message.clone()
    };
    assert_eq!(
        message(
            r#"[API Error: {"error":{"code":401,"message":"Who?","status":"UNAUTHENTICATED"}}]"#
        ),
        "API error 401: Who?"
    );
    // An error in the middle of a stream.
    assert_eq!(
        message(
            r#"[API Error: got status: UNAVAILABLE. {"error":{"code":503,"message":"Too much.","status":"UNAVAILABLE"}}]"#
        ),
        "API error 503: Too much."
    );
    // A response that the CLI could not parse as JSON.
    let nested = |body: &str| {
        let outer = json!({"error": {"message": body, "code": 400, "status": "Bad Request"}});
        message(&format!("[API Error: {outer}]"))
    };
    let body = r#"{"error":{"code":418,"message":"No.","status":"INVALID_ARGUMENT"}}"#;
    assert_eq!(nested(body), "API error 418: No.");
    assert_eq!(
        nested(r#"{"error":{"message":"No."}}"#),
        "API error 400: No."
    );
    assert_eq!(nested("{}"), "API error 400: {}");
    assert_eq!(
        message("[API Error: terminated]"),
        "terminated: the connection to the service broke in the middle of the answer"
    );
    assert_eq!(
        message("[API Error: The model [x] is overloaded.]\nPlease wait."),
        "The model [x] is overloaded.\nPlease wait."
    );
    assert_eq!(
        message("plain, an internal server error"),
        "plain, an internal server error"
    );
}

#[test]
fn a_time_to_wait_makes_a_quota_a_rate_limit() {
    let waits = |message: &str| {
        let (_, result) = run(&[init(), failure("unknown", message)]);
        let error = error(&result);
        assert_eq!(error.retryable, error.kind == ErrorKind::RateLimit);
        (error.kind, error.retry_after_ms)
    };
    let quota = "You exceeded your current quota, please check your plan and billing details.";
    assert_eq!(
        waits(&format!(
            "[API Error: {quota}\nSuggested retry after 2s.]\nPlease wait"
        )),
        (ErrorKind::RateLimit, Some(2000))
    );
    assert_eq!(
        waits(&format!("[API Error: {quota}]")),
        (ErrorKind::Quota, None)
    );
    assert_eq!(
        waits(&format!("[API Error: {quota} Please retry in 12.25s.]")),
        (ErrorKind::RateLimit, Some(12_250))
    );
    assert_eq!(
        waits(&format!(
            "[API Error: {quota}\nSuggested retry after 250ms.]"
        )),
        (ErrorKind::RateLimit, Some(250))
    );
    assert_eq!(
        waits(&format!(
            "[API Error: {quota}\nSuggested retry after a while.]"
        )),
        (ErrorKind::Quota, None)
    );
    let json = |id: &str| {
        format!(
            r#"[API Error: {{"error":{{"code":429,"message":"{quota}","details":[{{"quotaId":"{id}"}},{{"retryDelay":"37.5s"}}]}}}}]"#
        )
    };
    assert_eq!(
        waits(&json("PerMinute")),
        (ErrorKind::RateLimit, Some(37_500))
    );
    assert_eq!(
        waits(&json("RequestsPerDay")),
        (ErrorKind::Quota, Some(37_500))
    );
    let in_stream = |id: &str| {
        let words = "[API Error: got status: RESOURCE_EXHAUSTED. ";
        json(id).replacen("[API Error: ", words, 1)
    };
    assert_eq!(
        waits(&in_stream("PerMinute")),
        (ErrorKind::RateLimit, Some(37_500))
    );
    assert_eq!(
        waits(&in_stream("RequestsPerDay")),
        (ErrorKind::Quota, Some(37_500))
    );
}

#[test]
fn failure_with_exit_code_0_has_the_previous_error_line() {
    for (message, expected) in [
        (
            "The model returned an empty response with no text or thoughts. Try again.",
            ErrorKind::Protocol,
        ),
        (
            "The model returned reasoning thoughts but no final response text.",
            ErrorKind::Protocol,
        ),
        (
            "Model stream ended without a finish reason.",
            ErrorKind::Protocol,
        ),
        (
            "Model stream ended with malformed function call.",
            ErrorKind::Protocol,
        ),
        (
            "The model response was blocked due to safety settings.",
            ErrorKind::Invalid,
        ),
        (
            "The model response was blocked due to recitation/copyright filters.",
            ErrorKind::Invalid,
        ),
        (
            "Model response was truncated because it exceeded the token limit.",
            ErrorKind::Invalid,
        ),
        ("Something new.", ErrorKind::Internal),
    ] {
        let (events, result) = run(&[
            init(),
            error_line("error", message),
            result(&json!({"status": "error", "stats": {}})),
        ]);
        assert_eq!(result.status, RunStatus::Failed);
        assert_eq!(error(&result).message, message);
        assert_eq!(error(&result).kind, expected, "{message}");
        assert_eq!(error(&result).code, ErrorCode::CliError);
        assert!(!names(&events).contains(&"notice"));
    }
}

#[test]
fn a_failure_without_a_message_is_reported_as_such() {
    let (_, result) = run(&[init(), result(&json!({"status": "error"}))]);
    assert_eq!(result.status, RunStatus::Failed);
    assert!(error(&result).message.contains("said nothing"));
}

#[test]
fn a_run_that_the_cli_cut_off_is_no_success() {
    for (message, expected) in [
        ("Loop detected, stopping execution", ErrorKind::Invalid),
        ("Maximum session turns exceeded", ErrorKind::MaxTurns),
        ("Agent execution blocked: no", ErrorKind::Permission),
    ] {
        let (_, result) = run(&[
            init(),
            delta("half"),
            error_line("warning", message),
            success(),
        ]);
        assert_eq!(result.status, RunStatus::Failed);
        assert_eq!(error(&result).kind, expected);
        assert_eq!(error(&result).message, message);
    }
}

#[test]
fn an_overcome_error_is_a_notice() {
    for next in [delta("more"), call("a", "glob", &json!({}))] {
        let (events, result) = run(&[
            init(),
            error_line("error", "Agent execution blocked: think again"),
            next,
            error_line("warning", "by the way"),
            success(),
        ]);
        let notices = names(&events).iter().filter(|n| **n == "notice").count();
        assert_eq!(notices, 2, "{events:?}");
        assert_eq!(result.status, RunStatus::Completed);
        assert!(result.errors.is_empty());
    }
}

#[test]
fn an_error_line_without_its_result_is_the_error() {
    let (_, result) = run(&[
        init(),
        error_line("error", "Model stream ended without a finish reason."),
    ]);
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(error(&result).kind, ErrorKind::Protocol);
}

#[test]
fn a_hook_that_stopped_the_agent_is_the_reason() {
    let (_, result) = run(&[
        init(),
        call("a", "glob", &json!({})),
        failed("a", "stop_execution", "enough"),
        success(),
    ]);
    assert_eq!(result.stop_reason.as_deref(), Some("stop_execution"));
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(error(&result).kind, ErrorKind::Permission);
    assert_eq!(error(&result).code, ErrorCode::CliError);
    assert_eq!(error(&result).message, "a hook ended the run: enough");
}

#[test]
fn another_session_than_the_one_to_resume_is_an_error_at_once() {
    let mut params = ExecuteParams::new("hi");
    params.session_id = Some("asked-for".into());
    let (events, result) = run_with(&params, &[init(), delta("x"), success()], Exit::new(0));
    assert_types(&events[..3], "error session text");
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(error(&result).kind, ErrorKind::SessionNotFound);
    assert!(error(&result).message.contains(SESSION));
    params.session_id = Some(SESSION.into());
    let (_, result) = run_with(&params, &[init(), delta("x"), success()], Exit::new(0));
    assert_eq!(result.status, RunStatus::Completed);
}

#[test]
fn rules_that_the_cli_did_not_read_make_the_run_a_failure() {
    let mut params = ExecuteParams::new("hi");
    let warned = Exit {
        stderr: "Security Warning: Ignoring --admin-policy because system policies are already \
                 defined in /etc/gemini-cli/policies\n"
            .into(),
        ..Exit::new(0)
    };
    let lines = [init(), delta("x"), success()];
    let (_, result) = run_with(&params, &lines, warned.clone());
    assert_eq!(result.status, RunStatus::Completed);
    params.permission = PermissionMode::ReadOnly;
    let (_, result) = run_with(&params, &lines, warned);
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(error(&result).kind, ErrorKind::Permission);
}
