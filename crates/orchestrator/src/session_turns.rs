//! Turns of a live session as runs.

use std::fmt;
use std::sync::{Arc, Mutex};

use teamster_core::sync::lock;
use teamster_core::{AgentRuntime, AgentSession, Capabilities, EventStream, ExecuteParams, Turn};

/// A live session as a runtime: each execution is a turn of the session, so that a turn has the retries, the budget,
/// the limits and the history of any run.
///
/// Of the parameters a turn takes the prompt, the images, the timeouts and `cancel`. Everything else belongs to the
/// session, which was opened with it. A retry of a turn continues in the same session.
pub struct SessionTurns {
    session: Arc<dyn AgentSession>,
    capabilities: Capabilities,
    /// A turn that the CLI has begun by itself, to be played first.
    begun: Mutex<Option<EventStream>>,
}

impl SessionTurns {
    /// The turns of this session. `capabilities` are those of its runtime.
    pub fn new(session: Arc<dyn AgentSession>, capabilities: &Capabilities) -> Self {
        let mut capabilities = capabilities.clone();
        capabilities.resume = true;
        // The CLI's own limits hold for its process, not for a turn.
        capabilities.max_turns = false;
        capabilities.max_budget_usd = false;
        Self {
            session,
            capabilities,
            begun: Mutex::new(None),
        }
    }

    /// The same with a turn that the CLI has begun by itself ([`AgentSession::unasked`]): it is the first execution.
    #[must_use]
    pub fn begun(self, turn: EventStream) -> Self {
        *lock(&self.begun) = Some(turn);
        self
    }
}

impl fmt::Debug for SessionTurns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionTurns")
            .field("provider", &self.session.provider())
            .field("session_id", &self.session.id())
            .finish_non_exhaustive()
    }
}

impl AgentRuntime for SessionTurns {
    fn id(&self) -> &str {
        self.session.provider()
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn execute(&self, params: ExecuteParams) -> EventStream {
        if let Some(begun) = lock(&self.begun).take() {
            return begun;
        }
        let mut turn = Turn::new(params.prompt);
        turn.images = params.images;
        turn.timeouts = params.timeouts;
        turn.cancel = params.cancel;
        self.session.send(turn)
    }
}
