//! Classification of OpenCode's errors.

use std::borrow::Cow;

use serde::Deserialize;
use teamster_core::provider::json_line::{parse, whole};
use teamster_core::{AgentError, ErrorCode, ErrorKind};

use super::wire::{ErrorBody, ErrorData};
use crate::INFO;

/// The CLI's placeholder for an error that only its log has.
const SEE_THE_LOG: &str = "Unexpected server error";

/// An error line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CliError {
    pub(crate) error: AgentError,
    /// Reference to the CLI's log.
    reference: Option<String>,
}

impl CliError {
    pub(crate) fn of(body: &ErrorBody<'_>) -> Self {
        let name = body.name.as_deref().unwrap_or("error");
        let data = &body.data;
        let reported = data.message.as_deref().unwrap_or_default();
        let inner = Inner::of(reported);
        let message = match (&inner, reported.trim()) {
            (Some(inner), _) => inner.to_string(),
            (None, "") => format!("OpenCode reported {name} without a message"),
            (None, reported) => reported.to_owned(),
        };
        let words = match &inner {
            Some(inner) => [&*inner.kind, &*inner.message],
            None => [reported, ""],
        };
        let kind = kind(name, data, words);
        let mut error = AgentError::new(ErrorCode::CliError, kind, message);
        if let Some(retryable) = data.is_retryable {
            // A spent quota is refused with a status of a temporary failure.
            error.retryable = retryable && kind != ErrorKind::Quota;
        }
        error.retry_after_ms = retry_after_ms(data);
        Self {
            error,
            reference: data.reference.as_deref().map(str::to_owned),
        }
    }

    /// Returns the error, explained by its log entry, which the CLI copies to stderr.
    pub(crate) fn explained(self, stderr: &str) -> AgentError {
        let mut error = self.error;
        if !error.message.starts_with(SEE_THE_LOG) {
            return error;
        }
        let logged = self.reference.and_then(|reference| {
            let marker = format!("ref={reference}");
            let line = stderr.lines().find(|line| line.contains(&marker))?;
            let (_, value) = line.split_once(" error=")?;
            serde_json::Deserializer::from_str(value)
                .into_iter::<String>()
                .next()?
                .ok()
        });
        if let Some(logged) = logged {
            if let Some(kind) = kind_of_text(&logged) {
                error.kind = kind;
                error.retryable = kind.is_retryable();
            }
            error.message = logged;
        }
        error
    }
}

/// JSON inside the message, which contains the errors of some services.
struct Inner {
    kind: String,
    message: String,
}

impl Inner {
    fn of(message: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow, rename = "type")]
            kind: Option<Cow<'a, str>>,
            #[serde(borrow)]
            message: Option<Cow<'a, str>>,
        }
        #[derive(Deserialize)]
        struct Wrapped<'a> {
            #[serde(borrow)]
            error: Body<'a>,
        }
        if !message.starts_with('{') {
            return None;
        }
        let body = match parse::<Wrapped<'_>>(message) {
            Some(wrapped) => wrapped.error,
            None => parse::<Body<'_>>(message)?,
        };
        let kind = body.kind.unwrap_or_default().into_owned();
        let message = body.message.unwrap_or_default().into_owned();
        (!kind.is_empty() || !message.is_empty()).then_some(Self { kind, message })
    }
}

impl std::fmt::Display for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.message.as_str(), self.kind.as_str()) {
            (message, "") => f.write_str(message),
            ("", kind) => f.write_str(kind),
            (message, kind) => write!(f, "{message} ({kind})"),
        }
    }
}

/// Classifies an error by its evidence, strongest first: the error's name, texts more specific than a status, the
/// status, other texts. `messages` has the stronger one first.
fn kind(name: &str, data: &ErrorData<'_>, messages: [&str; 2]) -> ErrorKind {
    match name {
        "ContextOverflowError" => return ErrorKind::ContextWindow,
        "ProviderAuthError" => return ErrorKind::Auth,
        "MessageAbortedError" => return ErrorKind::Aborted,
        "ContentFilterError" | "MessageOutputLengthError" | "StructuredOutputError" => {
            return ErrorKind::Invalid;
        }
        "ProviderModelNotFoundError" => return ErrorKind::ModelNotFound,
        _ => {}
    }
    let body = data.response_body.as_deref().unwrap_or_default();
    let words = messages.into_iter().chain([body]).find_map(kind_of_text);
    match words {
        Some(kind @ (ErrorKind::Quota | ErrorKind::ContextWindow)) => return kind,
        // Some services have the status of any invalid request, or of a failed login, for an unknown model.
        Some(ErrorKind::ModelNotFound) if matches!(data.status_code, Some(400 | 401)) => {
            return ErrorKind::ModelNotFound;
        }
        Some(ErrorKind::Auth) if data.status_code == Some(400) => return ErrorKind::Auth,
        _ => {}
    }
    data.status_code
        .and_then(ErrorKind::of_http_status)
        .or(words)
        .unwrap_or(ErrorKind::Internal)
}

