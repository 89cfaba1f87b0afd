//! Turns of a live session as runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use teamster_core::sync::lock;
use teamster_core::{AgentRuntime, AgentSession, Capabilities, EventStream, ExecuteParams, Turn};

/// Runtime that executes each run as a turn of a live session. Turns get the retries, the budget, the limits and the
/// history of any run.
///
/// A turn uses the prompt, the images, the timeouts and `cancel` of the parameters. All other parameters were fixed
/// when the session was opened. A retry of a turn continues in the same session.
pub struct SessionTurns {
    session: Arc<dyn AgentSession>,
    capabilities: Capabilities,
    /// A turn that the CLI has begun by itself, returned by the first execution.
    begun: Mutex<Option<EventStream>>,
    sent: AtomicBool,
}

impl SessionTurns {
    /// Creates the runtime of this session. `capabilities` are those of the session's runtime.
    pub fn new(session: Arc<dyn AgentSession>, capabilities: &Capabilities) -> Self {
        Self {
            session,
            capabilities: Self::capabilities_of(capabilities),
            begun: Mutex::new(None),
            sent: AtomicBool::new(false),
        }
    }

    /// Returns whether a turn was sent to the session, which starts its process.
    pub fn has_sent(&self) -> bool {
        self.sent.load(Ordering::Relaxed)
    }

    /// Returns the capabilities of a session's turns, derived from those of its runtime.
    pub fn capabilities_of(runtime: &Capabilities) -> Capabilities {
        let mut capabilities = runtime.clone();
        capabilities.resume = true;
        capabilities.slash_commands = runtime.session_commands;
        // The CLI's own limits apply to its process, not to a turn.
        capabilities.max_turns = false;
        capabilities.max_budget_usd = false;
        capabilities
    }

    /// Makes a turn that the CLI has begun by itself ([`AgentSession::unasked`]) the first execution.
    #[must_use]
    pub fn begun(self, turn: EventStream) -> Self {
        *lock(&self.begun) = Some(turn);
        self
    }
}

teamster_core::debug_fields!(SessionTurns |it| {
    provider: it.session.provider(),
    session_id: it.session.id(),
});

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
        self.sent.store(true, Ordering::Relaxed);
        self.session.send(turn)
    }
}
