//! Classification of Pi's own error messages, and of those that it passes on.

use serde::Deserialize;
use teamster_core::provider::json_line::parse;
use teamster_core::{AgentError, ErrorCode, ErrorKind};

/// Messages of the CLI, and of its HTTP clients.
const PATTERNS: &[(&str, ErrorKind)] = &[
    ("No session found matching", ErrorKind::SessionNotFound),
    (
        "Session found in different project",
        ErrorKind::SessionNotFound,
    ),
    (
        "Stored session working directory",
        ErrorKind::SessionNotFound,
    ),
    ("No API key found", ErrorKind::Auth),
    ("No models available", ErrorKind::Auth),
    ("No model selected", ErrorKind::Auth),
    ("Authentication failed for", ErrorKind::Auth),
    ("refused to complete", ErrorKind::Invalid),
    ("File not found", ErrorKind::Invalid),
    ("Unknown option", ErrorKind::Invalid),
    ("Failed to load extension", ErrorKind::Invalid),
    // A tool was running when the turn was aborted.
    ("operation was aborted", ErrorKind::Aborted),
    ("terminated", ErrorKind::Network),
    ("Connection error", ErrorKind::Network),
    ("Request timed out", ErrorKind::Network),
    ("premature close", ErrorKind::Network),
];

/// Returns the error of a failed answer by its message, which is `429: {"message":…}` if a service responded.
pub(super) fn of_answer(message: Option<&str>) -> AgentError {
    let message = message.unwrap_or_default().trim();
    if message.is_empty() {
        return AgentError::new(
            ErrorCode::CliError,
            ErrorKind::Internal,
            "the answer failed, and Pi did not say why",
        );
    }
    let kind = kind_of(message).unwrap_or(ErrorKind::Internal);
    AgentError::new(ErrorCode::CliError, kind, readable(message))
}

/// Returns a message without the JSON around a service's own message.
fn readable(message: &str) -> String {
    /// In Anthropic's, the message is in `error`.
    #[derive(Deserialize)]
    struct Body {
        message: Option<String>,
        error: Option<Box<Body>>,
    }
    let body = message.find('{').and_then(|at| {
        let body: Body = parse(&message[at..])?;
        let words = body.message.or_else(|| body.error?.message)?;
        Some(format!("{}{words}", &message[..at]))
    });
    body.unwrap_or_else(|| message.to_owned())
}

/// Classifies a message: by its text before its status, which may have several meanings.
pub(crate) fn kind_of(message: &str) -> Option<ErrorKind> {
    ErrorKind::by_patterns(message, PATTERNS)
        .or_else(|| ErrorKind::of_message(message))
        .or_else(|| ErrorKind::of_http_status(status_of(message)?))
}

/// Returns the HTTP status at the beginning of a message: `401: …`, `529 {…}`.
fn status_of(message: &str) -> Option<u16> {
    let (digits, rest) = message.split_at_checked(3)?;
    let is_whole = !rest.starts_with(|c: char| c.is_ascii_alphanumeric());
    digits.parse().ok().filter(|_| is_whole)
}
