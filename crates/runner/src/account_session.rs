//! Session of an agent that has several accounts: one is in use, and the next one continues its conversation.

use std::sync::{Arc, Mutex};

use teamster_core::sync::lock;
use teamster_core::{
    AbortHandle, AgentError, AgentEvent, AgentRuntime, AgentSession, Capabilities, ErrorCode,
    ErrorKind, EventStream, ExecuteParams, Id, LogEntry, NoticeLevel, NoticeSource, PermissionMode,
    SessionCapabilities, SessionOptions, SessionRuntime, Turn,
};
use teamster_orchestrator::SessionTurns;
use tokio::task::spawn_blocking;

/// An account of a session's agent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionAccount {
    /// Its name.
    pub name: String,
    /// The options of a session with it.
    pub options: SessionOptions,
}

impl SessionAccount {
    /// Creates an account with this name.
    pub fn new(name: impl Into<String>, options: SessionOptions) -> Self {
        Self {
            name: name.into(),
            options,
        }
    }
}

/// Brings the conversation with this id to an account, by its index. Returns whether the account has it then. It is called
/// on a thread that may block.
pub type BringConversation = Arc<dyn Fn(&str, usize) -> Result<bool, AgentError> + Send + Sync>;

/// Session with the account in use.
pub(crate) struct AccountSession {
    runtime: Arc<dyn SessionRuntime>,
    /// Never empty.
    accounts: Vec<SessionAccount>,
    bring: BringConversation,
    state: Mutex<State>,
}

struct State {
    /// Index of the account in use.
    current: usize,
    session: Arc<dyn AgentSession>,
    /// The account in use has the conversation that the session resumes.
    is_ready: bool,
    /// A tool was used: what a turn continues is there, so no account may start over.
    has_used_tools: bool,
    /// Settings that were changed since the session was opened.
    model: Option<String>,
    permission: Option<PermissionMode>,
}

impl AccountSession {
    /// Opens the session with the first of these accounts.
    pub(crate) fn open(
        runtime: Arc<dyn SessionRuntime>,
        accounts: Vec<SessionAccount>,
        bring: BringConversation,
    ) -> Result<Self, AgentError> {
        let Some(first) = accounts.first() else {
            return Err(AgentError::refused("accounts", "at least one is needed"));
        };
        let session = runtime.open(first.options.clone())?.into();
        for other in &accounts[1..] {
            // Each is opened again when it takes over, with the conversation.
            drop(runtime.open(other.options.clone())?);
        }
        Ok(Self {
            runtime,
            accounts,
            bring,
            state: Mutex::new(State {
                current: 0,
                session,
                is_ready: false,
                has_used_tools: false,
                model: None,
                permission: None,
            }),
        })
    }

    /// Returns the indexes of the accounts in the order in which a turn tries them: from the one in use on.
    pub(crate) fn order(&self) -> impl Iterator<Item = usize> + use<> {
        let (current, count) = (lock(&self.state).current, self.accounts.len());
        (0..count).map(move |offset| (current + offset) % count)
    }

    pub(crate) fn account(&self, index: usize) -> &SessionAccount {
        &self.accounts[index]
    }

    fn session(&self) -> Arc<dyn AgentSession> {
        lock(&self.state).session.clone()
    }

    /// Prepares a turn with this account. If it is not the one in use, it takes over the conversation, and the event that
    /// reports this is returned. Without a conversation to take over it begins one, which fails if it `must_continue` or a tool
    /// was used.
    async fn change_to(
        &self,
        index: usize,
        must_continue: bool,
    ) -> Result<Option<AgentEvent>, AgentError> {
        let (current, session, is_ready, must_continue) = {
            let state = lock(&self.state);
            let must_continue = must_continue || state.has_used_tools;
            (
                state.current,
                state.session.clone(),
                state.is_ready,
                must_continue,
            )
        };
        let id = session.id();
        if index == current {
            if let Some(id) = id.filter(|_| !is_ready) {
                // Another account may have had it last. The CLI reports a session that is missing.
                self.bring(id, index).await?;
            }
            lock(&self.state).is_ready = true;
            return Ok(None);
        }
        // It writes to the files of the conversation until its end.
        session.close().await;
        let next = &self.accounts[index];
        let mut options = next.options.clone();
        let is_found = match &id {
            Some(id) => self.bring(id.clone(), index).await?,
            None => false,
        };
        let params = &mut options.params;
        // Before the fork is made, the id is that of its source.
        let is_fork = params.fork && params.session_id.as_deref() == id.as_deref();
        if is_found && !is_fork {
            params.session_id = id.as_deref().map(str::to_owned);
            params.new_session_id = None;
            params.fork = false;
            options.restarted = true;
        }
        if must_continue && !is_found {
            let message = format!(
                "the conversation cannot go on with account {}: its session was not found in the files of account {}",
                next.name, self.accounts[current].name
            );
            let kind = ErrorKind::SessionNotFound;
            return Err(AgentError::new(ErrorCode::Io, kind, message));
        }
        let mut state = lock(&self.state);
        let params = &mut options.params;
        params.model = state.model.clone().or(params.model.take());
        params.permission = state.permission.unwrap_or(params.permission);
        state.session = self.runtime.open(options)?.into();
        state.current = index;
        state.is_ready = true;
        let what = if is_found {
            "continues the conversation"
        } else {
            "begins a new session"
        };
        let message = format!("account {} {what}", next.name);
        Ok(Some(AgentEvent::notice(
            NoticeLevel::Info,
            NoticeSource::Runtime,
            message,
        )))
    }

