//! Sessions that set their workspace up in their first turn.

use std::sync::Arc;

use teamster_core::{
    AgentError, AgentSession, EventStream, Id, PermissionMode, SessionCapabilities, SessionOptions,
    SessionRuntime, Turn,
};

use super::{SetUpRuns, Setup};

impl SessionRuntime for SetUpRuns<dyn SessionRuntime> {
    fn session_capabilities(&self) -> &SessionCapabilities {
        self.runtime.session_capabilities()
    }

    fn open(&self, options: SessionOptions) -> Result<Box<dyn AgentSession>, AgentError> {
        Ok(Box::new(SetUpSession {
            session: self.runtime.open(options)?,
            setup: self.setup.clone(),
        }))
    }
}

struct SetUpSession {
    session: Box<dyn AgentSession>,
    setup: Arc<Setup>,
}

#[async_trait::async_trait]
impl AgentSession for SetUpSession {
    fn provider(&self) -> &str {
        self.session.provider()
    }

    fn id(&self) -> Option<Id> {
        self.session.id()
    }

    fn capabilities(&self) -> &SessionCapabilities {
        self.session.capabilities()
    }

    fn send(&self, turn: Turn) -> EventStream {
        self.setup.then(self.session.send(turn))
    }

    fn interrupt(&self) {
        self.setup.stop();
        self.session.interrupt();
    }

    async fn steer(&self, text: String) -> Result<(), AgentError> {
        self.session.steer(text).await
    }

    async fn clear(&self) -> Result<(), AgentError> {
        self.session.clear().await
    }

    async fn set_model(&self, model: String) -> Result<(), AgentError> {
        self.session.set_model(model).await
    }

    async fn set_permission(&self, mode: PermissionMode) -> Result<(), AgentError> {
        self.session.set_permission(mode).await
    }

    fn unasked(&self) -> Option<EventStream> {
        self.session.unasked()
    }

    async fn unasked_ready(&self) {
        self.session.unasked_ready().await;
    }

    async fn close(&self) {
        self.setup.stop();
        self.session.close().await;
    }

    async fn close_if_idle(&self) {
        self.session.close_if_idle().await;
    }

    fn is_live(&self) -> bool {
        self.session.is_live()
    }
}
