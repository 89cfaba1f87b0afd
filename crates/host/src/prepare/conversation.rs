//! The session of a conversation, and its lock.

use std::path::Path;
use std::sync::Arc;

use teamster_core::{AgentError, ErrorDetail, ExecuteParams};
use teamster_orchestrator::RunObserver;
use teamster_runner::{SessionLocks, SessionWriter};
use teamster_store::SessionLock;

use crate::history::{KeptHistory, KeyedSession};

/// Locks the session that these parameters resume. Refuses a session that another process uses.
pub(super) fn lock_session(
    provider: &str,
    params: &ExecuteParams,
    locks: Option<&SessionLocks>,
) -> Result<Option<SessionWriter>, AgentError> {
    let Some(locks) = locks else {
        return Ok(None);
    };
    let mut writer = locks.writer(provider);
    writer.begin(params)?;
    Ok(Some(writer))
}

/// Returns the refusal of a session that is in use, with the parameter that names the session and what else can be done.
pub(super) fn of_conversation(error: AgentError, has_conversation: bool) -> AgentError {
    let Some(ErrorDetail::Parameter { problem, .. }) = error.detail.as_deref() else {
        return error;
    };
    let (parameter, step) = if has_conversation {
        ("session_key", "use another key")
    } else {
        ("session_id", "fork the session")
    };
    let refused = AgentError::session_in_use(parameter, format!("{problem}, or {step}"));
    (error.holder().into_iter()).fold(refused, AgentError::held_by)
}

impl KeptHistory {
    /// Returns the session of the conversation with this provider, or the right to begin it.
    pub(super) async fn session(
        &self,
        provider: &str,
        directory: Option<&Path>,
        start_over: &str,
    ) -> Result<KeyedSession, AgentError> {
        let directory = directory.unwrap_or(Path::new("."));
        let open = self.open.as_ref();
        (self.history.session(open, provider, directory, start_over)).await
    }

    /// Returns the observer of a session's turns. `begins` is the right to begin the session of a conversation.
    pub(super) fn observer_of_session(
        &self,
        provider: &str,
        resumed: Option<&str>,
        begins: Option<SessionLock>,
    ) -> Option<Arc<dyn RunObserver>> {
        let open = self.open.as_ref()?;
        let mut recorder = open.recorder.clone().session_locks(begins);
        if let Some(session) = resumed {
            recorder = recorder.resumed_session(provider, session);
        }
        Some(Arc::new(recorder))
    }
}
