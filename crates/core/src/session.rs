//! Hot sessions: one process, many turns.

mod assemble;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use derive_setters::Setters;
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use assemble::SessionAssembler;

use crate::{
    AgentError, AgentRuntime, CliProvider, Decoder, EventStream, Events, ExecuteParams, Id, Image,
    Launch, PermissionMode, Timeouts, ToolKind,
};

/// What a call of a session gives, in time.
pub type SessionFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A runtime whose CLI can be kept for many turns.
pub trait SessionRuntime: AgentRuntime {
    /// What its sessions can do.
    fn session_capabilities(&self) -> &SessionCapabilities;

    /// Opens a session. The parameters hold for all of its turns; their prompt and images do not count.
    ///
    /// Nothing is started before the first turn, and whatever goes wrong then is an event of that turn.
    /// What a session of this provider cannot honour is an error here already.
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

    /// What the session can do.
    fn capabilities(&self) -> &SessionCapabilities;

    /// One turn. Nothing happens before the stream is polled. To abort or drop the stream interrupts
    /// the turn; where the CLI cannot do that, or does not obey in time, its process is ended.
    fn send(&self, turn: Turn) -> EventStream;

    /// Interrupts the turn that is being played, which then ends as aborted. Without one, nothing
    /// happens.
    fn interrupt(&self);

    /// Says something more to the agent in the turn that is being played.
    fn steer(&self, text: String) -> SessionFuture<'_, Result<(), AgentError>>;

    /// Begins anew, with the context empty and a new id. Waits for the turn that is being played.
    fn clear(&self) -> SessionFuture<'_, Result<(), AgentError>>;

    /// Another model, in the CLI's own names: from the next turn on at the latest, for some CLIs at once.
    fn set_model(&self, model: String) -> SessionFuture<'_, Result<(), AgentError>>;

    /// Another permission mode: from the next turn on at the latest, for some CLIs at once.
    fn set_permission(&self, mode: PermissionMode) -> SessionFuture<'_, Result<(), AgentError>>;

    /// The oldest turn that the CLI began by itself and that nobody has taken, such as one about work
    /// in the background that has ended. Only the last few are kept.
    fn unasked(&self) -> Option<EventStream>;

    /// Ends the process, in the way that lets the CLI clean up, and waits for that. A turn that is being
    /// played is aborted. Another turn would start the process again.
    fn close(&self) -> SessionFuture<'_, ()>;

    /// Ends the process if it waits for a turn. A turn that was sent before is not cut short.
    fn close_if_idle(&self) -> SessionFuture<'_, ()> {
        Box::pin(async move {
            if self.is_hot() {
                self.close().await;
            }
        })
    }

    /// Whether the process is there and waits for a turn.
    fn is_hot(&self) -> bool;
}

/// What a session is opened with.
#[derive(Debug, Clone, Setters)]
#[setters(strip_option)]
#[non_exhaustive]
pub struct SessionOptions {
    /// What holds for all of its turns: with `session_id`, that session goes on.
    pub params: ExecuteParams,
    /// Who answers when the CLI asks whether a tool may be used.
    pub permissions: PermissionPolicy,
    /// End the process when no turn was played for this long. The next turn starts it again and resumes
    /// the session.
    pub idle: Option<Duration>,
    /// The session that the parameters resume was begun by an earlier process of this very one, with what
    /// only a new session takes. The engine sets it.
    pub restarted: bool,
}

