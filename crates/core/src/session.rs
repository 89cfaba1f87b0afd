//! Live sessions: one process, many turns.

mod permission;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use derive_setters::Setters;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

pub use permission::{AskPermission, PermissionAnswer, PermissionPolicy, PermissionRequest};

use crate::{
    AgentError, AgentRuntime, EventStream, ExecuteParams, Id, Image, PermissionMode, Timeouts,
};

/// The future returned by session methods.
pub type SessionFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A runtime whose CLI can be kept for many turns.
pub trait SessionRuntime: AgentRuntime {
    /// Capabilities of its sessions.
    fn session_capabilities(&self) -> &SessionCapabilities;

    /// Opens a session. The parameters hold for all of its turns; their prompt and images do not count.
    ///
    /// Nothing is started before the first turn, and an error of the start is an event of that turn.
    /// A parameter that sessions of this provider do not support is an error here.
    fn open(&self, options: SessionOptions) -> Result<Box<dyn AgentSession>, AgentError>;
}

impl<R: SessionRuntime + ?Sized> SessionRuntime for Arc<R> {
    fn session_capabilities(&self) -> &SessionCapabilities {
        (**self).session_capabilities()
    }

    fn open(&self, options: SessionOptions) -> Result<Box<dyn AgentSession>, AgentError> {
        (**self).open(options)
    }
}

/// A conversation with a process that stays.
///
/// Turns are played one after another, in the order in which their streams are first polled: a second
/// one waits for the end of the first. Each has a stream of its own with the grammar of any run and one
/// `done`, whose figures are those of the turn alone.
///
/// If the process ends, in a turn or between two, the next turn starts it again and resumes the
/// session. Dropping the session ends the process once the last of its streams is gone.
pub trait AgentSession: Send + Sync {
    /// The provider's name, such as `claude`.
    fn provider(&self) -> &str;

    /// The session's id, as soon as it is known. It changes with [`clear`](Self::clear).
    fn id(&self) -> Option<Id>;

    /// Capabilities of the session.
    fn capabilities(&self) -> &SessionCapabilities;

    /// One turn. Nothing happens before the stream is polled. To abort or drop the stream interrupts
    /// the turn; where the CLI cannot do that, or does not obey in time, its process is ended.
    fn send(&self, turn: Turn) -> EventStream;

    /// Interrupts the turn that is being played, which then ends as aborted. Without one, nothing
    /// happens.
    fn interrupt(&self);

    /// Sends more input to the agent during a turn.
    fn steer(&self, text: String) -> SessionFuture<'_, Result<(), AgentError>>;

    /// Starts a new session in the same process, with an empty context and a new id. Waits for the turn that is being played.
    fn clear(&self) -> SessionFuture<'_, Result<(), AgentError>>;

    /// Another model, in the CLI's own names: from the next turn on at the latest, for some CLIs at once.
    fn set_model(&self, model: String) -> SessionFuture<'_, Result<(), AgentError>>;

    /// Another permission mode: from the next turn on at the latest, for some CLIs at once.
    fn set_permission(&self, mode: PermissionMode) -> SessionFuture<'_, Result<(), AgentError>>;

    /// The oldest turn that the CLI began by itself and that was not taken yet, such as one about work
    /// in the background that has ended. Only the last few are kept.
    fn unasked(&self) -> Option<EventStream>;

    /// Waits until [`unasked`](Self::unasked) may have a turn, for one caller at a time. Cancel-safe. A session with
    /// [`SessionCapabilities::unasked`] implements it; the default waits forever.
    fn unasked_ready(&self) -> SessionFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    /// Ends the process, in the way that lets the CLI clean up, and waits for that. A turn that is being
    /// played is aborted. Another turn would start the process again.
    fn close(&self) -> SessionFuture<'_, ()>;

