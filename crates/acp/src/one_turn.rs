//! Runs of an agent that supports only sessions.

use teamster_core::provider::RunAssembler;
use teamster_core::{
    AbortHandle, AgentError, AgentEvent, AgentRuntime, AgentSession, Capabilities, EventStream,
    ExecuteParams, PermissionPolicy, SessionCapabilities, SessionOptions, SessionRuntime, Turn,
};

/// Runtime in which each run is a session of one turn. Permission requests are denied unless a policy is set with
/// [`permissions`](Self::permissions).
///
/// ```no_run
/// use teamster_acp::{AcpAgent, OneTurn};
/// use teamster_core::{AgentRuntime, ExecuteParams};
/// use teamster_process::CliRuntime;
///
/// # async fn example() -> Result<(), teamster_core::AgentError> {
/// let agent = AcpAgent::new("my-agent --acp")?;
/// let runtime = OneTurn::new(CliRuntime::new(agent));
/// let params = ExecuteParams::new("What is in this directory?");
/// let result = runtime.execute(params).result().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct OneTurn<R> {
    sessions: R,
    permissions: PermissionPolicy,
}

impl<R: SessionRuntime> OneTurn<R> {
    /// Creates a runtime on top of these sessions.
    pub fn new(sessions: R) -> Self {
        Self {
            sessions,
            permissions: PermissionPolicy::default(),
        }
    }

    /// Sets the policy that answers permission requests. The default denies them.
    #[must_use]
    pub fn permissions(mut self, permissions: PermissionPolicy) -> Self {
        self.permissions = permissions;
        self
    }

    fn begin(
        &self,
        mut params: ExecuteParams,
    ) -> Result<(Box<dyn AgentSession>, Turn), AgentError> {
        let mut turn = Turn::new(std::mem::take(&mut params.prompt));
        turn.images = std::mem::take(&mut params.images);
        turn.cancel = params.cancel.clone();
        if turn.prompt.trim().is_empty() && turn.images.is_empty() {
            return Err(AgentError::refused("prompt", "it is empty"));
        }
        let options = SessionOptions::new(params)
            .permissions(self.permissions.clone())
            .one_turn(true);
        Ok((self.sessions.open(options)?, turn))
    }
}

impl<R: SessionRuntime> AgentRuntime for OneTurn<R> {
    fn id(&self) -> &str {
        self.sessions.id()
    }

    fn capabilities(&self) -> &Capabilities {
        self.sessions.capabilities()
    }

    fn check(&self, params: &ExecuteParams) -> Result<(), AgentError> {
        self.begin(params.clone()).map(drop)
    }

    fn execute(&self, params: ExecuteParams) -> EventStream {
        let abort = AbortHandle::new(&params.cancel);
        let (session, turn) = match self.begin(params) {
            Ok(begun) => begun,
            Err(error) => {
                let events = async_stream::stream! {
                    for event in RunAssembler::refuse(error) {
                        yield event;
                    }
                };
                return EventStream::new(events, abort);
            }
        };
        let mut events = session.send(turn);
        let abort = events.abort_handle();
        let events = async_stream::stream! {
            let mut done = None;
            while let Some(entry) = events.next_entry().await {
                if matches!(entry.event, AgentEvent::Done(_)) {
                    done = Some(entry);
                } else {
                    yield entry;
                }
            }
            // No process may be alive after the last event.
            session.close().await;
            drop((session, events));
            if let Some(done) = done {
                yield done;
            }
        };
        EventStream::new(events, abort)
    }
}

impl<R: SessionRuntime> SessionRuntime for OneTurn<R> {
    fn session_capabilities(&self) -> &SessionCapabilities {
        self.sessions.session_capabilities()
    }

    fn open(&self, options: SessionOptions) -> Result<Box<dyn AgentSession>, AgentError> {
        self.sessions.open(options)
    }
}

#[cfg(test)]
mod tests;
