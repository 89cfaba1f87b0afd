//! Refusals of descriptions.

use std::borrow::Cow;

use anyhow::anyhow;
use teamster::{AgentError, ErrorDetail};
use teamster_api::ServiceError;

/// Converts the refusal of a description, with options in place of parameters.
pub(crate) fn usage(error: impl Into<anyhow::Error>) -> anyhow::Error {
    let error = error.into();
    let refusal = match error.downcast_ref::<ServiceError>() {
        Some(error) => of_service(error),
        None => error.downcast_ref().map(Cow::Borrowed),
    };
    let refused = refusal.map(|refusal| {
        let message = super::message(&refusal);
        // No library names a command of this program.
        if is_untrusted_setup(&refusal) {
            anyhow!("{message} with `teamster trust DIR --from COMMIT`, or use --setup off")
        } else {
            anyhow!("{message}")
        }
    });
    refused.unwrap_or(error)
}

/// Returns the refusal of a parameter. Without one, words in the text are no names of parameters.
fn of_service(error: &ServiceError) -> Option<Cow<'_, AgentError>> {
    if let Some(refusal) = error.agent_error.as_deref() {
        return refusal.parameter().map(|_| Cow::Borrowed(refusal));
    }
    // That of another machine has no more than the name.
    let parameter = error.parameter.as_deref()?;
    let problem = error.message.strip_prefix(parameter)?.strip_prefix(": ")?;
    Some(Cow::Owned(AgentError::refused(parameter, problem)))
}

/// Returns whether the set-up commands of a repository's own file are not trusted on the machine of the run.
fn is_untrusted_setup(refusal: &AgentError) -> bool {
    matches!(refusal.detail.as_deref(), Some(ErrorDetail::Parameter { name, item: Some(_), .. }) if name == "setup")
}
