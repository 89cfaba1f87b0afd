//! Kinds of errors by the words of an agent.

use teamster_core::{AgentError, ErrorKind};

/// Sets the kind of an error of which nothing was known.
pub(crate) fn known_by(mut error: AgentError, kind: Option<ErrorKind>) -> AgentError {
    if let Some(kind) = kind.filter(|_| error.kind == ErrorKind::Internal) {
        error.kind = kind;
        error.retryable = kind.is_retryable();
    }
    error
}