impl SessionOptions {
    /// A session with these parameters, in which nobody can be asked.
    pub fn new(params: ExecuteParams) -> Self {
        Self {
            params,
            permissions: PermissionPolicy::default(),
            idle: None,
            restarted: false,
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
    /// What the agent is asked.
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

/// What a session can do beyond turns. Where it cannot, asking for it is an
/// [`InvalidParams`](crate::ErrorCode::InvalidParams) error, except that a turn can always be aborted:
/// its process is ended then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionCapabilities {
    /// A turn can be interrupted and the process goes on.
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
    /// [`PermissionRequest::takes_input`] says so too.
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

/// Who answers when a CLI asks whether a tool may be used.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum PermissionPolicy {
    /// Nobody: what would have to be asked for is denied, as in a run.
    #[default]
    Deny,
    /// Everything is allowed that the CLI asks for.
    Allow,
    /// This answers. The turn waits as long as that takes, without a limit of time.
    Ask(Arc<AskPermission>),
}

/// A callback that answers a request for permission.
pub type AskPermission =
    dyn Fn(PermissionRequest) -> SessionFuture<'static, PermissionAnswer> + Send + Sync;

impl PermissionPolicy {
    /// Answers by this function, at once.
    ///
    /// ```
    /// use teamster_core::{PermissionAnswer, PermissionPolicy};
    ///
    /// let policy = PermissionPolicy::decide(|request| {
    ///     if request.kind.has_side_effects() {
    ///         PermissionAnswer::Deny(Some("only reading is allowed here".into()))
    ///     } else {
    ///         PermissionAnswer::Allow
    ///     }
    /// });
    /// # drop(policy);
    /// ```
    pub fn decide<F>(decide: F) -> Self
    where
        F: Fn(&PermissionRequest) -> PermissionAnswer + Send + Sync + 'static,
    {
        Self::ask(move |request| std::future::ready(decide(&request)))
    }

    /// Asks this function.
    pub fn ask<F, A>(ask: F) -> Self
    where
        F: Fn(PermissionRequest) -> A + Send + Sync + 'static,
        A: Future<Output = PermissionAnswer> + Send + 'static,
    {
        Self::Ask(Arc::new(move |request| Box::pin(ask(request))))
    }
}

impl fmt::Debug for PermissionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deny => "Deny",
            Self::Allow => "Allow",
            Self::Ask(_) => "Ask(..)",
        })
    }
}

/// The CLI asks whether a tool may be used, or an MCP server asks for input.
///
/// Without a policy that asks a caller, a server's question is declined.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// Which request this is, in this process.
    pub id: u64,
    /// The tool, in the CLI's own name.
    pub tool_name: String,
    /// The call of the tool, if the CLI says which.
    pub tool_id: Option<Id>,
    /// What kind of tool it is.
    pub kind: ToolKind,
    /// What the tool is to do.
    pub input: Value,
    /// What the CLI says about it, such as a title or a reason.
    pub message: Option<String>,
    /// The JSON Schema of the input that an MCP server asks the user for (`elicitation`). No tool waits
    /// for permission then; [`PermissionAnswer::AllowWith`] answers it.
    pub schema: Option<Value>,
    /// Whether [`PermissionAnswer::AllowWith`] can replace the tool's input, or answers the question.
    /// Where it is false, that answer denies.
    pub takes_input: bool,
}

impl PermissionRequest {
    /// A request for this tool.
    pub fn new(id: u64, tool_name: impl Into<String>, kind: ToolKind, input: Value) -> Self {
        Self {
            id,
            tool_name: tool_name.into(),
            tool_id: None,
            kind,
            input,
            message: None,
            schema: None,
            takes_input: false,
        }
    }

    /// The question of an MCP server for input of this JSON Schema, while one of its tools runs.
    pub fn question(id: u64, server: &str, message: &str, schema: Value) -> Self {
        let input = serde_json::json!({"server": server});
        Self {
            message: Some(format!("the MCP server {server} asks: {message}")),
            schema: Some(schema),
            takes_input: true,
            ..Self::new(id, "elicitation", ToolKind::Mcp, input)
        }
    }
}

/// The answer to a [`PermissionRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PermissionAnswer {
    /// The tool may be used, this time.
    Allow,
    /// The tool may be used, now and for the rest of the session where the CLI knows that.
    AllowAlways,
    /// The tool may be used with this input in place of its own. Where that cannot be
    /// ([`PermissionRequest::takes_input`]), the tool is denied, and the `permission` event says so and
    /// why. Of a question ([`PermissionRequest::schema`]) it is the answer.
    AllowWith(Value),
    /// It may not. The agent is told why, where the CLI has a way to tell it.
    Deny(Option<String>),
}

/// A [`CliProvider`] whose CLI can be kept for many turns.
pub trait SessionProvider: CliProvider {
    /// What its sessions can do.
    fn session_capabilities(&self) -> &SessionCapabilities;

    /// How to start it for a session, or why that cannot be. What the CLI reads first can be in
    /// [`Launch::stdin`]; the engine leaves it open and writes there what the protocol wants.
    /// [`ExecuteParams::prompt`] is empty.
    fn launch_session(&self, options: &SessionOptions) -> Result<Launch, AgentError>;

    /// What talks to one process.
    fn protocol(&self, options: &SessionOptions) -> Box<dyn SessionProtocol>;
}

impl<P: SessionProvider + ?Sized> SessionProvider for Arc<P> {
    fn session_capabilities(&self) -> &SessionCapabilities {
        (**self).session_capabilities()
    }

    fn launch_session(&self, options: &SessionOptions) -> Result<Launch, AgentError> {
        (**self).launch_session(options)
    }

    fn protocol(&self, options: &SessionOptions) -> Box<dyn SessionProtocol> {
        (**self).protocol(options)
    }
}

