//! What an error of Gemini CLI means.

use serde::Deserialize;
use teamster_core::json_line::{or_default, parse};
use teamster_core::{AgentError, ErrorCode, ErrorKind, without_colors};

/// What the CLI says of a failure in its event stream.
#[derive(Debug)]
pub(super) struct Failure {
    /// The error; its kind is `Internal` until [`Self::kind`] is known.
    error: AgentError,
    kind: Option<ErrorKind>,
}

impl Failure {
    /// Of `error` in a result: the CLI's type and its message.
    pub(super) fn new(kind: Option<&str>, message: &str) -> Self {
        let api = ApiError::find(message);
        let retry_after_ms = api.retry_after_ms();
        let known = kind
            .and_then(kind_of_type)
            .or_else(|| api.kind(retry_after_ms));
        let mut error = AgentError::new(ErrorCode::CliError, ErrorKind::Internal, api.said());
        error.retry_after_ms = retry_after_ms;
        Self { error, kind: known }
    }

    /// Whether the message tells what it means. If not, the exit code may.
    pub(super) fn is_understood(&self) -> bool {
        self.kind.is_some()
    }

    /// The error, with the exit code as evidence if the process has ended.
    pub(super) fn into_error(self, exit_code: Option<i32>) -> AgentError {
        let kind = self.kind.or_else(|| exit_code.and_then(kind_of_exit_code));
        let kind = kind.unwrap_or(ErrorKind::Internal);
        AgentError {
            retryable: kind.is_retryable(),
            kind,
            ..self.error
        }
    }
}

/// `[API Error: …]`: what the service answered, as JSON or as its message alone.
struct ApiError<'a> {
    /// The message without its wrapping.
    text: &'a str,
    /// What the CLI says after it.
    advice: &'a str,
    answer: Option<Answer>,
}

/// The service's answer.
#[derive(Deserialize)]
struct Answer {
    error: AnswerError,
}

#[derive(Deserialize)]
struct AnswerError {
    #[serde(default, deserialize_with = "or_default")]
    code: Option<u16>,
    #[serde(default, deserialize_with = "or_default")]
    message: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    details: Vec<Detail>,
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
            answer: parse(text),
        }
    }

    /// For a person: the service's message, and its status where the CLI only passed on the JSON.
    fn said(&self) -> String {
        let answer = self.answer.as_ref().map(|answer| &answer.error);
        let said = match answer {
            Some(AnswerError {
                message: Some(message),
                code: Some(code),
                ..
            }) => format!("API error {code}: {message}"),
            _ if self.is_broken() => {
                "terminated: the connection to the service broke in the middle of the answer".into()
            }
            _ => self.text.to_owned(),
        };
        format!("{said}{}", self.advice)
    }

    fn kind(&self, retry_after_ms: Option<u64>) -> Option<ErrorKind> {
        if self.is_broken() {
            return Some(ErrorKind::Network);
        }
        let kind = kind_of_text(self.text).or_else(|| ErrorKind::of_message(self.text));
        let kind = kind.or_else(|| ErrorKind::of_http_status(self.answer.as_ref()?.error.code?));
        match kind {
            // The service says the same of both; a time to wait tells that it is no more than that.
            Some(ErrorKind::Quota) if retry_after_ms.is_some() && !self.is_daily() => {
                Some(ErrorKind::RateLimit)
            }
            kind => kind,
        }
    }

    /// All that Node says of a connection that breaks in the middle of an answer.
    fn is_broken(&self) -> bool {
        self.text == "terminated"
    }

    fn is_daily(&self) -> bool {
        self.text.contains("PerDay") || self.text.contains("daily quota")
    }

    /// How long the service asks to wait.
    fn retry_after_ms(&self) -> Option<u64> {
        let details = self.answer.iter().flat_map(|answer| &answer.error.details);
        let delay = details.into_iter().find_map(|d| d.retry_delay.as_deref());
        // The CLI's words and the service's.
        let said = ["Suggested retry after ", "Please retry in "];
        let suggested = || {
            said.iter()
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

/// What a message of the CLI's own means, and those of the service that only it gives.
fn kind_of_text(text: &str) -> Option<ErrorKind> {
    const MEANINGS: &[(&str, ErrorKind)] = &[
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
        (" in JSON at position", ErrorKind::Protocol),
        ("Incomplete JSON segment", ErrorKind::Protocol),
    ];
    ErrorKind::of_words(text, MEANINGS)
}

/// Whether the CLI stops after it has said this, though it then calls the run a success.
pub(super) fn ends_the_run(message: &str) -> bool {
    [
        "Loop detected",
        "Maximum session turns exceeded",
        "Agent execution blocked",
    ]
    .iter()
    .any(|words| message.starts_with(words))
}

/// The CLI's own exit codes, and the status of the service's answer, of which the system keeps the
/// lower eight bits.
pub(super) fn kind_of_exit_code(code: i32) -> Option<ErrorKind> {
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

/// Whether the CLI went on without the rules that it was given.
pub(super) fn policy_was_ignored(stderr: &str) -> bool {
    stderr.contains("Ignoring --admin-policy") || stderr.contains("Policy file error in teamster-")
}

/// What it means that the CLI did not begin, which it only explains on stderr.
pub(super) fn kind_of_stderr(stderr: &str) -> Option<ErrorKind> {
    const MEANINGS: &[(&str, ErrorKind)] = &[
        (
            "No previous sessions found for this project",
            ErrorKind::SessionNotFound,
        ),
        ("Invalid session identifier", ErrorKind::SessionNotFound),
        ("Error resuming session", ErrorKind::SessionNotFound),
        ("Error starting session", ErrorKind::Invalid),
        ("Invalid session ID", ErrorKind::Invalid),
        ("Invalid auth method selected", ErrorKind::Auth),
        ("Please set an Auth method", ErrorKind::Auth),
        ("you must specify the GEMINI_API_KEY", ErrorKind::Auth),
        ("you must specify either", ErrorKind::Auth),
        (
            "is not running in a trusted directory",
            ErrorKind::Permission,
        ),
        ("YOLO mode is disabled", ErrorKind::Permission),
        ("No input provided via stdin", ErrorKind::Invalid),
        ("Unknown argument", ErrorKind::Invalid),
        ("Not enough arguments following", ErrorKind::Invalid),
        ("Invalid values:", ErrorKind::Invalid),
        ("Cannot use both", ErrorKind::Invalid),
        ("FatalSandboxError", ErrorKind::NotFound),
        (
            "failed to determine command for sandbox",
            ErrorKind::NotFound,
        ),
        ("Please fix the configuration file", ErrorKind::Invalid),
    ];
    ErrorKind::of_words(stderr, MEANINGS)
}

/// What stderr says beside the warnings, up to the help.
pub(super) fn evidence(stderr: &str) -> String {
    let plain = without_colors(stderr);
    let lines = plain
        .lines()
        .take_while(|line| !line.starts_with("Usage: "));
    let said: Vec<_> = lines.filter(|line| !is_noise(line)).collect();
    said.join("\n").trim().to_owned()
}

/// What the CLI says on stderr whether it fails or not.
fn is_noise(line: &str) -> bool {
    [
        "Warning: ",
        "YOLO mode is enabled",
        "Approval mode overridden",
        "Ripgrep is not available",
        "MCP issues detected",
        "Error executing tool ",
        "[STARTUP]",
        "    at ",
    ]
    .iter()
    .any(|words| line.starts_with(words))
}
