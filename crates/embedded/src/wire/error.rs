//! Failures of model services: classification and retry delays.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use teamster_core::ErrorKind;
use teamster_core::text::{excerpt, one_line};

/// Maximum bytes of a non-JSON body in an error message.
const MOST_SHOWN: usize = 400;
/// Maximum bytes of an unreadable answer in an error message.
const MOST_EVENT: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    /// Message of the service, or a generated one.
    pub(crate) message: String,
    /// Delay that the service requests before a retry.
    pub(crate) retry_after: Option<Duration>,
    /// True if the same request would fail in the same way.
    pub(crate) is_final: bool,
}

impl Failure {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after: None,
            is_final: false,
        }
    }

    /// Creates the failure of a stream that ended before the answer.
    pub(crate) fn broken_off() -> Self {
        Self::new(
            ErrorKind::Network,
            "the connection broke in the middle of the answer",
        )
    }

    /// Creates the failure of a complete answer with an unreadable event.
    pub(crate) fn malformed(event: &str) -> Self {
        let shown = excerpt(event, MOST_EVENT);
        Self::new(
            ErrorKind::Protocol,
            format!("an event of the answer is not JSON, so a piece of it is lost: {shown}"),
        )
    }

    /// Creates the failure of a body that is neither a stream nor an answer.
    pub(crate) fn not_a_stream(body: &str) -> Self {
        let is_control = |c: char| c.is_ascii_control() && !c.is_ascii_whitespace();
        // A page in another encoding than UTF-8 is text.
        let shown = if body.contains(char::REPLACEMENT_CHARACTER) && body.contains(is_control) {
            "it is compressed or binary, as from a gateway that compresses without being asked"
                .to_owned()
        } else {
            excerpt(&one_line(body), MOST_EVENT)
        };
        Self {
            is_final: true,
            ..Self::new(
                ErrorKind::Protocol,
                format!(
                    "the answer is neither a stream of events nor an answer of this protocol: {shown}"
                ),
            )
        }
    }
}

pub(crate) fn of_text(text: &str) -> Failure {
    let kind = ErrorKind::of_message(text).unwrap_or(ErrorKind::Protocol);
    Failure::new(kind, excerpt(text, MOST_SHOWN))
}

/// Returns the failure for an HTTP status other than 2xx. `header` looks up a header by its lower-case name. Dates in
/// headers are relative to `now`.
pub(crate) fn http_failure(
    status: u16,
    header: &dyn Fn(&str) -> Option<String>,
    body: &str,
    now: Timestamp,
) -> Failure {
    // An error may be an event, where a stream was requested.
    let body = body.trim();
    let json = body.lines().find_map(|line| line.strip_prefix("data:"));
    let mut failure = match serde_json::from_str::<Value>(json.unwrap_or(body)) {
        Ok(body) => of_body(Some(status), &body),
        Err(_) => {
            let kind = ErrorKind::of_http_status(status).unwrap_or(ErrorKind::Protocol);
            let shown = excerpt(body, MOST_SHOWN);
            let message = if shown.is_empty() {
                format!("HTTP status {status}")
            } else {
                format!("HTTP status {status}: {shown}")
            };
            Failure::new(kind, message)
        }
    };
    let delay = retry_after(header, now);
    failure.retry_after = delay.or(failure.retry_after);
    failure
}

/// Returns the failure for a JSON error: the body of a response, or an event of a stream.
pub(crate) fn of_body(status: Option<u16>, body: &Value) -> Failure {
    // Gemini may send a list with one item.
    let body = body.get(0).unwrap_or(body);
    let error = match body.get("error") {
        Some(error) if error.is_object() => error,
        _ => body,
    };
    let field = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
    let message = match (field("message"), body.get("error").and_then(Value::as_str)) {
        ("", Some(text)) => text.to_owned(),
        ("", None) => match body.get("detail").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => excerpt(&body.to_string(), MOST_SHOWN),
        },
        (message, _) => message.to_owned(),
    };
    let code = || match error.get("code")? {
        Value::String(code) => code.parse().ok(),
        code => u16::try_from(code.as_u64()?).ok(),
    };
    let status = status.or_else(code);
    let mut failure = Failure::new(kind(status, error, &message), message);
    failure.retry_after = retry_delay(error);
    failure
}

