//! Live sessions: one process for many turns.

mod permission;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

pub use permission::{
    AskPermission, PermissionAnswer, PermissionPolicy, PermissionRequest, ToolStage,
};

use crate::setters::setters;
use crate::{
    AgentError, AgentRuntime, EventStream, ExecuteParams, Id, Image, Offers, PermissionMode,
    Timeouts,
};

/// The future returned by session methods.
pub type SessionFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A runtime that supports live sessions.
pub trait SessionRuntime: AgentRuntime {
    /// Returns the capabilities of its sessions.
    fn session_capabilities(&self) -> &SessionCapabilities;

    /// Opens a session. The parameters apply to all of its turns. Their prompt is ignored, and images belong to a
    /// [`Turn`].
    ///
    /// Nothing is started before the first turn. An error of the start is an event of that turn.
    ///
    /// # Errors
    ///
    /// Fails if sessions of this provider do not support a parameter.
    fn open(&self, options: SessionOptions) -> Result<Box<dyn AgentSession>, AgentError>;

    /// Returns what a session with these options would offer, as its CLI reports before a session begins: without a request to a
    /// model, and without a session that stays. `None` if the CLI cannot be asked like that, which is the default. When this
    /// returns, the process that was asked has ended; dropping the future ends it.
    fn offers(
        &self,
        options: SessionOptions,
    ) -> SessionFuture<'_, Result<Option<Offers>, AgentError>> {
        let _ = options;
        Box::pin(std::future::ready(Ok(None)))
    }
}

impl<R: SessionRuntime + ?Sized> SessionRuntime for Arc<R> {
    fn session_capabilities(&self) -> &SessionCapabilities {
        (**self).session_capabilities()
    }

    fn open(&self, options: SessionOptions) -> Result<Box<dyn AgentSession>, AgentError> {
        (**self).open(options)
    }

    fn offers(
        &self,
        options: SessionOptions,
    ) -> SessionFuture<'_, Result<Option<Offers>, AgentError>> {
        (**self).offers(options)
    }
}

/// A live session: a conversation whose process is kept between turns.
///
/// Turns run one after another, in the order in which their streams are first polled. Each has a stream of its
/// own with the grammar of any run and one `done`, whose figures are those of that turn alone.
///
/// If the process ends, during a turn or between turns, the next turn starts it again and resumes the session.
/// Dropping the session ends the process after the last of its streams is dropped.
#[async_trait::async_trait]
pub trait AgentSession: Send + Sync {
    /// Returns the provider's name, such as `claude`.
    fn provider(&self) -> &str;

    /// Returns the session's id, or `None` until it is known. It changes with [`clear`](Self::clear).
    fn id(&self) -> Option<Id>;

    /// Returns the capabilities of the session.
    fn capabilities(&self) -> &SessionCapabilities;

    /// Starts a turn when the returned stream is polled. Aborting or dropping the stream interrupts the turn. If the
    /// CLI does not support that, or does not react in time, its process is ended.
    fn send(&self, turn: Turn) -> EventStream;

    /// Interrupts the turn in progress, which then ends as aborted. Does nothing if there is none.
    fn interrupt(&self);

    /// Sends more input to the agent during a turn.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorCode::NoTurn`](crate::ErrorCode::NoTurn) if no turn is in progress, and if the session does
    /// not support it ([`SessionCapabilities::steer`]).
    async fn steer(&self, text: String) -> Result<(), AgentError>;

    /// Starts a new session in the same process, with an empty context and a new id. Waits for the turn in progress.
    ///
    /// # Errors
    ///
    /// Fails if the session does not support it ([`SessionCapabilities::clear`]), or if the CLI reports an error.
    async fn clear(&self) -> Result<(), AgentError>;

    /// Changes the model, in the CLI's own names. Takes effect at the next turn, or at once for some CLIs.
    ///
    /// # Errors
    ///
    /// Fails if the session does not support it ([`SessionCapabilities::set_model`]), or if the CLI reports an error.
    async fn set_model(&self, model: String) -> Result<(), AgentError>;

    /// Changes the permission mode. Takes effect at the next turn, or at once for some CLIs.
    ///
    /// # Errors
    ///
    /// Fails if the session does not support it ([`SessionCapabilities::set_permission`]), or if the CLI reports an
    /// error.
    async fn set_permission(&self, mode: PermissionMode) -> Result<(), AgentError>;

    /// Returns the oldest unasked turn that was not taken yet, such as one about background work that has ended.
    /// Only the last few are kept.
    fn unasked(&self) -> Option<EventStream>;

    /// Waits until [`unasked`](Self::unasked) may return a turn, for one caller at a time. Cancel-safe. A session with
    /// [`SessionCapabilities::unasked`] implements it; the default waits forever.
    async fn unasked_ready(&self) {
        std::future::pending::<()>().await;
    }

    /// Ends the process gracefully and waits for its end. Aborts the turn in progress. Another turn would start the
    /// process again.
    async fn close(&self);

    /// Ends the process if it waits for a turn. A turn that was sent before is not aborted.
    async fn close_if_idle(&self) {
        if self.is_live() {
            self.close().await;
        }
    }

    /// Returns whether the process runs and waits for a turn.
    fn is_live(&self) -> bool;
}

