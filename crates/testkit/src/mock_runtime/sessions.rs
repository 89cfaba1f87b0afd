//! Sessions without a CLI: turns that play scripts, and tools that need a permission.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use teamster_core::sync::lock;
use teamster_core::{
    AbortHandle, AgentError, AgentEvent, AgentRuntime, AgentSession, Capabilities, EventStream,
    ExecuteParams, Id, PermissionAnswer, PermissionMode, PermissionPolicy, PermissionRequest,
    SessionCapabilities, SessionOptions, SessionRuntime, Turn,
};
use tokio::sync::Mutex as TurnLock;

use super::play::answer;
use super::{MockRuntime, Received, Script};

/// A [`SessionRuntime`] whose turns play [`Script`]s, in order over all of its sessions.
///
/// A tool that [needs permission](Script::ask_tool) goes through the caller's [`PermissionPolicy`], and the
/// answer is [recorded](Self::answers).
///
/// ```
/// use serde_json::json;
/// use teamster_core::{PermissionAnswer, PermissionPolicy, SessionOptions, SessionRuntime, ToolKind, Turn};
/// use teamster_testkit::mock_runtime::{MockSessions, Script};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let script = Script::new()
///     .session("s-1")
///     .ask_tool("Bash", "t1", ToolKind::Execute, json!({"command": "rm -r ."}), "done")
///     .text("I was not allowed to.");
/// let mock = MockSessions::new("claude").turn(script);
///
/// let policy = PermissionPolicy::decide(|_| PermissionAnswer::deny("not here"));
/// let session = mock.open(SessionOptions::default().permissions(policy))?;
/// let result = session.send(Turn::new("Clean up")).await;
///
/// assert_eq!(result.answer(), Some("I was not allowed to."));
/// assert_eq!(result.permission_denials[0].reason.as_deref(), Some("not here"));
/// assert_eq!(mock.turns()[0].params.prompt, "Clean up");
/// assert_eq!(mock.answers().len(), 1);
/// # Ok::<(), teamster_core::AgentError>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct MockSessions {
    runtime: MockRuntime,
    capabilities: SessionCapabilities,
    answers: Arc<Mutex<Vec<(PermissionRequest, PermissionAnswer)>>>,
}

impl MockSessions {
    /// Creates a runtime with this name whose sessions have all capabilities except unasked turns.
    pub fn new(id: impl Into<String>) -> Self {
        let mut capabilities = SessionCapabilities::none();
        capabilities.interrupt = true;
        capabilities.clear = true;
        capabilities.set_model = true;
        capabilities.set_permission = true;
        capabilities.permissions = true;
        capabilities.denial_reason = true;
        capabilities.changed_input = true;
        capabilities.images = true;
        Self {
            runtime: MockRuntime::new(id),
            capabilities,
            answers: Arc::default(),
        }
    }

    /// Adds a script for one more turn.
    #[must_use]
    pub fn turn(self, script: Script) -> Self {
        self.runtime.add(script);
        self
    }

    /// Returns the runtime that plays the turns, for example to add scripts later.
    pub fn runtime(&self) -> &MockRuntime {
        &self.runtime
    }

    /// Returns the capabilities of the sessions, for changes. Earlier clones keep theirs.
    pub fn capabilities_mut(&mut self) -> &mut SessionCapabilities {
        &mut self.capabilities
    }

    /// Returns the turns that were started so far with their parameters, in the order of their start.
    pub fn turns(&self) -> Vec<Received> {
        self.runtime.runs()
    }

    /// Returns the permission requests so far and their answers.
    pub fn answers(&self) -> Vec<(PermissionRequest, PermissionAnswer)> {
        lock(&self.answers).clone()
    }

    /// Wraps a policy to record its answers.
    fn kept(&self, policy: PermissionPolicy) -> PermissionPolicy {
        let answers = self.answers.clone();
        PermissionPolicy::ask(move |request: PermissionRequest| {
            let (policy, answers) = (policy.clone(), answers.clone());
            async move {
                let answer = answer(&policy, request.clone()).await;
                lock(&answers).push((request, answer.clone()));
                answer
            }
        })
    }
}

