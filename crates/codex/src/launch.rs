//! How Codex is started.

use teamster_core::{AgentError, ExecuteParams, Launch};

use crate::{CAPABILITIES, INFO};

pub(crate) fn launch(params: &ExecuteParams) -> Result<Launch, AgentError> {
    params.check(&INFO, &CAPABILITIES)?;
    Err(AgentError::invalid_params("Codex cannot be run yet"))
}
