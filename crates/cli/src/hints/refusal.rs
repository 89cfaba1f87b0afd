//! Refusals of descriptions.

use anyhow::anyhow;
use teamster::{AgentError, ErrorDetail};
use teamster_api::ServiceError;

/// Converts the refusal of a description, with options in place of parameters.
pub(crate) fn usage(error: impl Into<anyhow::Error>) -> anyhow::Error {
    let error = error.into();
    let refusal = match error.downcast_ref::<ServiceError>() {
        // Without a parameter, words in the text are no names of parameters.
        Some(error) => (error.agent_error.as_deref()).filter(|it| it.parameter().is_some()),
        None => error.downcast_ref(),
    };
    match refusal {
        // No library names a command of this program.
        Some(refusal) if is_untrusted_setup(refusal) => {
            let message = super::message(refusal);
            anyhow!("{message} with `teamster trust DIR --from COMMIT`, or use --setup off")
        }
        Some(refusal) => anyhow!("{}", super::message(refusal)),
        None => error,
    }
}

/// Returns whether the set-up commands of a repository's own file are not trusted on the machine of the run.
fn is_untrusted_setup(refusal: &AgentError) -> bool {
    matches!(refusal.detail.as_deref(), Some(ErrorDetail::Parameter { name, item: Some(_), .. }) if name == "setup")
}
