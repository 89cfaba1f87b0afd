//! Failures of turns and of requests to the model. In a session the CLI adds a code to its message; the tables of
//! messages are in `decoder/errors.rs`.

use teamster_core::{AgentError, ErrorCode, ErrorKind};

use crate::decoder::errors;
use crate::wire::Object;

/// A failure with the CLI's own message.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) message: String,
    /// The earlier failure, if a request is repeated.
    pub(super) details: Option<String>,
    kind: Option<ErrorKind>,
}

impl Failure {
    pub(super) fn of(error: &Object<'_>) -> Self {
        let text = |name| {
            let text = error.text(name).filter(|text| !text.trim().is_empty());
            text.map(std::borrow::Cow::into_owned)
        };
        Self {
            message: text("message").unwrap_or_default(),
            details: text("additional_details"),
            kind: kind_of(error),
        }
    }

    /// Returns the error of a turn that failed.
    pub(super) fn error(&self) -> AgentError {
        self.classified(errors::of_message(&self.message))
    }

    /// Returns the error for which the CLI asks the model again.
    pub(super) fn error_of_retry(&self) -> AgentError {
        let reason = self.details.as_ref().unwrap_or(&self.message);
        self.classified(errors::of_reconnect(reason))
    }

    /// Classifies by the code if the message is not conclusive. A known message is more specific: the CLI has one
    /// code for all connection failures, and none for many others.
    fn classified(&self, error: AgentError) -> AgentError {
        let vague = matches!(error.kind, ErrorKind::Internal | ErrorKind::Network);
        match self.kind {
            Some(kind) if vague => AgentError::new(ErrorCode::CliError, kind, error.message)
                .retry_after_ms(error.retry_after_ms),
            _ => error,
        }
    }
}

/// Parses `codexErrorInfo`: a word, or an object with the word as its only key.
fn kind_of(error: &Object<'_>) -> Option<ErrorKind> {
    if let Some(word) = error.text("codex_error_info") {
        return kind_of_word(&word);
    }
    let info = error.object("codex_error_info")?;
    let (word, details) = info.entries().next()?;
    let status = Object::parse(details).and_then(|details| details.get("http_status_code"));
    status
        .and_then(ErrorKind::of_http_status)
        .or_else(|| kind_of_word(word))
}

fn kind_of_word(word: &str) -> Option<ErrorKind> {
    Some(match word {
        "contextWindowExceeded" => ErrorKind::ContextWindow,
        "sessionBudgetExceeded" => ErrorKind::Budget,
        "usageLimitExceeded" => ErrorKind::Quota,
        "rateLimitExceeded" => ErrorKind::RateLimit,
        "serverOverloaded"
        | "flexUnavailable"
        | "policyCapacityUnavailable"
        | "internalServerError" => ErrorKind::Overloaded,
        "modelNotFound" => ErrorKind::ModelNotFound,
        "unauthorized" => ErrorKind::Auth,
        "inferenceHookDenied" | "tooManyDenials" => ErrorKind::Permission,
        "badRequest" | "bioPolicy" | "cyberPolicy" | "misalignmentPolicyViolation" => {
            ErrorKind::Invalid
        }
        "httpConnectionFailed"
        | "responseStreamConnectionFailed"
        | "responseStreamDisconnected"
        | "responseTooManyFailedAttempts" => ErrorKind::Network,
        _ => return None,
    })
}

/// Returns the error of a line that the CLI does not print in a session.
pub(super) fn answer_without(what: &str) -> AgentError {
    AgentError::new(
        ErrorCode::CliError,
        ErrorKind::Protocol,
        format!("Codex answered without {what}; it may be of a version that is not known"),
    )
}