/// Talks to one process of a session: a [`Decoder`] for its output and the other direction with it.
///
/// It is pure: no clock, no I/O. A new one is made for every process. The engine sees to it that there
/// is at most one turn at a time, that a turn ends when the decoder has pushed a
/// [`TurnEnd`](crate::TurnEnd) and [`activity`](Decoder::activity) is [`None`](crate::Activity::None), and that
/// then [`finish`](Decoder::finish) is called: with an [`Exit`](crate::Exit) that has neither code nor signal if the
/// process lives on, so it is called once for each turn.
///
/// What it has to write goes to [`exchange`](Self::exchange), which the engine empties after each call.
/// A line that comes while no turn is played goes to [`Decoder::line`] as well; if events come of it that
/// only a turn has, that is a turn that the CLI began by itself.
pub trait SessionProtocol: Decoder {
    /// What goes on between the protocol and the engine.
    fn exchange(&mut self) -> &mut Exchange;

    /// The process was started.
    fn open(&mut self) {}

    /// Something is wanted. Only what [`SessionCapabilities`] promises is asked for. Events, such as the
    /// error of a turn that cannot begin, go to `out`.
    fn order(&mut self, order: Order, out: &mut Events);

    /// Why this answer to the request with this id cannot be given to the CLI, if it cannot. The request
    /// is denied then, with this as the reason.
    fn unsupported_answer(&self, id: u64, answer: &PermissionAnswer) -> Option<String> {
        let _ = (id, answer);
        None
    }

    /// Whether the turn that has just ended was interrupted, by its end's own word.
    fn interrupted(&self) -> bool;

    /// The session's id, as soon as it is known and the session can be resumed by it.
    fn session_id(&self) -> Option<Id>;
}

/// What the engine wants of a [`SessionProtocol`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Order {
    /// Play this turn. If the process is not ready for it yet, as soon as it is.
    Turn(Turn),
    /// Interrupt the turn that is being played.
    Interrupt,
    /// Say this in the turn that is being played. To be [settled](Exchange::settle).
    Steer(OrderId, String),
    /// Begin a new session in the same process. To be [settled](Exchange::settle).
    Clear(OrderId),
    /// Change the model. To be [settled](Exchange::settle).
    SetModel(OrderId, String),
    /// Change the permission mode. To be [settled](Exchange::settle).
    SetPermission(OrderId, PermissionMode),
    /// The answer to a [`PermissionRequest`], by its id.
    Answer(u64, PermissionAnswer),
    /// The process shall end: stdin is closed once what is written now has been read.
    Close,
}

/// The number of an [`Order`] whose end somebody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OrderId(pub u64);

/// What goes on between a [`SessionProtocol`] and the engine.
#[derive(Debug, Default)]
pub struct Exchange {
    written: Vec<u8>,
    settled: Vec<(OrderId, Result<(), AgentError>)>,
    asked: Vec<PermissionRequest>,
    withdrawn: Vec<u64>,
}

impl Exchange {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes one line of JSON to the CLI. Every line is whole and valid: several CLIs end at the first
    /// that is not.
    pub fn write(&mut self, message: &impl Serialize) {
        let from = self.written.len();
        if serde_json::to_writer(&mut self.written, message).is_ok() {
            self.written.push(b'\n');
        } else {
            // Nothing that a protocol writes has keys that are no text, which is all that can fail.
            debug_assert!(false, "a message that is no JSON");
            self.written.truncate(from);
        }
    }

    /// An order was carried out, or could not be.
    pub fn settle(&mut self, order: OrderId, result: Result<(), AgentError>) {
        self.settled.push((order, result));
    }

    /// The CLI wants to know whether a tool may be used: [`Order::Answer`] will say.
    pub fn ask(&mut self, request: PermissionRequest) {
        self.asked.push(request);
    }

    /// A request needs no answer any more.
    pub fn withdraw(&mut self, id: u64) {
        self.asked.retain(|asked| asked.id != id);
        self.withdrawn.push(id);
    }

    /// Takes what is to be written.
    pub fn take_written(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.written)
    }

    /// Takes the orders that were carried out, or could not be.
    pub fn take_settled(&mut self) -> Vec<(OrderId, Result<(), AgentError>)> {
        std::mem::take(&mut self.settled)
    }

    /// Takes the requests for permission.
    pub fn take_asked(&mut self) -> Vec<PermissionRequest> {
        std::mem::take(&mut self.asked)
    }

    /// Takes the ids of requests that need no answer any more.
    pub fn take_withdrawn(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.withdrawn)
    }
}
