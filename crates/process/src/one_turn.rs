//! Runs that are sessions of one turn: those that ask for permission, and all of an agent that supports only sessions.

use teamster_core::{
    AgentError, AgentEvent, AgentRuntime, AgentSession, Capabilities, EventStream, ExecuteParams,
    SessionCapabilities, SessionOptions, SessionRuntime, Turn,
};

/// Runtime whose runs are sessions of one turn. Their permission requests are denied unless the run has a policy
/// ([`ExecuteParams::permissions`]).
///
/// ```no_run
/// use teamster_core::{
///     AgentRuntime, ExecuteParams, PermissionAnswer, PermissionPolicy, SessionProvider,
/// };
/// use teamster_process::{CliRuntime, OneTurn};
///
/// # async fn example(agent: impl SessionProvider) {
/// let runtime = OneTurn::if_asking(CliRuntime::new(agent));
/// let policy = PermissionPolicy::decide(|request| match request.tool_name.as_str() {
///     "Bash" => PermissionAnswer::deny("no commands"),
///     _ => PermissionAnswer::Allow,
/// });
/// let params = ExecuteParams::new("Tidy up this directory").permissions(policy);
/// let result = runtime.execute(params).result().await;
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct OneTurn<R> {
    sessions: R,
    is_always: bool,
}

impl<R: SessionRuntime> OneTurn<R> {
    /// Creates a runtime in which each run is a session.
    pub fn new(sessions: R) -> Self {
        Self {
            sessions,
            is_always: true,
        }
    }

    /// Creates a runtime in which a run with a policy for permission requests is a session. Others run as usual.
    pub fn if_asking(sessions: R) -> Self {
        Self {
            sessions,
            is_always: false,
        }
    }

    fn is_session(&self, params: &ExecuteParams) -> bool {
        self.is_always || params.permissions.is_some()
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
        let permissions = params.permissions.take();
        if permissions.is_some() && !self.session_capabilities().permissions {
            let problem = format!("{} cannot ask; leave it out", self.id());
            return Err(AgentError::refused("permissions", problem));
        }
        let options = SessionOptions::new(params)
            .permissions(permissions.unwrap_or_default())
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
        if self.is_session(params) {
            self.begin(params.clone()).map(drop)
        } else {
            self.sessions.check(params)
        }
    }

    fn execute(&self, params: ExecuteParams) -> EventStream {
        if !self.is_session(&params) {
            return self.sessions.execute(params);
        }
        let (session, turn) = match self.begin(params) {
            Ok(begun) => begun,
            Err(error) => return EventStream::refused(error),
        };
        let mut events = session.send(turn);
        let abort = events.abort_handle();
        let batches = async_stream::stream! {
            loop {
                let mut batch = events.next_batch().await;
                // It is the last entry, and no process may be alive after it.
                let done = batch.pop_if(|entry| matches!(entry.event, AgentEvent::Done(_)));
                let is_end = done.is_some() || batch.is_empty();
                if !batch.is_empty() {
                    yield batch;
                }
                if is_end {
                    session.close().await;
                    drop((session, events));
                    if let Some(done) = done {
                        yield vec![done];
                    }
                    return;
                }
            }
        };
        EventStream::of_batches(batches, abort)
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
