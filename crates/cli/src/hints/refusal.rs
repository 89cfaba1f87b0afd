//! Refusals of descriptions.

use anyhow::anyhow;
use teamster::AgentError;

/// Converts the refusal of a description, with options in place of parameters.
pub(crate) fn usage(error: impl Into<anyhow::Error>) -> anyhow::Error {
    let error = error.into();
    match error.downcast_ref::<AgentError>() {
        Some(error) => anyhow!("{}", super::message(error)),
        None => error,
    }
}
