//! Classification of Pi's own error messages, and of those that it passes on.

use serde::Deserialize;
use teamster_core::provider::json_line::{or_default, parse};
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
    ("Requested entity was not found", ErrorKind::ModelNotFound),
    // Node's, about a request.
    ("aborted due to timeout", ErrorKind::Network),
    // A tool was running when the turn was aborted.
    ("operation was aborted", ErrorKind::Aborted),
    ("terminated", ErrorKind::Network),
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
    let (words, resets_at) = readable(message);
    let is_limit = matches!(kind, ErrorKind::Quota | ErrorKind::RateLimit);
    let resets_at = resets_at.filter(|_| is_limit);
    AgentError::new(ErrorCode::CliError, kind, words)
        .resets_at_ms(resets_at.and_then(|seconds| seconds.checked_mul(1000)))
}

/// Returns a message without the JSON around a service's own message, and the time in that JSON at which a limit resets,
/// in seconds since the Unix epoch.
fn readable(message: &str) -> (String, Option<u64>) {
    /// In Anthropic's and OpenAI's, the message is in `error`.
    #[derive(Deserialize)]
    struct Body {
        message: Option<String>,
        error: Option<Box<Body>>,
        #[serde(default, deserialize_with = "or_default")]
        resets_at: Option<u64>,
    }
    let body = message.find('{').and_then(|at| {
        let body: Body = parse(&message[at..])?;
        let inner = || body.error.as_deref();
        let resets_at = body.resets_at.or_else(|| inner()?.resets_at);
        let words = body
            .message
            .as_ref()
            .or_else(|| inner()?.message.as_ref())?;
        Some((format!("{}{words}", &message[..at]), resets_at))
    });
    body.unwrap_or_else(|| (message.to_owned(), None))
}

/// Classifies a message: by its text before its status, which may have several meanings.
pub(crate) fn kind_of(message: &str) -> Option<ErrorKind> {
    ErrorKind::by_patterns(message, PATTERNS)
        .or_else(|| ErrorKind::of_message(message))
        .or_else(|| match status_of(message)? {
            // Without the name of a model, it is the service's address that was not found.
            404 if !message.to_lowercase().contains("model") => Some(ErrorKind::Invalid),
            status => ErrorKind::of_http_status(status),
        })
}

/// Returns the HTTP status at the beginning of a message: `401: …`, `529 {…}`, `Cloud Code Assist API error (429): …`.
fn status_of(message: &str) -> Option<u16> {
    let message = message
        .split_once(" API error (")
        .map_or(message, |(_, status)| status);
    let (digits, rest) = message.split_at_checked(3)?;
    let is_whole = !rest.starts_with(|c: char| c.is_ascii_alphanumeric());
    digits.parse().ok().filter(|_| is_whole)
}
