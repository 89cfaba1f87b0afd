//! Classification of Gemini CLI's errors.

use serde::Deserialize;
use teamster_core::provider::json_line::{or_default, parse};
use teamster_core::{AgentError, ErrorCode, ErrorKind};

/// A failure in the CLI's event stream.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The error; its kind is `Internal` until [`Self::kind`] is known.
    error: AgentError,
    kind: Option<ErrorKind>,
}

impl Failure {
    /// Of `error` in a result: the CLI's type and its message.
    pub(crate) fn new(kind: Option<&str>, message: &str) -> Self {
        let api = ApiError::find(message);
        let retry_after_ms = api.retry_after_ms();
        let known = kind
            .and_then(kind_of_type)
            .or_else(|| api.kind(retry_after_ms));
        let mut error = AgentError::new(
            ErrorCode::CliError,
            ErrorKind::Internal,
            api.message_for_person(),
        );
        error.retry_after_ms = retry_after_ms;
        Self { error, kind: known }
    }

    /// Whether the message has its meaning. If not, the exit code may.
    pub(crate) fn is_understood(&self) -> bool {
        self.kind.is_some()
    }

    /// The error, with the exit code as evidence if the process has ended.
    pub(crate) fn into_error(self, exit_code: Option<i32>) -> AgentError {
        let kind = self.kind.or_else(|| exit_code.and_then(kind_of_exit_code));
        let kind = kind.unwrap_or(ErrorKind::Internal);
        self.error.kind(kind).retryable(kind.is_retryable())
    }
}

/// `[API Error: …]`: what the service answered, as JSON or as its message alone.
struct ApiError<'a> {
    /// The message without its wrapping.
    text: &'a str,
    /// The CLI's advice after it.
    advice: &'a str,
    answer: Option<Answer>,
}

/// The service's answer.
#[derive(Deserialize)]
struct Answer {
    error: AnswerError,
}

impl Answer {
    /// The service's answer in what the CLI passed on. It puts words before one that came in the
    /// middle of a stream, and puts one that it could not read into the message of another.
    fn find(text: &str) -> Option<Self> {
        let json = text
            .strip_prefix("got status: ")
            .and_then(|rest| Some(rest.split_once(". ")?.1))
            .unwrap_or(text);
        let mut found: Self = parse(json)?;
        // Each is shorter than the one that it is in.
        while let Some(inner) = found.error.message.as_deref().and_then(parse::<Self>) {
            let outer = std::mem::replace(&mut found, inner).error;
            let inner = &mut found.error;
            inner.code = inner.code.or(outer.code);
            inner.status = inner.status.take().or(outer.status);
        }
        Some(found)
    }
}

#[derive(Deserialize)]
struct AnswerError {
    #[serde(default, deserialize_with = "or_default")]
    code: Option<u16>,
    #[serde(default, deserialize_with = "or_default")]
    message: Option<String>,
    /// Google's name of the code. Where a server that is none of Google's answers, its own words.
    #[serde(default, deserialize_with = "or_default")]
    status: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    details: Vec<Detail>,
}

impl AnswerError {
    fn kind(&self) -> Option<ErrorKind> {
        let kind = ErrorKind::of_http_status(self.code?);
        match &self.message {
            // There is no such address at all.
            Some(message)
                if kind == Some(ErrorKind::ModelNotFound)
                    && self.status.as_deref() != Some("NOT_FOUND")
                    && !message.to_lowercase().contains("model") =>
            {
                Some(ErrorKind::Invalid)
            }
            _ => kind,
        }
    }
}

#[derive(Deserialize)]
struct Detail {
    /// Of `RetryInfo`, such as `2s`.
    #[serde(rename = "retryDelay", default, deserialize_with = "or_default")]
    retry_delay: Option<String>,
}

impl<'a> ApiError<'a> {
    fn find(message: &'a str) -> Self {
        let wrapped = message
            .strip_prefix("[API Error: ")
            .and_then(|rest| rest.rsplit_once(']'));
        let (text, advice) = wrapped.unwrap_or((message, ""));
        Self {
            text,
            advice,
            answer: Answer::find(text),
        }
    }

    /// For a person: the service's message, and its status where the CLI only passed on the JSON.
    fn message_for_person(&self) -> String {
        let answer = self.answer.as_ref().map(|answer| &answer.error);
        let message = match answer {
            Some(AnswerError {
                message: Some(message),
                code: Some(code),
                ..
            }) => format!("API error {code}: {message}"),
            _ if self.is_broken() => format!(
                "{}: the connection to the service broke in the middle of the answer",
                self.text
            ),
            _ => self.text.to_owned(),
        };
        format!("{message}{}", self.advice)
    }

    fn kind(&self, retry_after_ms: Option<u64>) -> Option<ErrorKind> {
        if self.is_broken() {
            return Some(ErrorKind::Network);
        }
        if self.answer.is_none() && is_about_broken_json(self.text) {
            return Some(ErrorKind::Protocol);
        }
        let kind = kind_of_text(self.text).or_else(|| ErrorKind::of_message(self.text));
        let kind = kind.or_else(|| self.answer.as_ref()?.error.kind());
        match kind {
            // The service has the same message for both; a time to wait shows a rate limit.
            Some(ErrorKind::Quota) if retry_after_ms.is_some() && !self.is_daily() => {
                Some(ErrorKind::RateLimit)
            }
            kind => kind,
        }
    }

    /// Node's only message for a connection that breaks in the middle of an answer.
    fn is_broken(&self) -> bool {
        matches!(self.text, "terminated" | "aborted")
    }