    /// Takes note of an event of a turn: a mode to which the CLI has changed by itself, such as from its plan mode, is that of
    /// the next account too.
    fn see(&self, event: &AgentEvent) {
        match event {
            AgentEvent::PermissionMode(change) => {
                lock(&self.state).permission = Some(change.mode);
            }
            AgentEvent::ToolUse(_) => lock(&self.state).has_used_tools = true,
            _ => {}
        }
    }

    async fn bring(&self, id: Id, index: usize) -> Result<bool, AgentError> {
        let bring = self.bring.clone();
        let brought = spawn_blocking(move || bring(&id, index)).await;
        brought.unwrap_or_else(|error| {
            let message = format!("the conversation could not be read: {error}");
            Err(AgentError::new(ErrorCode::Io, ErrorKind::Internal, message))
        })
    }
}

#[async_trait::async_trait]
impl AgentSession for AccountSession {
    fn provider(&self) -> &str {
        self.runtime.id()
    }

    fn id(&self) -> Option<Id> {
        self.session().id()
    }

    fn capabilities(&self) -> &SessionCapabilities {
        self.runtime.session_capabilities()
    }

    fn send(&self, turn: Turn) -> EventStream {
        self.session().send(turn)
    }

    fn interrupt(&self) {
        self.session().interrupt();
    }

    async fn steer(&self, text: String) -> Result<(), AgentError> {
        self.session().steer(text).await
    }

    async fn clear(&self) -> Result<(), AgentError> {
        self.session().clear().await
    }

    async fn set_model(&self, model: String) -> Result<(), AgentError> {
        self.session().set_model(model.clone()).await?;
        lock(&self.state).model = Some(model);
        Ok(())
    }

    async fn set_permission(&self, mode: PermissionMode) -> Result<(), AgentError> {
        self.session().set_permission(mode).await?;
        lock(&self.state).permission = Some(mode);
        Ok(())
    }

    fn unasked(&self) -> Option<EventStream> {
        self.session().unasked()
    }

    async fn unasked_ready(&self) {
        self.session().unasked_ready().await;
    }

    async fn close(&self) {
        self.session().close().await;
    }

    async fn close_if_idle(&self) {
        self.session().close_if_idle().await;
    }

    fn is_live(&self) -> bool {
        self.session().is_live()
    }
}

pub(crate) struct AccountTurn {
    session: Arc<AccountSession>,
    index: usize,
    must_continue: bool,
    turns: Arc<SessionTurns>,
}

impl AccountTurn {
    /// Creates the runtime of a turn of this session. `turns` are the turns of the session with any account.
    pub(crate) fn new(
        session: Arc<AccountSession>,
        index: usize,
        must_continue: bool,
        turns: SessionTurns,
    ) -> Self {
        Self {
            session,
            index,
            must_continue,
            turns: Arc::new(turns),
        }
    }
}

impl AgentRuntime for AccountTurn {
    fn id(&self) -> &str {
        self.turns.id()
    }

    fn capabilities(&self) -> &Capabilities {
        self.turns.capabilities()
    }

    fn execute(&self, mut params: ExecuteParams) -> EventStream {
        let abort = AbortHandle::new(&params.cancel);
        params.cancel = abort.token();
        let (session, turns) = (self.session.clone(), self.turns.clone());
        let (index, must_continue) = (self.index, self.must_continue);
        let stopped = abort.clone();
        let batches = async_stream::stream! {
            let mut events = match session.change_to(index, must_continue).await {
                Ok(notice) => {
                    if let Some(notice) = notice {
                        yield vec![LogEntry::from(notice)];
                    }
                    turns.execute(params)
                }
                Err(error) => EventStream::refused(error),
            };
            let turn = events.abort_handle();
            let mut is_killed = false;
            loop {
                let batch = tokio::select! {
                    biased;
                    () = stopped.killed(), if !is_killed => {
                        is_killed = true;
                        turn.kill();
                        continue;
                    }
                    batch = events.next_batch() => batch,
                };
                if batch.is_empty() {
                    return;
                }
                for entry in &batch {
                    session.see(&entry.event);
                }
                yield batch;
            }
        };
        EventStream::of_batches(batches, abort)
    }
}