fn kind(status: Option<u16>, error: &Value, message: &str) -> ErrorKind {
    let field = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
    // Gemini uses the same message for per-minute and per-day limits.
    let details = error.get("details").map(Value::to_string);
    let details = details.unwrap_or_default().to_lowercase();
    if details.contains("perday") {
        return ErrorKind::Quota;
    }
    if details.contains("perminute") {
        return ErrorKind::RateLimit;
    }
    let codes = [field("code"), field("type"), field("status")].join(" ");
    if codes.contains("not_found_error") || codes.contains("NOT_FOUND") {
        return ErrorKind::ModelNotFound;
    }
    let of_words = ErrorKind::of_message(message)
        .or_else(|| ErrorKind::of_message(&details))
        .or_else(|| ErrorKind::of_message(&codes));
    let of_status = status.and_then(ErrorKind::of_http_status);
    match (of_words, of_status) {
        (Some(kind), _) | (None, Some(kind)) => kind,
        (None, None) if codes.contains("server_error") || codes.contains("api_error") => {
            ErrorKind::Overloaded
        }
        (None, None) if codes.contains("invalid") => ErrorKind::Invalid,
        (None, None) => ErrorKind::Protocol,
    }
}

/// Returns the delay of `RetryInfo` in the details of Gemini's errors.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay"))?;
    let seconds: f64 = delay.as_str()?.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Returns the delay of `retry-after-ms`, or of `retry-after` in seconds or as a date.
fn retry_after(header: &dyn Fn(&str) -> Option<String>, now: Timestamp) -> Option<Duration> {
    let millis = header("retry-after-ms").and_then(|it| it.trim().parse::<f64>().ok());
    if let Some(millis) = millis {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let value = header("retry-after")?;
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(status: u16, headers: &[(&str, &str)], body: &str) -> Failure {
        let header = |name: &str| {
            let found = headers.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let now = "1994-11-06T08:49:30Z".parse().unwrap();
        http_failure(status, &header, body, now)
    }

    #[test]
    fn a_service_can_say_when_to_come_back() {
        let after = |headers: &[(&str, &str)]| failure(429, headers, "").retry_after;
        let ms = |it| Some(Duration::from_millis(it));
        assert_eq!(after(&[]), None);
        assert_eq!(after(&[("retry-after", " 2 ")]), ms(2000));
        assert_eq!(after(&[("retry-after", "0.5")]), ms(500));
        assert_eq!(
            after(&[("retry-after", "9"), ("retry-after-ms", "10")]),
            ms(10)
        );
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(after(&[("retry-after", date)]), ms(7000));
        let past = "Sun, 06 Nov 1994 08:00:00 GMT";
        assert_eq!(after(&[("retry-after", past)]), ms(0));
        for wrong in ["-1", "soon", "1e400"] {
            assert_eq!(after(&[("retry-after", wrong)]), None, "{wrong}");
        }
    }

    #[test]
    fn a_body_that_is_no_json_is_shortened() {
        let failed = failure(502, &[], "<html>Bad gateway</html>");
        assert_eq!(failed.kind, ErrorKind::Overloaded);
        assert_eq!(failed.message, "HTTP status 502: <html>Bad gateway</html>");
        assert!(failure(500, &[], &"x".repeat(9000)).message.len() < 500);
        assert_eq!(failure(404, &[], "").message, "HTTP status 404");
    }

    // Made by hand, as gateways have it in a stream.
    #[test]
    fn a_status_in_an_error_may_be_text() {
        for code in [serde_json::json!("429"), serde_json::json!(429)] {
            let body = serde_json::json!({"error": {"message": "no", "code": code}});
            assert_eq!(of_body(None, &body).kind, ErrorKind::RateLimit, "{body}");
        }
    }

    #[test]
    fn an_error_can_be_a_mere_text() {
        // The format of Ollama.
        let failed = failure(404, &[], r#"{"error":"model 'x' not found"}"#);
        assert_eq!(failed.kind, ErrorKind::ModelNotFound);
        assert_eq!(failed.message, "model 'x' not found");
    }
}
