//! Adapter with one process for all ticks.

use std::sync::Arc;

use teamster_core::{
    AgentError, AgentSession, Capabilities, EventStream, ExecuteParams, Id, RunResult,
    SessionOptions, SessionRuntime, SharedRuntime,
};
use teamster_orchestrator::SessionTurns;

use super::Adapter;

/// Adapter of an agent whose process is kept: ticks are turns of a live session.
pub struct HotAdapter {
    runtime: Arc<dyn SessionRuntime>,
    options: SessionOptions,
    capabilities: Capabilities,
    session: Option<(Arc<dyn AgentSession>, Arc<SessionTurns>)>,
}

impl HotAdapter {
    /// Creates an adapter for this runtime. The options apply to every session.
    pub fn new(runtime: Arc<dyn SessionRuntime>, options: SessionOptions) -> Self {
        Self {
            capabilities: SessionTurns::capabilities_of(runtime.capabilities()),
            runtime,
            options,
            session: None,
        }
    }
}

#[async_trait::async_trait]
impl Adapter for HotAdapter {
    fn begin(&mut self, resume: Option<Id>) -> Result<(), AgentError> {
        let mut options = self.options.clone();
        options.params.session_id = resume.as_deref().map(str::to_owned);
        // The previous session ends when its last turn is gone.
        let session: Arc<dyn AgentSession> = self.runtime.open(options)?.into();
        let turns = SessionTurns::new(session.clone(), self.runtime.capabilities());
        self.session = Some((session, turns.into()));
        Ok(())
    }

    fn set_params(&mut self, params: ExecuteParams) {
        self.options.params = params;
    }

    fn session(&self) -> Option<Id> {
        self.session.as_ref()?.0.id()
    }

    fn is_alive(&self) -> bool {
        // A process is started by the first turn.
        (self.session.as_ref())
            .is_some_and(|(session, turns)| !turns.has_sent() || session.is_live())
    }

    fn clears_in_session(&self) -> bool {
        self.runtime.session_capabilities().clear
    }

    async fn clear(&mut self) -> Result<(), AgentError> {
        let Some((session, _)) = &self.session else {
            return Ok(());
        };
        if self.clears_in_session() {
            session.clear().await?;
            if session.is_live() {
                return Ok(());
            }
            // The process has ended: the next turn starts a new one.
        }
        session.close().await;
        self.begin(None)
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn runtime(&mut self) -> Result<SharedRuntime, AgentError> {
        let none = || AgentError::invalid_params("the agent has not begun");
        let (_, turns) = self.session.as_ref().ok_or_else(none)?;
        Ok(turns.clone())
    }

    fn tick_ended(&mut self, _: &RunResult) {}

    fn unasked(&mut self) -> Option<EventStream> {
        self.session.as_ref()?.0.unasked()
    }

    async fn end(&mut self) {
        if let Some((session, _)) = self.session.take() {
            session.close().await;
        }
    }
}