    /// Ends the process if it waits for a turn. A turn that was sent before is not cut short.
    fn close_if_idle(&self) -> SessionFuture<'_, ()> {
        Box::pin(async move {
            if self.is_live() {
                self.close().await;
            }
        })
    }

    /// Whether the process is there and waits for a turn.
    fn is_live(&self) -> bool;
}

/// Options for opening a session.
///
/// They deserialize, with names in camelCase; `permissions` is `"deny"` or `"allow"` then.
///
/// ```
/// # use teamster_core::SessionOptions;
/// let json = r#"{"params": {"model": "sonnet"}, "permissions": "allow", "idle": "5m"}"#;
/// let options: SessionOptions = serde_json::from_str(json)?;
/// assert_eq!(options.params.model.as_deref(), Some("sonnet"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Deserialize, Setters)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[setters(strip_option)]
#[non_exhaustive]
pub struct SessionOptions {
    /// Parameters of all turns; with `session_id`, that session is resumed.
    pub params: ExecuteParams,
    /// How permission requests of the CLI are answered.
    pub permissions: PermissionPolicy,
    /// End the process when no turn was played for this long. The next turn starts it again and resumes
    /// the session.
    #[serde(with = "humantime_serde")]
    pub idle: Option<Duration>,
    /// The session that the parameters resume was begun by an earlier process of this very one, with what
    /// only a new session takes. The engine sets it.
    #[serde(skip)]
    pub restarted: bool,
    /// Cost of the session in USD after the last turn of the earlier process, if the CLI
    /// reports it. The engine sets it.
    #[serde(skip)]
    pub session_cost_usd: Option<f64>,
    /// The session is a run: it gets one turn. Only then it can be recorded.
    #[serde(skip)]
    pub one_turn: bool,
}

impl SessionOptions {
    /// A session with these parameters, which denies every permission request.
    pub fn new(params: ExecuteParams) -> Self {
        Self {
            params,
            permissions: PermissionPolicy::default(),
            idle: None,
            restarted: false,
            session_cost_usd: None,
            one_turn: false,
        }
    }
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self::new(ExecuteParams::new(""))
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
#[derive(Debug, Clone, Default, Setters)]
#[non_exhaustive]
pub struct Turn {
    /// The prompt.
    #[setters(into)]
    pub prompt: String,
    /// Images that go with it.
    #[setters(into)]
    pub images: Vec<Image>,
    /// Limits of time for this turn; unset ones are the session's.
    pub timeouts: Timeouts,
    /// Cancelling this interrupts the turn.
    pub cancel: CancellationToken,
}

impl Turn {
    /// A turn of this prompt.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self {
            prompt: prompt.into(),
            ..Self::default()
        }
    }
}

/// Session features beyond turns. Requesting one that is missing is an
/// [`InvalidParams`](crate::ErrorCode::InvalidParams) error, except that a turn can always be aborted:
/// its process is ended then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionCapabilities {
    /// A turn can be interrupted without ending the process.
    pub interrupt: bool,
    /// [`AgentSession::steer`].
    pub steer: bool,
    /// [`AgentSession::clear`].
    pub clear: bool,
    /// [`AgentSession::set_model`].
    pub set_model: bool,
    /// [`AgentSession::set_permission`].
    pub set_permission: bool,
    /// The CLI asks whether a tool may be used, and [`PermissionPolicy`] answers.
    pub permissions: bool,
    /// The reason of a [`PermissionAnswer::Deny`] reaches the model.
    pub denial_reason: bool,
    /// [`PermissionAnswer::AllowWith`] for a tool. Without it, such an answer denies; each
    /// [`PermissionRequest::takes_input`] reports it too.
    pub changed_input: bool,
    /// [`Turn::images`].
    pub images: bool,
    /// The CLI can begin turns by itself ([`AgentSession::unasked`]).
    pub unasked: bool,
}

impl SessionCapabilities {
    /// A session that can do nothing but turns.
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
            images: false,
            unasked: false,
        }
    }
}
