//! Adapter with one process for each tick.

use std::sync::Arc;

use teamster_core::{
    AgentError, AgentRuntime, Capabilities, EventStream, ExecuteParams, Id, RunResult,
    SharedRuntime,
};

use super::{Adapter, died};

/// Adapter of an agent whose session is resumed by each tick's process.
pub struct ColdAdapter {
    runtime: SharedRuntime,
    params: ExecuteParams,
    session: Option<Id>,
    alive: bool,
}

impl ColdAdapter {
    /// Creates an adapter for this runtime. The parameters apply to every tick; their prompt and session are
    /// ignored.
    pub fn new(runtime: SharedRuntime, params: ExecuteParams) -> Self {
        Self {
            runtime,
            params,
            session: None,
            alive: false,
        }
    }
}

#[async_trait::async_trait]
impl Adapter for ColdAdapter {
    fn begin(&mut self, resume: Option<Id>) -> Result<(), AgentError> {
        // The prompt is not sent, but an empty one is refused.
        let mut params = self.params.clone();
        "tick".clone_into(&mut params.prompt);
        params.session_id = resume.as_deref().map(str::to_owned);
        self.runtime.check(&params)?;
        self.session = resume;
        self.alive = true;
        Ok(())
    }

    fn set_params(&mut self, params: ExecuteParams) {
        self.params = params;
    }

    fn session(&self) -> Option<Id> {
        self.session.clone()
    }

    fn is_alive(&self) -> bool {
        self.alive
    }

    fn clears_in_session(&self) -> bool {
        false
    }

    async fn clear(&mut self) -> Result<(), AgentError> {
        self.session = None;
        Ok(())
    }

    fn capabilities(&self) -> &Capabilities {
        self.runtime.capabilities()
    }

    fn runtime(&mut self) -> Result<SharedRuntime, AgentError> {
        Ok(Arc::new(Attempts {
            runtime: self.runtime.clone(),
            params: self.params.clone(),
        }))
    }

    fn tick_ended(&mut self, result: &RunResult) {
        // Without a reported id the next tick resumes the previous session.
        if result.session_id.is_some() {
            self.session.clone_from(&result.session_id);
        }
        // Any other process ends with its tick, and the next one resumes the session.
        self.alive = !died(result);
    }

    fn unasked(&mut self) -> Option<EventStream> {
        None
    }

    async fn end(&mut self) {
        // The process ends with the tick's stream.
        self.alive = false;
    }
}

/// Runtime with the parameters of the agent, except for what differs from one attempt to the next.
struct Attempts {
    runtime: SharedRuntime,
    params: ExecuteParams,
}

impl AgentRuntime for Attempts {
    fn id(&self) -> &str {
        self.runtime.id()
    }

    fn capabilities(&self) -> &Capabilities {
        self.runtime.capabilities()
    }

    fn execute(&self, attempt: ExecuteParams) -> EventStream {
        let mut params = self.params.clone();
        params.prompt = attempt.prompt;
        params.session_id = attempt.session_id;
        params.max_turns = attempt.max_turns.or(params.max_turns);
        params.max_budget_usd = attempt.max_budget_usd.or(params.max_budget_usd);
        params.usage_updates |= attempt.usage_updates;
        self.runtime.execute(params)
    }
}
