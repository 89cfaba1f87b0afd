//! Classification of failures.

use serde_json::Value;
use teamster_core::{AgentError, ErrorCode, ErrorKind};

use super::wire::{CallFailure, SessionError};

/// Message of older versions for a connection that breaks in the middle of an answer.
const BROKEN: &str = "Execution failed: terminated";

/// Failure of a request to a model (`model.call_failure`).
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    status: Option<u16>,
    /// True if there was no response, or it broke off.
    transport: bool,
    /// The service's own message.
    words: String,
    message: String,
    /// Number of earlier attempts of the request.
    pub(crate) attempt: Option<u32>,
}

impl Failure {
    pub(crate) fn new(line: &CallFailure<'_>) -> Self {
        let (code, kind) = (line.error_code.text(), line.error_type.text());
        Self {
            status: line.status_code,
            transport: line.failure_kind.get() == Some("transport"),
            words: format!("{code} {kind} {}", line.error_message.text()),
            message: message_in(line.error_message.text()),
            attempt: line.retry_attempt,
        }
    }

    fn kind(&self) -> Option<ErrorKind> {
        kind_of_text(&self.words)
            .or_else(|| self.status.and_then(ErrorKind::of_http_status))
            .or(self.transport.then_some(ErrorKind::Network))
    }
}

/// Returns the error of a request that the CLI repeats (`assistant.turn_retry`).
pub(crate) fn of_retry(failure: Option<&Failure>, reason: Option<&str>) -> AgentError {
    let kind = match reason {
        Some("forced_compaction") => Some(ErrorKind::ContextWindow),
        _ => failure.and_then(Failure::kind),
    };
    let kind = kind.or(match reason {
        Some("rate_limit") => Some(ErrorKind::RateLimit),
        Some("transient_auth_error") => Some(ErrorKind::Auth),
        Some("streaming_error") => Some(ErrorKind::Network),
        Some("api_error") => Some(ErrorKind::Overloaded),
        // The reason is missing only if a response came without its end.
        None if failure.is_none() => Some(ErrorKind::Protocol),
        _ => None,
    });
    let is_first = failure.is_none_or(|f| f.attempt.unwrap_or(0) == 0);
    let may_heal = reason == Some("transient_auth_error") && is_first;
    let message = match failure.map(|f| (f.status, f.message.as_str())) {
        Some((Some(status), "")) => format!("the model service answered with {status}"),
        Some((Some(status), message)) if !message.starts_with(&status.to_string()) => {
            format!("{status} {message}")
        }
        Some((_, message)) if !message.is_empty() => message.to_owned(),
        _ => reason.unwrap_or("the request failed").to_owned(),
    };
    AgentError::new(
        ErrorCode::CliError,
        kind.unwrap_or(ErrorKind::Internal),
        message,
    )
    // The CLI may replace its token before it retries once. It gives the same reason for a wrong key.
    .retryable(may_heal || kind.is_some_and(ErrorKind::is_retryable))
}

/// Returns the error that ended the run (`session.error`). `failure` is that of the last request.
pub(crate) fn of_session(line: &SessionError<'_>, failure: Option<&Failure>) -> AgentError {
    let text = line.message.text();
    let kind = kind_of_session(line, failure).unwrap_or(ErrorKind::Internal);
    let message = if text.is_empty() {
        let kind = line.error_type.get().unwrap_or("unknown");
        format!("the CLI reported an error of type {kind} without a message")
    } else {
        text.to_owned()
    };
    AgentError::new(ErrorCode::CliError, kind, message)
}

