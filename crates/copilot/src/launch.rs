//! How GitHub Copilot CLI is started.

use teamster_core::{AgentError, ExecuteParams, Launch};

use crate::{CAPABILITIES, INFO};

pub(crate) fn launch(params: &ExecuteParams) -> Result<Launch, AgentError> {
    params.check(&INFO, &CAPABILITIES)?;
    Err(AgentError::invalid_params(
        "GitHub Copilot CLI cannot be run yet",
    ))
}
