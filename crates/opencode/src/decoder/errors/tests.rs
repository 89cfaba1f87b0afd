use super::*;

fn error(body: &str) -> AgentError {
    CliError::of(&ErrorBody::of(parse(body).unwrap()).unwrap()).error
}

#[test]
fn the_message_of_an_error_of_another_shape_is_not_lost() {
    for (body, message) in [
        (r#""boom string""#, "boom string"),
        (r#"{"name":"X","message":"flat"}"#, "flat"),
        (r#"{"name":"X","data":"why it failed"}"#, "why it failed"),
        (r#"{"name":"X","data":{},"message":"flat"}"#, "flat"),
        (r#"["a"]"#, r#"["a"]"#),
        (r#"{"name":"X"}"#, "OpenCode reported X without a message"),
    ] {
        assert_eq!(error(body).message, message, "{body}");
    }
    assert_eq!(error(r#""Overloaded""#).kind, ErrorKind::Overloaded);
    // Printed by Kilo 7.7.7.
    let empty = r#""run ended without an assistant message; the model returned no output""#;
    let empty = error(empty);
    assert_eq!((empty.kind, empty.retryable), (ErrorKind::Protocol, true));
}

#[test]
fn help_in_place_of_a_run_is_a_wrong_command_line() {
    let help = "opencode run [message..]\n\nrun opencode with a message\n";
    assert_eq!(kind_of_stderr(help), Some(ErrorKind::Invalid));
}

#[test]
fn kinds_of_the_errors_that_were_measured() {
    let cases = [
        (
            r#"{"name":"APIError","data":{"message":"invalid x-api-key","statusCode":401,"isRetryable":false}}"#,
            ErrorKind::Auth,
        ),
        (
            r#"{"name":"APIError","data":{"message":"model: no-such-model","statusCode":404,"isRetryable":false}}"#,
            ErrorKind::ModelNotFound,
        ),
        (
            r#"{"name":"APIError","data":{"message":"Bad Gateway","statusCode":502,"isRetryable":true}}"#,
            ErrorKind::Overloaded,
        ),
        (
            r#"{"name":"APIError","data":{"message":"Cannot connect to API: Unable to connect. Is the computer able to access the url?","isRetryable":true}}"#,
            ErrorKind::Network,
        ),
        (
            r#"{"name":"APIError","data":{"message":"SSE read timed out","isRetryable":true}}"#,
            ErrorKind::Network,
        ),
        (
            r#"{"name":"UnknownError","data":{"message":"The operation timed out."}}"#,
            ErrorKind::Network,
        ),
        (
            r#"{"name":"UnknownError","data":{"message":"JSON parsing failed: Text: {this is not json.\nError message: JSON Parse error: Expected '}'"}}"#,
            ErrorKind::Protocol,
        ),
        (
            r#"{"name":"ContextOverflowError","data":{"message":"prompt is too long: 250000 tokens > 200000 maximum"}}"#,
            ErrorKind::ContextWindow,
        ),
        (
            r#"{"name":"ContentFilterError","data":{"message":"The response was blocked by the provider's content filter"}}"#,
            ErrorKind::Invalid,
        ),
        (
            r#"{"name":"UnknownError","data":{"message":"Unexpected server error. Check server logs for details.","ref":"err_1"}}"#,
            ErrorKind::Internal,
        ),
        (r#"{"name":"SomethingNew"}"#, ErrorKind::Internal),
    ];
    for (body, kind) in cases {
        assert_eq!(error(body).kind, kind, "{body}");
    }
}

#[test]
fn a_spent_quota_is_no_rate_limit_and_not_retryable() {
    let error = error(
        r#"{"name":"APIError","data":{"message":"no","statusCode":429,"isRetryable":true,"responseBody":"{\"error\":{\"code\":\"insufficient_quota\"}}"}}"#,
    );
    assert_eq!((error.kind, error.retryable), (ErrorKind::Quota, false));
}

#[test]
fn json_within_the_message_is_unwrapped() {
    let error = error(
        r#"{"name":"UnknownError","data":{"message":"{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}"}}"#,
    );
    assert_eq!(error.message, "Overloaded (overloaded_error)");
    assert_eq!((error.kind, error.retryable), (ErrorKind::Overloaded, true));
}

// Made by hand, after errors of OpenAI's stream and messages in the program of 1.18.33.
#[test]
fn an_error_of_a_stream_or_of_a_login_is_classified() {
    for (message, expected) in [
        (
            r#"{"type":"error","sequence_number":2,"error":{"type":"server_error","code":"server_is_overloaded","message":"Our servers are currently overloaded."}}"#,
            ErrorKind::Overloaded,
        ),
        (
            r#"{"type":"error","error":{"type":"tokens","message":"Rate limit reached for x"}}"#,
            ErrorKind::RateLimit,
        ),
        (
            r#"{"type":"error","error":{"type":"new","message":"it rained"}}"#,
            ErrorKind::Internal,
        ),
        (
            r#"{"type":"error","error":{"type":"server_error","message":"it rained"}}"#,
            ErrorKind::Overloaded,
        ),
        (
            r#"{"error":{"code":500,"type":"server_error","message":"the request exceeds the available context size"}}"#,
            ErrorKind::ContextWindow,
        ),
        (
            r#"Provider request failed with HTTP 401: {"error":{"type":"ModelError"}}"#,
            ErrorKind::ModelNotFound,
        ),
        ("Token refresh failed: 401", ErrorKind::Auth),
        ("Token refresh failed: 503", ErrorKind::Internal),
    ] {
        let message = serde_json::to_string(message).unwrap();
        let body = format!(r#"{{"name":"UnknownError","data":{{"message":{message}}}}}"#);
        assert_eq!(error(&body).kind, expected, "{message}");
    }
}

// Made by hand, after messages of GitHub, Google and OpenAI.
#[test]
fn an_invalid_request_may_be_about_the_model_or_the_login() {
    for (status, message, expected) in [
        (
            400,
            "The requested model is not supported.",
            ErrorKind::ModelNotFound,
        ),
        (
            400,
            "User location is not supported for the API use.",
            ErrorKind::Auth,
        ),
        (
            400,
            "connection error in the schema of a tool",
            ErrorKind::Invalid,
        ),
        (429, "unauthorized", ErrorKind::RateLimit),
        (401, "Model x is not supported", ErrorKind::Auth),
    ] {
        let error = error(&format!(
            r#"{{"name":"APIError","data":{{"message":"{message}","statusCode":{status},"isRetryable":false}}}}"#
        ));
        assert_eq!(error.kind, expected, "{message}");
    }
    let zen = error(
        r#"{"name":"APIError","data":{"message":"Model x is not supported","statusCode":401,"isRetryable":false,"responseBody":"{\"type\":\"error\",\"error\":{\"type\":\"ModelError\",\"message\":\"Model x is not supported\"}}"}}"#,
    );
    assert_eq!(zen.kind, ErrorKind::ModelNotFound);
}

// Made by hand, after words in the CLI's program: the answer follows if it is short.
#[test]
fn a_status_may_be_in_the_message_alone() {
    for (message, expected) in [
        (
            "RequestExecutor.execute: Provider request failed with HTTP 401: {'error': {'code': '1001', 'message': 'no header'}}",
            ErrorKind::Auth,
        ),
        (
            "Provider request failed with HTTP 429",
            ErrorKind::RateLimit,
        ),
        (
            "Provider request failed with HTTP 500: no such user 401",
            ErrorKind::Overloaded,
        ),
        (
            "Provider request failed with HTTP 429: insufficient_quota",
            ErrorKind::Quota,
        ),
        ("the test of HTTP 401 failed", ErrorKind::Internal),
        (
            "Provider request failed with HTTP error",
            ErrorKind::Internal,
        ),
    ] {
        let body = format!(r#"{{"name":"UnknownError","data":{{"message":"{message}"}}}}"#);
        assert_eq!(error(&body).kind, expected, "{message}");
    }
}

#[test]
fn the_service_requests_a_delay() {
    let after = |headers: &str| {
        error(&format!(
            r#"{{"name":"APIError","data":{{"message":"slow down","statusCode":429,"isRetryable":true,"responseHeaders":{headers}}}}}"#
        ))
        .retry_after_ms
    };
    assert_eq!(after(r#"{"retry-after":"3"}"#), Some(3000));
    assert_eq!(
        after(r#"{"retry-after":"3","retry-after-ms":"1500.5"}"#),
        Some(1501)
    );
    assert_eq!(
        after(r#"{"retry-after":"Sat, 21 Nov 2026 20:48:23 GMT"}"#),
        None
    );
    assert_eq!(after(r#"{"retry-after":"-3"}"#), None);
    assert_eq!(after("[]"), None);
}

#[test]
fn the_log_on_stderr_explains_an_unspecific_line() {
    let body = r#"{"name":"UnknownError","data":{"message":"Unexpected server error. Check server logs for details.","ref":"err_7ff28fbe"}}"#;
    let cli = CliError::of(&ErrorBody::of(parse(body).unwrap()).unwrap());
    // Output of the real program, shortened.
    let stderr = "timestamp=2026-11-22T01:30:29.622Z level=ERROR run=779773e2 message=failed \
        ref=err_7ff28fbe error=\"ProviderModelNotFoundError: Model not found: mocka/nope.\" \
        cause=\"ProviderModelNotFoundError: Model not found: mocka/nope.\\n    at";
    let explained = cli.clone().explained(stderr);
    assert_eq!(explained.kind, ErrorKind::ModelNotFound);
    assert_eq!(
        explained.message,
        "ProviderModelNotFoundError: Model not found: mocka/nope."
    );
    assert_eq!(cli.explained("").kind, ErrorKind::Internal);
}

#[test]
fn stderr() {
    let cases = [
        (
            "\u{1b}[91m\u{1b}[1mError: \u{1b}[0mSession not found",
            Some(ErrorKind::SessionNotFound),
        ),
        (
            "Error: Config file at OPENCODE_CONFIG_CONTENT is not valid JSON(C): ",
            Some(ErrorKind::Invalid),
        ),
        ("Error: File not found: x.png", Some(ErrorKind::NotFound)),
        (
            "Error: You must provide a message or a command",
            Some(ErrorKind::Invalid),
        ),
        ("something else", None),
    ];
    for (stderr, kind) in cases {
        assert_eq!(kind_of_stderr(stderr), kind, "{stderr}");
    }
    assert!(
        of_database("Failed query: \n CREATE TABLE `workspace` (").is_some_and(|e| e.retryable)
    );
    assert!(of_database("Failed query: SELECT").is_none());
}
