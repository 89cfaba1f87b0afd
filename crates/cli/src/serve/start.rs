//! Starts detached runs and sessions for a server.

use teamster::{AgentError, ErrorCode, ErrorKind};
use teamster_api::{Launch, Launched, RunSpec, SessionSpec};
use teamster_host::state;
use teamster_server::BackendError;

/// Starts a run. Resolves once the runner has accepted it.
pub(crate) async fn start(run_id: String, spec: RunSpec) -> Result<(), BackendError> {
    launch(Launch::new(run_id, spec)).await
}

/// Starts a session. Resolves once the runner has accepted it.
pub(super) async fn start_session(id: String, spec: SessionSpec) -> Result<(), BackendError> {
    launch(Launch::new(id, spec)).await
}

async fn launch(launch: Launch) -> Result<(), BackendError> {
    match crate::host().launch(&launch).await {
        Ok(Launched::Accepted { .. }) => Ok(()),
        Ok(Launched::Refused { .. }) if is_a_run(&launch.id) => {
            Err(BackendError::Exists(launch.id))
        }
        Ok(Launched::Refused { error, .. }) => Err(BackendError::Refused(error)),
        Err(error) if error.kind == ErrorKind::Internal => Err(BackendError::Failed(error.message)),
        Err(error) => Err(BackendError::Refused(error)),
        Ok(_) => Err(BackendError::Refused(AgentError::new(
            ErrorCode::Io,
            ErrorKind::Internal,
            "the runner has another version",
        ))),
    }
}

fn is_a_run(id: &str) -> bool {
    state::runs().is_ok_and(|runs| matches!(runs.get(id), Ok(Some(_))))
}
