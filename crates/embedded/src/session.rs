//! A live session: one conversation, many turns.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use teamster_core::provider::RunAssembler;
use teamster_core::sync::lock;
use teamster_core::time::millis;
use teamster_core::{
    AbortHandle, AgentError, AgentSession, Capabilities, EventStream, Id, PermissionMode,
    PermissionPolicy, SessionCapabilities, SessionOptions, Turn,
};
use tokio::sync::{Mutex as AsyncMutex, mpsc};

use crate::config::EmbeddedConfig;
use crate::context::Context;
use crate::conversation::Input;
use crate::emit::Emitter;
use crate::run::{self, Steering};
use crate::settings::Settings;
use crate::{ID, SESSION_CAPABILITIES};

/// Opens a session. It has no effect before the first turn.
pub(crate) fn open(
    config: Arc<EmbeddedConfig>,
    can: Arc<Capabilities>,
    mut options: SessionOptions,
) -> Result<Box<dyn AgentSession>, AgentError> {
    if !options.params.images.is_empty() {
        return Err(AgentError::refused("images", "pass images with each turn"));
    }
    if options.params.output_schema.is_some() {
        return Err(AgentError::refused(
            "output_schema",
            "set it per run, not for a session",
        ));
    }
    options.params.prompt.clear();
    let mut probe = options.params.clone();
    "prompt".clone_into(&mut probe.prompt);
    Settings::new(&config, &can, &probe)?;
    let id = options.params.session_id.as_deref().map(Id::from);
    Ok(Box::new(EmbeddedSession(Arc::new(Inner {
        config,
        can,
        conversation: AsyncMutex::new(None),
        state: Mutex::new(State {
            options,
            id,
            current: None,
            model_changed: false,
        }),
        steering: Steering::default(),
        is_open: AtomicBool::new(false),
    }))))
}

struct EmbeddedSession(Arc<Inner>);

struct Inner {
    config: Arc<EmbeddedConfig>,
    can: Arc<Capabilities>,
    /// The conversation, locked during a turn.
    conversation: AsyncMutex<Option<Context>>,
    state: Mutex<State>,
    steering: Steering,
    /// True once a turn has opened the conversation.
    is_open: AtomicBool,
}

struct State {
    options: SessionOptions,
    id: Option<Id>,
    /// Aborts the active turn.
    current: Option<AbortHandle>,
    model_changed: bool,
}

impl Inner {
    /// Opens or resumes the conversation.
    fn conversation(&self) -> Result<Context, AgentError> {
        let (mut params, id) = {
            let state = lock(&self.state);
            (state.options.params.clone(), state.id.clone())
        };
        // A placeholder: each turn has its own prompt.
        "prompt".clone_into(&mut params.prompt);
        if id.as_deref() != params.session_id.as_deref() {
            params.fork = false;
            params.new_session_id = None;
        }
        params.session_id = id.as_deref().map(str::to_owned);
        Context::open(self.config.clone(), &self.can, params)
    }