/// Options for opening a session.
///
/// With the feature `config`, they can be deserialized, with names in camelCase; `permissions` is then `"deny"` or
/// `"allow"`.
///
/// ```
/// # #[cfg(feature = "config")] {
/// # use teamster_core::SessionOptions;
/// let json = r#"{"params": {"model": "sonnet"}, "permissions": "allow", "idle": "5m"}"#;
/// let options: SessionOptions = serde_json::from_str(json)?;
/// assert_eq!(options.params.model.as_deref(), Some("sonnet"));
/// # }
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[cfg_attr(
    feature = "config",
    derive(serde::Deserialize),
    serde(default, rename_all = "camelCase", deny_unknown_fields)
)]
#[non_exhaustive]
pub struct SessionOptions {
    /// Parameters of all turns; with `session_id`, that session is resumed.
    pub params: ExecuteParams,
    /// Policy for permission requests of the CLI.
    pub permissions: PermissionPolicy,
    /// Asks the policy before each tool runs and after it, also about tools that need no permission
    /// ([`PermissionRequest::stage`]).
    pub tool_hooks: bool,
    /// Time without a turn after which the process ends. The next turn starts it again and resumes the session.
    #[cfg_attr(feature = "config", serde(with = "humantime_serde"))]
    pub idle: Option<Duration>,
    /// True if an earlier process of this session began the session to resume, with the parameters that only a new
    /// session takes. Set by the engine.
    #[cfg_attr(feature = "config", serde(skip))]
    pub restarted: bool,
    /// Cost of the session in USD after the last turn of the earlier process, if the CLI reports it. Set by the engine.
    #[cfg_attr(feature = "config", serde(skip))]
    pub session_cost_usd: Option<f64>,
    /// True if the session is a run: it gets one turn. Only then it can be recorded.
    #[cfg_attr(feature = "config", serde(skip))]
    pub one_turn: bool,
}

setters! {
    SessionOptions {
        set params: ExecuteParams,
        set permissions: PermissionPolicy,
        set tool_hooks: bool,
        some idle: Duration,
        set restarted: bool,
        some session_cost_usd: f64,
        set one_turn: bool,
    }
}

impl SessionOptions {
    /// Creates the options of a session with these parameters, which denies every permission request.
    pub fn new(params: ExecuteParams) -> Self {
        Self {
            params,
            ..Self::default()
        }
    }

    /// Checks [`tool_hooks`](Self::tool_hooks) for sessions of this agent with these capabilities. Implementations of
    /// [`SessionRuntime::open`] call it.
    ///
    /// # Errors
    ///
    /// Fails if the agent does not support them, or if the policy has no function to ask.
    pub fn check_tool_hooks(
        &self,
        agent: &str,
        can: &SessionCapabilities,
    ) -> Result<(), AgentError> {
        let problem = match &self.permissions {
            _ if !self.tool_hooks => return Ok(()),
            _ if !can.tool_hooks => format!("{agent} does not ask before and after each tool"),
            PermissionPolicy::Ask(_) => return Ok(()),
            _ => "set `permissions` to a function, which is asked".to_owned(),
        };
        Err(AgentError::refused("tool_hooks", problem))
    }
}

/// One turn of a session.
///
/// ```
/// use teamster_core::Turn;
///
/// let turn = Turn::new("And now the tests");
/// assert_eq!(turn.prompt, "And now the tests");
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Turn {
    /// The prompt.
    pub prompt: String,
    /// Images sent with the prompt.
    pub images: Vec<Image>,
    /// Time limits of this turn; unset ones default to the session's.
    pub timeouts: Timeouts,
    /// Cancelling this interrupts the turn.
    pub cancel: CancellationToken,
}

setters! {
    Turn {
        into prompt: String,
        into images: Vec<Image>,
        set timeouts: Timeouts,
        set cancel: CancellationToken,
    }
}

impl Turn {
    /// Creates a turn with this prompt.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self {
            prompt: prompt.into(),
            ..Self::default()
        }
    }
}

/// Session features beyond turns. Requesting a missing one is an
/// [`InvalidParams`](crate::ErrorCode::InvalidParams) error. The exception is aborting a turn, which is always
/// possible: without `interrupt`, the process is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionCapabilities {
    /// A turn can be interrupted and the process continues (`interrupt`).
    pub interrupt: bool,
    /// Additions to a turn while the agent works on it (`steer`).
    ///
    /// [`AgentSession::steer`].
    pub steer: bool,
    /// A new session in the same process (`clear`).
    ///
    /// [`AgentSession::clear`].
    pub clear: bool,
    /// Another model (`set_model`).
    ///
    /// [`AgentSession::set_model`].
    pub set_model: bool,
    /// Another permission mode (`set_permission`).
    ///
    /// [`AgentSession::set_permission`].
    pub set_permission: bool,
    /// The CLI asks whether a tool may be used (`PermissionPolicy`).
    pub permissions: bool,
    /// The reason of a denial reaches the model (`PermissionAnswer::Deny`).
    pub denial_reason: bool,
    /// A tool can be allowed with another input (`PermissionAnswer::AllowWith`).
    ///
    /// Without it, such an answer denies.
    /// [`PermissionRequest::takes_input`] reports it for each request.
    pub changed_input: bool,
    /// The CLI asks before and after each tool (`SessionOptions::tool_hooks`).
    pub tool_hooks: bool,
    /// Images with a turn (`Turn::images`).
    pub images: bool,
    /// Turns that the CLI begins by itself (`unasked`).
    pub unasked: bool,
}

impl SessionCapabilities {
    /// Creates the capabilities of a session that only supports turns.
    pub const fn none() -> Self {
        Self {
            interrupt: false,
            steer: false,
            clear: false,
            set_model: false,
            set_permission: false,
            permissions: false,
            denial_reason: false,
            changed_input: false,
            tool_hooks: false,
            images: false,
            unasked: false,
        }
    }
}
