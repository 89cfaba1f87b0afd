//! Classification of OpenCode's errors.

use std::borrow::Cow;

use serde::Deserialize;
use teamster_core::provider::json_line::{parse, whole};
use teamster_core::{AgentError, ErrorCode, ErrorKind};

use super::wire::{ErrorBody, ErrorData};
use crate::INFO;

/// The CLI's placeholder for an error that only its log has.
const SEE_THE_LOG: &str = "Unexpected server error";

/// The CLI's words before a status that is in no field.
const FAILED_WITH: &str = "Provider request failed with HTTP ";

/// The type of an error in the middle of OpenAI's stream, and of any fault in the answers of local servers, whose words
/// are more specific.
const SERVER_ERROR: &str = "server_error";

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
    let texts = || messages.into_iter().chain([body]);
    let status = data.status_code.or_else(|| status_of_message(messages[0]));
    let words = (texts().find_map(kind_of_words)).or_else(|| texts().find_map(kind_of_text));
    match words {
        Some(kind @ (ErrorKind::Quota | ErrorKind::ContextWindow)) => return kind,
        // Some services have the status of any invalid request, or of a failed login, for an unknown model.
        Some(ErrorKind::ModelNotFound) if matches!(status, Some(400 | 401)) => {
            return ErrorKind::ModelNotFound;
        }
        Some(ErrorKind::Auth) if status == Some(400) => return ErrorKind::Auth,
        _ => {}
    }
    status
        .and_then(ErrorKind::of_http_status)
        .or(words)
        .unwrap_or(ErrorKind::Internal)
}

/// Returns the status that the CLI's message has, before the service's answer.
fn status_of_message(message: &str) -> Option<u16> {
    let (_, status) = message.split_once(FAILED_WITH)?;
    let end = status.find(|c: char| !c.is_ascii_digit());
    status[..end.unwrap_or(status.len())].parse().ok()
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
    ("JSON parsing failed", ErrorKind::Protocol),
    // Kilo's words for an empty answer.
    ("the model returned no output", ErrorKind::Protocol),
    ("SSE read timed out", ErrorKind::Network),
    ("The operation timed out", ErrorKind::Network),
    ("socket connection was closed", ErrorKind::Network),
];

/// Classifies messages of the CLI or of a service.
pub(crate) fn kind_of_text(text: &str) -> Option<ErrorKind> {
    let of_the_server = text.contains(SERVER_ERROR).then_some(ErrorKind::Overloaded);
    kind_of_words(text).or(of_the_server)
}

fn kind_of_words(text: &str) -> Option<ErrorKind> {
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
mod tests;