    fn is_daily(&self) -> bool {
        self.text.contains("PerDay") || self.text.contains("daily quota")
    }

    /// How long the service asks to wait.
    fn retry_after_ms(&self) -> Option<u64> {
        let details = self.answer.iter().flat_map(|answer| &answer.error.details);
        let delay = details.into_iter().find_map(|d| d.retry_delay.as_deref());
        // The CLI's words and the service's.
        let prefixes = ["Suggested retry after ", "Please retry in "];
        let suggested = || {
            prefixes
                .iter()
                .find_map(|words| Some(self.text.split_once(words)?.1))
        };
        milliseconds(delay.or_else(suggested)?)
    }
}

/// Milliseconds of the duration that a text begins with, such as `2s`, `0.5s` or `250ms`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked"
)]
fn milliseconds(text: &str) -> Option<u64> {
    /// Longer than any limit lasts: ten years.
    const LONGEST: f64 = 3.2e11;
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(end);
    let factor = match unit {
        unit if unit.starts_with("ms") => 1.0,
        unit if unit.starts_with('s') => 1000.0,
        _ => return None,
    };
    let time = number.parse::<f64>().ok()? * factor;
    (0.0..LONGEST).contains(&time).then(|| time.round() as u64)
}

/// The CLI's own types of errors. All errors of the service have the same, `unknown`.
fn kind_of_type(kind: &str) -> Option<ErrorKind> {
    Some(match kind {
        "FatalTurnLimitedError" => ErrorKind::MaxTurns,
        "FatalAuthenticationError" => ErrorKind::Auth,
        "FatalInputError" | "FatalConfigError" => ErrorKind::Invalid,
        "FatalCancellationError" => ErrorKind::Aborted,
        _ => return None,
    })
}

/// Classifies messages of the CLI itself, and those of the service that only it passes on.
fn kind_of_text(text: &str) -> Option<ErrorKind> {
    const PATTERNS: &[(&str, ErrorKind)] = &[
        ("daily quota", ErrorKind::Quota),
        ("exhausted your capacity", ErrorKind::Quota),
        ("Resource has been exhausted", ErrorKind::RateLimit),
        ("is not found for API version", ErrorKind::ModelNotFound),
        ("input token count", ErrorKind::ContextWindow),
        ("Loop detected", ErrorKind::Invalid),
        ("Maximum session turns exceeded", ErrorKind::MaxTurns),
        ("Agent execution blocked", ErrorKind::Permission),
        ("exceeded the token limit", ErrorKind::Invalid),
        ("response was blocked due to", ErrorKind::Invalid),
        (
            "returned an empty response with no text",
            ErrorKind::Protocol,
        ),
        ("but no final response text", ErrorKind::Protocol),
        ("Model stream ended", ErrorKind::Protocol),
        ("Invalid stream", ErrorKind::Protocol),
        ("Incomplete JSON segment", ErrorKind::Protocol),
        ("Requested entity was not found", ErrorKind::ModelNotFound),
        ("Model not found", ErrorKind::ModelNotFound),
        ("page not found", ErrorKind::Invalid),
        ("404 Not Found", ErrorKind::Invalid),
        // Node's, of a connection.
        ("other side closed", ErrorKind::Network),
        ("Premature close", ErrorKind::Network),
        ("Headers Timeout Error", ErrorKind::Network),
        ("Body Timeout Error", ErrorKind::Network),
        ("Connect Timeout Error", ErrorKind::Network),
        ("operation was aborted", ErrorKind::Network),
    ];
    ErrorKind::of_words(text, PATTERNS)
}

/// Classifies a message of any origin.
pub(crate) fn kind_of_message(text: &str) -> Option<ErrorKind> {
    let api = ApiError::find(text);
    api.kind(api.retry_after_ms())
}

/// Whether this is Node's message for text that is no JSON. It quotes that text, which may hold any
/// other words.
fn is_about_broken_json(text: &str) -> bool {
    [
        "\" is not valid JSON",
        "... is not valid JSON",
        "Unexpected end of JSON input",
        " JSON at position ",
    ]
    .iter()
    .any(|words| text.contains(words))
}

/// Whether the CLI stops after this message, though it then calls the run a success.
pub(crate) fn ends_the_run(message: &str) -> bool {
    [
        "Loop detected",
        "Maximum session turns exceeded",
        "Agent execution blocked",
    ]
    .iter()
    .any(|words| message.starts_with(words))
}

/// Whether a hook sent the answer back to the model, which answers again.
pub(crate) fn blocks_the_answer(message: &str) -> bool {
    message.starts_with("Agent execution blocked")
}

/// The CLI's own exit codes, and the status of the service's answer, of which the system keeps the
/// lower eight bits.
pub(crate) fn kind_of_exit_code(code: i32) -> Option<ErrorKind> {
    /// Statuses that the CLI was seen to exit with; not every code is one.
    const STATUSES: &[u16] = &[400, 401, 402, 403, 413, 422, 429, 500, 502, 503, 504, 529];
    Some(match code {
        41 => ErrorKind::Auth,
        42 | 52 => ErrorKind::Invalid,
        44 => ErrorKind::NotFound,
        53 => ErrorKind::MaxTurns,
        55 => ErrorKind::Permission,
        130 => ErrorKind::Aborted,
        _ => {
            let status = STATUSES
                .iter()
                .find(|status| i32::from(**status & 0xff) == code)?;
            return ErrorKind::of_http_status(*status);
        }
    })
}