fn kind_of_session(line: &SessionError<'_>, failure: Option<&Failure>) -> Option<ErrorKind> {
    let text = line.message.text();
    match line.error_type.text() {
        "authentication" | "authorization" => return Some(ErrorKind::Auth),
        "policy" => return Some(ErrorKind::Permission),
        "quota" => return Some(ErrorKind::Quota),
        "context_limit" => return Some(ErrorKind::ContextWindow),
        "rate_limit" => {
            let spent = [text, failure.map_or("", |f| f.words.as_str())]
                .into_iter()
                .any(|words| ErrorKind::of_message(words) == Some(ErrorKind::Quota));
            return Some(if spent {
                ErrorKind::Quota
            } else {
                ErrorKind::RateLimit
            });
        }
        _ => {}
    }
    // All others are of type `query`. The text decides if a status has several meanings.
    kind_of_text(line.error_code.text())
        .or_else(|| kind_of_text(text))
        .or_else(|| line.status_code.and_then(ErrorKind::of_http_status))
        .or_else(|| failure.and_then(Failure::kind))
        .or_else(|| status_in(text).and_then(ErrorKind::of_http_status))
        .or_else(|| (text == BROKEN).then_some(ErrorKind::Network))
}

/// Returns the status in the message of a request that was repeated in vain: then no field has it.
fn status_in(text: &str) -> Option<u16> {
    let (_, answer) = text.rsplit_once("CAPIError: ")?;
    answer.split_whitespace().next()?.parse().ok()
}

/// Classifies the CLI's own messages, then those of services that it passes on.
pub(crate) fn kind_of_text(text: &str) -> Option<ErrorKind> {
    const PATTERNS: &[(&str, ErrorKind)] = &[
        ("Authentication failed with provider", ErrorKind::Auth),
        ("not found on provider", ErrorKind::ModelNotFound),
        ("No response was returned", ErrorKind::Protocol),
        ("Failed to finalize", ErrorKind::Protocol),
        ("Failed to parse", ErrorKind::Protocol),
        (
            "stream ended without a completed response",
            ErrorKind::Protocol,
        ),
        (
            "Stream completed without a response.completed event",
            ErrorKind::Protocol,
        ),
        ("Failed native model HTTP request", ErrorKind::Network),
        ("server had an error", ErrorKind::Overloaded),
    ];
    ErrorKind::by_patterns(text, PATTERNS).or_else(|| ErrorKind::of_message(text))
}

/// Classifies a failure that was explained only on stderr.
pub(crate) fn kind_of_stderr(stderr: &str) -> Option<ErrorKind> {
    const PATTERNS: &[(&str, ErrorKind)] = &[
        ("No authentication information found", ErrorKind::Auth),
        (
            "No session, task, or name matched",
            ErrorKind::SessionNotFound,
        ),
        ("No session or task matched", ErrorKind::SessionNotFound),
        ("MCP config", ErrorKind::Mcp),
        // The JSON of an MCP configuration: no other flag takes JSON.
        ("Invalid JSON:", ErrorKind::Mcp),
        ("Offline mode requires", ErrorKind::Invalid),
        ("require an explicit model", ErrorKind::Invalid),
        ("Invalid command format", ErrorKind::Invalid),
        ("No prompt provided", ErrorKind::Invalid),
        ("error: a value is required", ErrorKind::Invalid),
        ("error: invalid value", ErrorKind::Invalid),
        ("error: unexpected argument", ErrorKind::Invalid),
        ("error: the argument", ErrorKind::Invalid),
        ("-tool value", ErrorKind::Invalid),
        ("--attachment file", ErrorKind::Invalid),
        (
            "Cannot invoke native session after disposal",
            ErrorKind::Aborted,
        ),
        // The launcher also prints the next message if the program was killed.
        ("was terminated by signal", ErrorKind::Internal),
        ("no platform package found", ErrorKind::NotFound),
    ];
    ErrorKind::by_patterns(stderr, PATTERNS)
}

/// Returns the message in an `errorMessage`, which is JSON in a string: an object of the service, or a text.
fn message_in(text: &str) -> String {
    let message = match serde_json::from_str::<Value>(text) {
        Ok(Value::String(message)) => Some(message),
        Ok(Value::Object(error)) => error
            .get("message")
            .or_else(|| error.get("error")?.get("message"))
            .and_then(Value::as_str)
            .map(str::to_owned),
        _ => None,
    };
    message.unwrap_or_else(|| text.to_owned())
}
