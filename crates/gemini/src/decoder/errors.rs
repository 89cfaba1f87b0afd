//! Classification of Gemini CLI's errors.

use serde::Deserialize;
use teamster_core::provider::json_line::{or_default, parse};
use teamster_core::{AgentError, ErrorCode, ErrorKind};

/// A failure in the CLI's event stream.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The error. Its kind is `Internal` until [`Self::kind`] is known.
    error: AgentError,
    kind: Option<ErrorKind>,
}

impl Failure {
    /// Creates a failure from the `error` of a result: the CLI's type and message.
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

    /// Returns whether the message was classified. If not, the exit code may help.
    pub(crate) fn is_understood(&self) -> bool {
        self.kind.is_some()
    }

    /// Returns the error, with the exit code as evidence if the process has exited.
    pub(crate) fn into_error(self, exit_code: Option<i32>) -> AgentError {
        let kind = self.kind.or_else(|| exit_code.and_then(kind_of_exit_code));
        let kind = kind.unwrap_or(ErrorKind::Internal);
        self.error.kind(kind).retryable(kind.is_retryable())
    }
}

/// Returns the message in the text of an error for a person.
pub(crate) fn message_in(text: &str) -> String {
    ApiError::find(text).message_for_person()
}

/// `[API Error: …]`: the service's response, as JSON or only as its message.
struct ApiError<'a> {
    /// The message without its wrapping.
    text: &'a str,
    /// The CLI's advice after the message.
    advice: &'a str,
    answer: Option<Answer>,
}

/// The service's response.
#[derive(Deserialize)]
struct Answer {
    error: AnswerError,
}

impl Answer {
    /// Finds the service's response in the CLI's text. The CLI adds a prefix to one from the middle of a stream, and
    /// embeds one that it could not parse in the message of another.
    fn find(text: &str) -> Option<Self> {
        let json = text
            .strip_prefix("got status: ")
            .and_then(|rest| Some(rest.split_once(". ")?.1))
            .unwrap_or(text);
        let mut found = Self::of(json)?;
        // Each is shorter than the one that contains it.
        while let Some(inner) = found.error.message.as_deref().and_then(Self::of) {
            let outer = std::mem::replace(&mut found, inner).error;
            let inner = &mut found.error;
            inner.code = inner.code.or(outer.code);
            inner.status = inner.status.take().or(outer.status);
        }
        Some(found)
    }

    /// Parses a response, for which the service may send a list with one item. A list of fields is none.
    fn of(json: &str) -> Option<Self> {
        let of_list = || parse::<[Self; 1]>(json).map(|[only]| only);
        let is_list = json.trim_start().starts_with('[');
        if is_list { of_list() } else { parse(json) }
    }
}

#[derive(Deserialize)]
struct AnswerError {
    #[serde(default, deserialize_with = "or_default")]
    code: Option<u16>,
    #[serde(default, deserialize_with = "or_default")]
    message: Option<String>,
    /// Google's name of the code. Other servers have their own.
    #[serde(default, deserialize_with = "or_default")]
    status: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    details: Vec<Detail>,
}

impl AnswerError {
    fn kind(&self) -> Option<ErrorKind> {
        let kind = ErrorKind::of_http_status(self.code?);
        match &self.message {
            // The address does not exist.
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
    /// Delay in `RetryInfo`, such as `2s`.
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

    /// Returns a message for a person: the service's message, with its status if the CLI passed on only the JSON.
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
            // The service has the same message for both. A retry delay indicates a rate limit.
            Some(ErrorKind::Quota) if retry_after_ms.is_some() && !self.is_daily() => {
                Some(ErrorKind::RateLimit)
            }
            kind => kind,
        }
    }

    /// Returns whether this is Node's message for a connection that breaks in the middle of a response.
    fn is_broken(&self) -> bool {
        matches!(self.text, "terminated" | "aborted")
    }

    fn is_daily(&self) -> bool {
        self.text.contains("PerDay") || self.text.contains("daily quota")
    }

    /// Returns the delay that the service requests, in milliseconds.
    fn retry_after_ms(&self) -> Option<u64> {
        let details = self.answer.iter().flat_map(|answer| &answer.error.details);
        let delay = details.into_iter().find_map(|d| d.retry_delay.as_deref());
        // Of the CLI and of the service.
        let prefixes = ["Suggested retry after ", "Please retry in "];
        let suggested = || {
            prefixes
                .iter()
                .find_map(|words| Some(self.text.split_once(words)?.1))
        };
        milliseconds(delay.or_else(suggested)?)
    }
}

/// Returns the milliseconds of the duration at the beginning of a text, such as `2s`, `0.5s` or `250ms`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked"
)]
fn milliseconds(text: &str) -> Option<u64> {
    /// Upper limit in milliseconds: ten years, longer than any rate limit.
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

/// Classifies the CLI's own types of errors. All errors of the service have the type `unknown`.
fn kind_of_type(kind: &str) -> Option<ErrorKind> {
    Some(match kind {
        "FatalTurnLimitedError" => ErrorKind::MaxTurns,
        "FatalAuthenticationError" => ErrorKind::Auth,
        "FatalInputError" | "FatalConfigError" => ErrorKind::Invalid,
        "FatalCancellationError" => ErrorKind::Aborted,
        _ => return None,
    })
}

/// Classifies messages of the CLI itself, and messages of the service that only this CLI passes on.
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
        // Node's, about a connection.
        ("operation was aborted", ErrorKind::Network),
    ];
    ErrorKind::by_patterns(text, PATTERNS)
}

/// Classifies a message of any origin.
pub(crate) fn kind_of_message(text: &str) -> Option<ErrorKind> {
    let api = ApiError::find(text);
    api.kind(api.retry_after_ms())
}

/// Returns whether this is Node's message for text that is not JSON. It quotes that text, which may contain any
/// words.
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

/// Returns whether the CLI stops after this message, although it then calls the run a success.
pub(crate) fn ends_the_run(message: &str) -> bool {
    [
        "Loop detected",
        "Maximum session turns exceeded",
        "Agent execution blocked",
    ]
    .iter()
    .any(|words| message.starts_with(words))
}

/// Returns whether a hook sent the answer back to the model, which answers again.
pub(crate) fn blocks_the_answer(message: &str) -> bool {
    message.starts_with("Agent execution blocked")
}

/// Classifies an exit code: the CLI's own, or the lower eight bits of the status of the service's response.
pub(crate) fn kind_of_exit_code(code: i32) -> Option<ErrorKind> {
    /// Statuses with which the CLI was seen to exit. Not every code is a status.
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
