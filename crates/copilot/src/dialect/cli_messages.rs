//! Messages that GitHub Copilot CLI itself sends as the agent's text.
//!
//! As an ACP agent, the CLI sends its own messages as text of the model: `Info: ` or `Error: ` and the message, in
//! one piece. The model can write the same, so only complete texts of known forms count as the CLI's.

use teamster_core::{AgentError, ErrorCode, ErrorKind};

use crate::decoder::errors;

/// A text that may be the CLI's own.
#[derive(Debug, PartialEq)]
pub(super) enum Form<'a> {
    /// The CLI repeats a request.
    Retry(AgentError),
    /// The turn failed.
    Failure {
        error: AgentError,
        /// True if the message is so specific that no answer will equal it.
        is_sure: bool,
    },
    /// A tool was not permitted, which ended the turn.
    Cancelled,
    /// Calls of a process that was killed have no result, when its session is resumed.
    Interrupted,
    /// Any other text after `Info: `, such as the path of a created file.
    Info(&'a str),
}

const RETRIES: &[(&str, ErrorKind)] = &[
    (
        "Request failed due to a transient API error. Retrying...",
        ErrorKind::Overloaded,
    ),
    (
        "Response was interrupted due to a server error. Retrying...",
        ErrorKind::Network,
    ),
    (
        "The conversation exceeded the model's context limit. Compacting history and retrying...",
        ErrorKind::ContextWindow,
    ),
];

/// Prefixes of failures.
const FAILURES: &[&str] = &[
    "Authentication failed with provider at ",
    "Could not connect to local model provider at ",
    "Failed to get response from the AI model; retried ",
    "No response was returned. Send your message again to retry.",
    "The provider rejected the prompt as too long, but automatic recovery could not reduce it",
];

/// Part of the warning about calls without a result.
const INTERRUPTED: &str = " tool call(s) had no recorded result at resume. ";

/// The CLI's prefix of the error of its last attempt.
const LAST: &str = " Last error: ";

pub(super) fn form(text: &str) -> Option<Form<'_>> {
    if let Some(message) = text.strip_prefix("Error: ") {
        return failure(message);
    }
    if let Some(message) = text.strip_prefix("Warning: ") {
        return message.contains(INTERRUPTED).then_some(Form::Interrupted);
    }
    let message = text.strip_prefix("Info: ")?;
    let retry = RETRIES.iter().find(|(form, _)| *form == message);
    Some(match retry {
        Some((_, kind)) => Form::Retry(AgentError::new(ErrorCode::CliError, *kind, message)),
        None if message == "Operation cancelled by user" => Form::Cancelled,
        None => Form::Info(message),
    })
}

fn failure(message: &str) -> Option<Form<'_>> {
    let no_model =
        message.starts_with("Model '") && message.contains("' not found on provider at ");
    let is_sure = no_model || FAILURES.iter().any(|form| message.starts_with(form));
    let cause = message
        .rsplit_once(LAST)
        .map_or(message, |(_, cause)| cause);
    let status = status_before(cause);
    if !is_sure && status.is_none() {
        return None;
    }
    let kind = errors::kind_of_text(message)
        .or_else(|| status.and_then(ErrorKind::of_http_status))
        .unwrap_or(ErrorKind::Internal);
    Some(Form::Failure {
        error: AgentError::new(ErrorCode::CliError, kind, message),
        is_sure,
    })
}

/// Returns the HTTP status at the start of an error such as `429 Rate limit reached`.
fn status_before(message: &str) -> Option<u16> {
    let (status, rest) = message.split_once(' ')?;
    let status: u16 = status.parse().ok().filter(|_| status.len() == 3)?;
    ((400..600).contains(&status) && !rest.is_empty()).then_some(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the kind of a failure, and whether it is sure.
    fn failed(text: &str) -> Option<(ErrorKind, bool)> {
        match form(text)? {
            Form::Failure { error, is_sure } => Some((error.kind, is_sure)),
            _ => None,
        }
    }

    #[test]
    fn failures_are_known_by_their_forms() {
        for (text, kind, is_sure) in [
            (
                "Error: Authentication failed with provider at http://x/v1 (HTTP 403).\n  Check your KEY.",
                ErrorKind::Auth,
                true,
            ),
            (
                "Error: Model 'm' not found on provider at http://x/v1 (HTTP 404).\n  Check that the model is \
                 available on your provider.",
                ErrorKind::ModelNotFound,
                true,
            ),
            (
                "Error: Failed to get response from the AI model; retried 5 times (total retry wait time: \
                 10.51 seconds) Last error: 429 Rate limit reached for requests.",
                ErrorKind::RateLimit,
                true,
            ),
            (
                "Error: Failed to get response from the AI model; retried 5 times (total retry wait time: \
                 14.34 seconds) Last error: 503 x",
                ErrorKind::Overloaded,
                true,
            ),
            (
                "Error: No response was returned. Send your message again to retry.",
                ErrorKind::Protocol,
                true,
            ),
            (
                "Error: Could not connect to local model provider at http://x/v1.\n  Check that it runs.",
                ErrorKind::Network,
                true,
            ),
            (
                "Error: 400 This model's maximum context length is 128000 tokens.",
                ErrorKind::ContextWindow,
                false,
            ),
            ("Error: 429 slow", ErrorKind::RateLimit, false),
        ] {
            assert_eq!(failed(text), Some((kind, is_sure)), "{text}");
        }
        for answer in [
            "Error: this is text of the model",
            "Error: 12 apples",
            "Error: 404",
            "Authentication failed with provider at x",
            "Error:",
        ] {
            assert_eq!(failed(answer), None, "{answer}");
        }
    }

    /// As Copilot 1.0.102 printed it, shortened.
    #[test]
    fn a_warning_about_interrupted_calls_is_known_by_its_words() {
        let text = "Warning: 1 tool call(s) had no recorded result at resume. Files or other state may be partially changed.";
        assert_eq!(form(text), Some(Form::Interrupted));
        assert_eq!(form("Warning: this is text of the model"), None);
    }

    #[test]
    fn retries_are_known_by_their_complete_text() {
        let text = "Info: Request failed due to a transient API error. Retrying...";
        let Some(Form::Retry(error)) = form(text) else {
            panic!("{:?}", form(text));
        };
        assert_eq!(error.kind, ErrorKind::Overloaded);
        assert_eq!(error.message, &text[6..]);
        let more = format!("{text} And more.");
        assert_eq!(form(&more), Some(Form::Info(&more[6..])));
        assert_eq!(
            form("Info: Operation cancelled by user"),
            Some(Form::Cancelled)
        );
        assert_eq!(form("Info"), None);
    }
}
