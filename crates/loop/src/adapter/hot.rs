//! Adapter with one process for all ticks.

use std::sync::Arc;

use teamster_core::{
    AgentError, AgentSession, Capabilities, EventStream, ExecuteParams, Id, RunResult,
    SessionOptions, SessionRuntime, Turn,
};

use super::{Adapter, AdapterFuture};

/// Adapter of an agent whose process is kept: ticks are turns of a live session.
pub struct HotAdapter {
    runtime: Arc<dyn SessionRuntime>,
    options: SessionOptions,
    session: Option<Box<dyn AgentSession>>,
    /// Without the limits of a single run: they would apply to the whole session.
    capabilities: Capabilities,
    /// A turn was sent, so a process was started.
    played: bool,
}

impl HotAdapter {
    /// Creates an adapter for this runtime. The options apply to every session.
    pub fn new(runtime: Arc<dyn SessionRuntime>, options: SessionOptions) -> Self {
        let mut capabilities = runtime.capabilities().clone();
        capabilities.resume = true;
        capabilities.max_turns = false;
        capabilities.max_budget_usd = false;
        Self {
            runtime,
            options,
            capabilities,
            session: None,
            played: false,
        }
    }
}

impl Adapter for HotAdapter {
    fn begin(&mut self, resume: Option<Id>) -> Result<(), AgentError> {
        let mut options = self.options.clone();
        options.params.session_id = resume.as_deref().map(str::to_owned);
        // Dropping the previous session ends it.
        self.session = Some(self.runtime.open(options)?);
        self.played = false;
        Ok(())
    }

    fn set_params(&mut self, params: ExecuteParams) {
        self.options.params = params;
    }

    fn session(&self) -> Option<Id> {
        self.session.as_ref()?.id()
    }

    fn is_alive(&self) -> bool {
        (self.session.as_ref()).is_some_and(|session| !self.played || session.is_live())
    }

    fn keeps_context(&self) -> bool {
        true
    }

    fn clears_in_session(&self) -> bool {
        self.runtime.session_capabilities().clear
    }

    fn clear(&mut self) -> AdapterFuture<'_, Result<(), AgentError>> {
        Box::pin(async move {
            let Some(session) = &self.session else {
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
        })
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn tick(&mut self, prompt: &str) -> Result<EventStream, AgentError> {
        let none = || AgentError::invalid_params("the agent has not begun");
        let session = self.session.as_ref().ok_or_else(none)?;
        self.played = true;
        Ok(session.send(Turn::new(prompt)))
    }

    fn tick_ended(&mut self, _: &RunResult) {}

    fn unasked(&mut self) -> Option<EventStream> {
        self.session.as_ref()?.unasked()
    }

    fn end(&mut self) -> AdapterFuture<'_, ()> {
        Box::pin(async move {
            if let Some(session) = self.session.take() {
                session.close().await;
            }
        })
    }
}