impl AgentRuntime for MockSessions {
    fn id(&self) -> &str {
        self.runtime.id()
    }

    fn capabilities(&self) -> &Capabilities {
        self.runtime.capabilities()
    }

    fn execute(&self, params: ExecuteParams) -> EventStream {
        self.runtime.execute(params)
    }
}

impl SessionRuntime for MockSessions {
    fn session_capabilities(&self) -> &SessionCapabilities {
        &self.capabilities
    }

    fn open(&self, options: SessionOptions) -> Result<Box<dyn AgentSession>, AgentError> {
        let policy = self.kept(options.permissions.clone());
        Ok(Box::new(MockSession {
            sessions: self.clone(),
            policy,
            shared: Arc::new(Shared {
                params: Mutex::new(options.params),
                playing: Mutex::default(),
                begun: AtomicBool::new(false),
                turns: TurnLock::new(()),
            }),
        }))
    }
}

teamster_core::debug_fields!(MockSessions { runtime });

struct MockSession {
    sessions: MockSessions,
    policy: PermissionPolicy,
    shared: Arc<Shared>,
}

struct Shared {
    /// Parameters of all turns, with the session once it is known.
    params: Mutex<ExecuteParams>,
    /// Handle that stops the current turn.
    playing: Mutex<Option<AbortHandle>>,
    begun: AtomicBool,
    /// Allows one turn at a time.
    turns: TurnLock<()>,
}

#[async_trait::async_trait]
impl AgentSession for MockSession {
    fn provider(&self) -> &str {
        self.sessions.id()
    }

    fn id(&self) -> Option<Id> {
        let params = lock(&self.shared.params);
        params.session_id.as_deref().map(Id::from)
    }

    fn capabilities(&self) -> &SessionCapabilities {
        &self.sessions.capabilities
    }

    fn send(&self, turn: Turn) -> EventStream {
        let abort = AbortHandle::new(&turn.cancel);
        let order = abort.clone();
        let shared = self.shared.clone();
        let (runtime, policy) = (self.sessions.runtime.clone(), self.policy.clone());
        let events = async_stream::stream! {
            let _turn = shared.turns.lock().await;
            let mut params = lock(&shared.params).clone();
            params.prompt = turn.prompt;
            params.images = turn.images;
            params.timeouts = turn.timeouts.or(params.timeouts);
            params.cancel = order.token();
            *lock(&shared.playing) = Some(order);
            shared.begun.store(true, Ordering::SeqCst);
            let mut events = runtime.play(params, policy);
            while let Some(entry) = events.next_entry().await {
                match &entry.event {
                    AgentEvent::SessionStarted(session) => {
                        lock(&shared.params).session_id = Some(session.session_id.to_string());
                    }
                    // Cleared before the caller gets the event: then the session is idle.
                    AgentEvent::Done(_) => *lock(&shared.playing) = None,
                    _ => {}
                }
                yield entry;
            }
        };
        EventStream::new(events, abort)
    }

    fn interrupt(&self) {
        if let Some(playing) = &*lock(&self.shared.playing) {
            playing.abort();
        }
    }

    async fn steer(&self, _text: String) -> Result<(), AgentError> {
        let error = AgentError::invalid_params("a session of the mock runtime cannot be steered");
        Err(error)
    }

    async fn clear(&self) -> Result<(), AgentError> {
        let _turn = self.shared.turns.lock().await;
        lock(&self.shared.params).session_id = None;
        Ok(())
    }

    async fn set_model(&self, model: String) -> Result<(), AgentError> {
        lock(&self.shared.params).model = Some(model);
        Ok(())
    }

    async fn set_permission(&self, mode: PermissionMode) -> Result<(), AgentError> {
        lock(&self.shared.params).permission = mode;
        Ok(())
    }

    fn unasked(&self) -> Option<EventStream> {
        None
    }

    async fn close(&self) {
        self.interrupt();
        let _turn = self.shared.turns.lock().await;
        self.shared.begun.store(false, Ordering::SeqCst);
    }

    fn is_live(&self) -> bool {
        self.shared.begun.load(Ordering::SeqCst) && lock(&self.shared.playing).is_none()
    }
}