    /// Runs a turn and sends its events to `to`.
    async fn run_turn(
        self: Arc<Self>,
        turn: Turn,
        abort: AbortHandle,
        to: mpsc::Sender<Vec<teamster_core::LogEntry>>,
    ) {
        let begun = Instant::now();
        let mut conversation = tokio::select! {
            biased;
            () = abort.aborted() => {
                let _ = to.send(run::refused(RunAssembler::aborted_error())).await;
                return;
            }
            conversation = self.conversation.lock() => conversation,
        };
        lock(&self.steering).clear();
        lock(&self.state).current = Some(abort.clone());
        let prepared = self.begin(&mut conversation, &turn, &abort).await;
        let (mut context, images, policy) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                lock(&self.state).current = None;
                drop(conversation);
                let _ = to.send(run::refused(error)).await;
                return;
            }
        };
        self.is_open.store(true, Ordering::SeqCst);
        let mut emit = Emitter::new(to, context.settings.secrets.clone());
        let turn = run::Turn {
            prompt: turn.prompt,
            images,
            limits: context.settings.limits(turn.timeouts),
            abort: &abort,
            policy: &policy,
            steering: &self.steering,
        };
        let end = turn.run(&mut context, &mut emit).await;
        lock(&self.state).current = None;
        *conversation = Some(context);
        // Unlock the session before the end is emitted, so that it accepts the next turn.
        drop(conversation);
        let (exit, summary) = end.into_result();
        emit.finish(exit, summary, millis(begun.elapsed())).await;
    }

    /// Prepares a turn. Takes the conversation, or opens it, unless the turn is refused.
    async fn begin(
        &self,
        conversation: &mut Option<Context>,
        turn: &Turn,
        abort: &AbortHandle,
    ) -> Result<(Context, Vec<Input>, PermissionPolicy), AgentError> {
        let images = self.images(turn, abort).await?;
        let mut context = match conversation.take() {
            Some(context) => context,
            None => self.conversation()?,
        };
        match self.apply_changes(&mut context) {
            Ok(policy) => Ok((context, images, policy)),
            Err(error) => {
                *conversation = Some(context);
                Err(error)
            }
        }
    }

    /// Applies changes since the last turn: permission mode and model. Returns the permission policy.
    fn apply_changes(&self, context: &mut Context) -> Result<PermissionPolicy, AgentError> {
        let mut state = lock(&self.state);
        state.id = Some(context.file.id().into());
        context.mode = state.options.params.permission;
        let model = state.options.params.model.clone();
        if let (true, Some(model)) = (std::mem::take(&mut state.model_changed), model) {
            context.set_model(&model)?;
        }
        Ok(state.options.permissions.clone())
    }

    async fn images(&self, turn: &Turn, abort: &AbortHandle) -> Result<Vec<Input>, AgentError> {
        if turn.prompt.trim().is_empty() && turn.images.is_empty() {
            return Err(AgentError::refused("prompt", "it is empty"));
        }
        let (directory, timeouts) = {
            let params = &lock(&self.state).options.params;
            (params.working_directory.clone(), params.timeouts)
        };
        let timeouts = turn.timeouts.or(timeouts).or(self.config.process.timeouts);
        run::read_images(turn.images.clone(), directory.as_deref(), timeouts, abort).await
    }

    fn is_in_turn(&self) -> bool {
        lock(&self.state).current.is_some()
    }
}

#[async_trait::async_trait]
impl AgentSession for EmbeddedSession {
    fn provider(&self) -> &str {
        ID
    }

    fn id(&self) -> Option<Id> {
        lock(&self.0.state).id.clone()
    }

    fn capabilities(&self) -> &SessionCapabilities {
        &SESSION_CAPABILITIES
    }

    fn send(&self, turn: Turn) -> EventStream {
        let abort = AbortHandle::new(&turn.cancel);
        let handle = abort.clone();
        let inner = self.0.clone();
        run::streamed(abort, move |to| inner.run_turn(turn, handle, to))
    }

    fn interrupt(&self) {
        if let Some(current) = &lock(&self.0.state).current {
            current.abort();
        }
    }

    async fn steer(&self, text: String) -> Result<(), AgentError> {
        if !self.0.is_in_turn() {
            return Err(AgentError::no_turn());
        }
        lock(&self.0.steering).push(text);
        Ok(())
    }

    async fn clear(&self) -> Result<(), AgentError> {
        let mut conversation = self.0.conversation.lock().await;
        if let Some(mut context) = conversation.take() {
            context.end().await;
        }
        let mut state = lock(&self.0.state);
        state.id = None;
        let params = &mut state.options.params;
        params.session_id = None;
        params.new_session_id = None;
        params.fork = false;
        Ok(())
    }

    async fn set_model(&self, model: String) -> Result<(), AgentError> {
        let mut params = lock(&self.0.state).options.params.clone();
        params.model = Some(model);
        "prompt".clone_into(&mut params.prompt);
        Settings::new(&self.0.config, &self.0.can, &params)?;
        let mut state = lock(&self.0.state);
        state.options.params.model = params.model;
        state.model_changed = true;
        Ok(())
    }

    async fn set_permission(&self, mode: PermissionMode) -> Result<(), AgentError> {
        if !crate::CAPABILITIES.permission_modes.contains(&mode) {
            let problem = format!("the embedded agent has no mode {mode}");
            return Err(AgentError::refused("permission", problem));
        }
        lock(&self.0.state).options.params.permission = mode;
        Ok(())
    }

    fn unasked(&self) -> Option<EventStream> {
        None
    }

    async fn close(&self) {
        self.interrupt();
        let mut conversation = self.0.conversation.lock().await;
        if let Some(mut context) = conversation.take() {
            context.end().await;
        }
        self.0.is_open.store(false, Ordering::SeqCst);
    }

    fn is_live(&self) -> bool {
        self.0.is_open.load(Ordering::SeqCst) && !self.0.is_in_turn()
    }
}
