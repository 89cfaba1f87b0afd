//! Sessions that set their workspace up in their first turn.

use std::sync::Arc;

use teamster_core::{
    AgentError, AgentSession, EventStream, Id, PermissionMode, SessionCapabilities, SessionFuture,
    SessionOptions, SessionRuntime, Turn,
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

    fn steer(&self, text: String) -> SessionFuture<'_, Result<(), AgentError>> {
        self.session.steer(text)
    }

    fn clear(&self) -> SessionFuture<'_, Result<(), AgentError>> {
        self.session.clear()
    }

    fn set_model(&self, model: String) -> SessionFuture<'_, Result<(), AgentError>> {
        self.session.set_model(model)
    }

    fn set_permission(&self, mode: PermissionMode) -> SessionFuture<'_, Result<(), AgentError>> {
        self.session.set_permission(mode)
    }

    fn unasked(&self) -> Option<EventStream> {
        self.session.unasked()
    }

    fn unasked_ready(&self) -> SessionFuture<'_, ()> {
        self.session.unasked_ready()
    }

    fn close(&self) -> SessionFuture<'_, ()> {
        self.setup.stop();
        self.session.close()
    }

    fn close_if_idle(&self) -> SessionFuture<'_, ()> {
        self.session.close_if_idle()
    }

    fn is_live(&self) -> bool {
        self.session.is_live()
    }
}
