//! State shared by a session and the task of its process.
//!
//! The task MUST NOT hold the session's end of the channel: the closed channel shows that no sender is left and
//! the process is to end.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use teamster_core::provider::{CommandId, SessionAssembler, SessionCommand};
use teamster_core::sync::lock;
use teamster_core::{AbortHandle, EventStream, Id, PermissionMode, Turn};
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc, oneshot};

use super::replies::Outcome;
use crate::guard::Panicked;
use crate::queue::{Consumer, Producer};

/// Time limit of an interrupt while the CLI runs no tool, and so has nothing to end or save.
pub(super) const GRACE_WITHOUT_TOOLS: Duration = Duration::from_secs(2);

/// Limit of unasked turns that are kept until they are taken.
const UNASKED: usize = 16;

/// A command from the session to the task.
pub(crate) enum Command {
    Turn(Box<NewTurn>),
    Interrupt,
    /// A command of which the caller learns the outcome, and the channel for it.
    WithOutcome(CommandKind, Outcome),
    /// End the process, unless a turn is in progress.
    CloseIfIdle,
    /// Interrupt the turn in progress, and end the process.
    Close,
}

/// A command without its number.
pub(crate) enum CommandKind {
    Steer(String),
    Clear,
    Model(String),
    Permission(PermissionMode),
}

impl CommandKind {
    pub(crate) fn command(self, id: CommandId) -> SessionCommand {
        match self {
            Self::Steer(text) => SessionCommand::Steer(id, text),
            Self::Clear => SessionCommand::Clear(id),
            Self::Model(model) => SessionCommand::SetModel(id, model),
            Self::Permission(mode) => SessionCommand::SetPermission(id, mode),
        }
    }
}

/// A turn on its way to the process.
pub(crate) struct NewTurn {
    pub(crate) turn: Turn,
    pub(crate) queue: Producer,
    pub(crate) abort: AbortHandle,
    /// Exclusive use of the process.
    pub(crate) permit: OwnedSemaphorePermit,
    /// Notified when the turn begins. Dropped if the process ends before that.
    pub(crate) begun: oneshot::Sender<()>,
}

/// State shared by the session and the task.
#[derive(Default)]
pub(crate) struct Known {
    session_id: Mutex<Option<Id>>,
    cost: Mutex<Option<(Id, f64)>>,
    permission_mode: Mutex<Option<PermissionMode>>,
    unasked: Mutex<VecDeque<EventStream>>,
    /// Notified of each unasked turn. It outlives the process.
    has_unasked: Arc<Notify>,
    gone: AtomicBool,
    in_turn: AtomicBool,
    idle: AtomicBool,
    lost: AtomicBool,
}

impl Known {
    pub(crate) fn new(has_unasked: Arc<Notify>) -> Self {
        Self {
            has_unasked,
            ..Self::default()
        }
    }

    /// Returns the id by which the session can be resumed.
    pub(crate) fn session_id(&self) -> Option<Id> {
        lock(&self.session_id).clone()
    }

    pub(crate) fn set_session_id(&self, id: Option<Id>) {
        *lock(&self.session_id) = id;
    }

    /// Returns the cost of this session at the end of its last turn, in USD.
    pub(crate) fn cost_of(&self, session: Option<&Id>) -> Option<f64> {
        let cost = lock(&self.cost);
        let (of, usd) = cost.as_ref()?;
        (Some(of) == session).then_some(*usd)
    }

    pub(crate) fn set_cost(&self, session: Option<Id>, usd: Option<f64>) {
        *lock(&self.cost) = session.zip(usd);
    }

    /// Returns the permission mode to which the CLI had changed the session by itself at the end of its last turn.
    pub(crate) fn permission_mode(&self) -> Option<PermissionMode> {
        *lock(&self.permission_mode)
    }

    pub(crate) fn set_permission_mode(&self, mode: Option<PermissionMode>) {
        *lock(&self.permission_mode) = mode;
    }

    /// Adds an unasked turn. Drops the oldest one if there are too many.
    pub(crate) fn add_unasked(&self, consumer: Consumer, abort: AbortHandle) {
        let mut unasked = lock(&self.unasked);
        if unasked.len() >= UNASKED {
            unasked.pop_front();
        }
        unasked.push_back(EventStream::of_batches(consumer, abort));
        self.has_unasked.notify_one();
    }

    pub(crate) fn take_unasked(&self) -> Option<EventStream> {
        lock(&self.unasked).pop_front()
    }

    /// Returns whether the process has ended or is about to end, and accepts no turns.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    pub(crate) fn set_gone(&self) {
        self.gone.store(true, Ordering::Release);
    }

    /// Returns whether the process was ended because it was idle.
    pub(crate) fn was_idle(&self) -> bool {
        self.idle.load(Ordering::Acquire)
    }

    pub(crate) fn set_idle(&self) {
        self.idle.store(true, Ordering::Release);
    }

    /// Returns whether the CLI does not know the session that an earlier process began.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    pub(crate) fn set_lost(&self) {
        self.lost.store(true, Ordering::Release);
    }

    pub(crate) fn is_in_turn(&self) -> bool {
        self.in_turn.load(Ordering::Acquire)
    }

    pub(crate) fn set_in_turn(&self, in_turn: bool) {
        self.in_turn.store(in_turn, Ordering::Release);
    }
}

/// Configuration of a session's reader.
pub(crate) struct Setting {
    pub(crate) assembler: SessionAssembler,
    pub(crate) panicked: Panicked,
    pub(crate) commands: mpsc::UnboundedReceiver<Command>,
    pub(crate) known: Arc<Known>,
    pub(crate) interruptible: bool,
    pub(crate) idle: Option<Duration>,
    /// True if an earlier process began the session.
    pub(crate) restarted: bool,
    pub(crate) interrupt_grace: Duration,
    pub(crate) queue_memory_bytes: usize,
    pub(crate) spill_dir: Option<PathBuf>,
    pub(crate) spill_limit_bytes: u64,
}