/// The CLI's own messages. All were seen in the output of the real program, or are among the messages in its binary.
const PATTERNS: &[(&str, ErrorKind)] = &[
    ("ModelNotFoundError", ErrorKind::ModelNotFound),
    ("ProviderAuthError", ErrorKind::Auth),
    // The type of an error of OpenCode Zen, with status 401.
    ("\"ModelError\"", ErrorKind::ModelNotFound),
    ("FreeUsageLimitError", ErrorKind::Quota),
    ("GoUsageLimitError", ErrorKind::Quota),
    ("Session not found", ErrorKind::SessionNotFound),
    // Of a login with ChatGPT or GitLab, with the status.
    ("Token refresh failed: 4", ErrorKind::Auth),
    // The type of an error in the middle of OpenAI's stream.
    ("server_error", ErrorKind::Overloaded),
    ("JSON parsing failed", ErrorKind::Protocol),
    // Kilo's words for an empty answer.
    ("the model returned no output", ErrorKind::Protocol),
    ("SSE read timed out", ErrorKind::Network),
    ("The operation timed out", ErrorKind::Network),
    ("socket connection was closed", ErrorKind::Network),
];

/// Classifies messages of the CLI or of a service.
pub(crate) fn kind_of_text(text: &str) -> Option<ErrorKind> {
    ErrorKind::by_patterns(text, PATTERNS).or_else(|| ErrorKind::of_message(text))
}

/// Returns the delay that the service requested, in milliseconds. The CLI converts the names of headers to lower
/// case.
fn retry_after_ms(data: &ErrorData<'_>) -> Option<u64> {
    let header = |name: &str| {
        let (_, value) = data
            .response_headers
            .iter()
            .find(|(header, _)| header.eq_ignore_ascii_case(name))?;
        value.trim().parse::<f64>().ok()
    };
    let ms = header("retry-after-ms").or_else(|| header("retry-after").map(|s| s * 1000.0))?;
    whole(ms)
}

/// First line of the help of `opencode run`, which is printed instead of a run.
const HELP: &str = "opencode run [message..]";

/// Classifies a failure that was explained only on stderr.
pub(crate) fn kind_of_stderr(stderr: &str) -> Option<ErrorKind> {
    const ON_STDERR: &[(&str, ErrorKind)] = &[
        (HELP, ErrorKind::Invalid),
        ("is not valid JSON(C)", ErrorKind::Invalid),
        ("Configuration is invalid", ErrorKind::Invalid),
        ("bad file reference", ErrorKind::Invalid),
        ("You must provide a message", ErrorKind::Invalid),
        ("--fork requires", ErrorKind::Invalid),
        ("File not found", ErrorKind::NotFound),
        ("Failed to change directory", ErrorKind::NotFound),
    ];
    ErrorKind::by_patterns(stderr, PATTERNS)
        .or_else(|| ErrorKind::by_patterns(stderr, ON_STDERR))
        .or_else(|| ErrorKind::of_message(stderr))
}

/// The help of `opencode run`, which the CLI prints instead of a run.
#[derive(Debug, Default)]
pub(crate) struct Help {
    printed: bool,
    /// True if it has the option of permission mode `Bypass`.
    has_auto: bool,
}

impl Help {
    /// Handles a line of text.
    pub(crate) fn line(&mut self, line: &str) {
        self.printed |= line.contains(HELP);
        self.has_auto |= line.split_whitespace().any(|word| word == "--auto");
    }

    /// Returns the error of a version without the option. Some versions print their help on stdout, others on stderr.
    pub(crate) fn too_old(&mut self, stderr: &str) -> Option<AgentError> {
        stderr.lines().for_each(|line| self.line(line));
        let oldest = INFO
            .oldest_version
            .filter(|_| self.printed && !self.has_auto)?;
        Some(AgentError::new(
            ErrorCode::CliError,
            ErrorKind::Invalid,
            format!(
                "this version of {} is too old: it does not know `--auto`, which permission mode \
                 bypass needs; {oldest} or newer is needed: {}",
                INFO.name, INFO.install
            ),
        ))
    }
}

/// Returns a failure of the CLI's database that passes when the run is repeated: several runs create the database at
/// once, or wait for each other.
pub(crate) fn of_database(stderr: &str) -> Option<AgentError> {
    let busy = stderr.contains("database is locked");
    let made_twice = stderr.contains("Failed query") && stderr.contains("CREATE TABLE");
    if !busy && !made_twice {
        return None;
    }
    let why = if made_twice {
        "another run was making it at the same time, as happens to the first runs of a user"
    } else {
        "another run holds it"
    };
    let error = AgentError::new(
        ErrorCode::CliStderr,
        ErrorKind::Internal,
        format!("OpenCode could not open its database, because {why}; run it again"),
    );
    Some(error.retryable(true))
}

#[cfg(test)]
mod tests {
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
}
