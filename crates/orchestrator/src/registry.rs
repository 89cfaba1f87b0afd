//! Registry of active runs and scheduler of their attempts.
//!
//! One task owns the state, and all others send it commands. So there are no locks, and commands of one sender are
//! executed in order. Each holder of a resource (an entry among the active runs, a position in a queue, a slot) has a
//! guard whose drop sends a command. So nothing leaks when a future is dropped or a task panics.

mod active;
mod limits;
mod schedule;
mod task;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use teamster_core::{AbortHandle, AgentError, Id};
use tokio::sync::{mpsc, oneshot};

use crate::Clock;
use task::Command;

pub(crate) use active::Update;
pub use active::{ActiveRun, RunPhase};
pub use limits::Limits;
pub use schedule::Held;
pub(crate) use schedule::Key;

/// Error of a command whose task ended together with its Tokio runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the runtime on which the orchestrator was made has shut down: make it on the runtime that runs it"
)]
pub(crate) struct Gone;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RegisterError {
    /// A run of that id has not ended yet.
    #[error("a run with the id `{0}` is active: wait for its end, abort it, or choose another id")]
    AlreadyActive(Id),
    #[error(transparent)]
    Gone(#[from] Gone),
}

/// Handle to the registry's task. Clones share the task, which ends when the last clone and every [`Registration`]
/// and [`Slot`] are dropped.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    commands: mpsc::UnboundedSender<Command>,
    /// The next number of a registration or a ticket. The sender draws it, so that the guard exists before the command
    /// is sent. An answer that no caller waits for then needs no cleanup.
    numbers: Arc<AtomicU64>,
}

impl Registry {
    /// Starts the task on the current Tokio runtime.
    ///
    /// `limits` must have passed [`Limits::check`]. `clock` returns milliseconds since the Unix epoch.
    ///
    /// # Panics
    ///
    /// Panics outside of a Tokio runtime.
    pub(crate) fn start(limits: Limits, clock: Clock) -> Self {
        let (commands, received) = mpsc::unbounded_channel();
        tokio::spawn(task::run(limits, clock, received));
        Self {
            commands,
            numbers: Arc::default(),
        }
    }

    /// Registers a run in the phase [`RunPhase::Queued`], until the returned guard is dropped.
    pub(crate) async fn register(
        &self,
        run_id: Id,
        provider: impl Into<String>,
        model: Option<String>,
        abort: AbortHandle,
    ) -> Result<Registration, RegisterError> {
        let registration = Registration(self.guard());
        let run = task::NewRun {
            run_id: run_id.clone(),
            provider: provider.into(),
            model,
            abort,
        };
        let number = registration.0.number;
        match self
            .ask(|reply| Command::Register { number, run, reply })
            .await
        {
            Some(true) => Ok(registration),
            Some(false) => Err(RegisterError::AlreadyActive(run_id)),
            None => Err(Gone.into()),
        }
    }

    /// Stops a run so that its agent can clean up. Returns whether it was active.
    pub(crate) async fn abort(&self, run_id: &str) -> bool {
        let run_id = run_id.into();
        self.ask(|reply| Command::Abort { run_id, reply })
            .await
            .unwrap_or_default()
    }

    /// Stops all runs. Returns their number.
    pub(crate) async fn abort_all(&self) -> usize {
        self.ask(Command::AbortAll).await.unwrap_or_default()
    }

    pub(crate) async fn is_active(&self, run_id: &str) -> bool {
        let run_id = run_id.into();
        self.ask(|reply| Command::IsActive { run_id, reply })
            .await
            .unwrap_or_default()
    }

    /// Returns all active runs, in order of registration.
    pub(crate) async fn active(&self) -> Vec<ActiveRun> {
        self.ask(Command::Active).await.unwrap_or_default()
    }

    /// Starts no attempts of a provider before `until_ms` (milliseconds since the Unix epoch). A later hold never
    /// shortens an earlier one. Attempts that have begun continue.
    pub(crate) fn hold(&self, key: impl Into<Key>, until_ms: u64, reason: AgentError) {
        let key = key.into();
        self.send(Command::Hold(Held {
            provider: key.group.to_string(),
            model: key.model.map(|model| model.to_string()),
            until_ms,
            reason,
        }));
    }

    /// Ends a hold early. Returns whether there was one.
    pub(crate) async fn release(&self, group: &str) -> bool {
        let group = group.into();
        self.ask(|reply| Command::Release { group, reply })
            .await
            .unwrap_or_default()
    }

    /// Returns the hold on this key, if any.
    #[cfg(test)]
    pub(crate) async fn held(&self, key: impl Into<Key>) -> Option<Held> {
        let key = key.into();
        self.ask(|reply| Command::Held { key, reply }).await?
    }

    /// Returns all current holds, ordered by provider.
    pub(crate) async fn holds(&self) -> Vec<Held> {
        self.ask(Command::Holds).await.unwrap_or_default()
    }

    /// Sends a command and waits for its answer. Returns `None` if the task is gone.
    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.send(command(reply));
        answer.await.ok()
    }

    fn send(&self, command: Command) {
        // If the task is gone, the caller notices the missing answer.
        let _ = self.commands.send(command);
    }

    fn guard(&self) -> Guard {
        Guard {
            // Numbers must be unique, and later ones of the same caller higher.
            number: self.numbers.fetch_add(1, Ordering::Relaxed),
            registry: self.clone(),
        }
    }
}

/// A number that is released by the task on drop.
#[derive(Debug)]
struct Guard {
    number: u64,
    registry: Registry,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.registry.send(Command::Drop(self.number));
    }
}

/// Registration of an active run. Dropping it removes the run.
#[derive(Debug)]
pub(crate) struct Registration(Guard);

impl Registration {
    /// Reports the run's state. Does not wait.
    pub(crate) fn update(&self, update: Update) {
        let number = self.0.number;
        self.0.registry.send(Command::Update { number, update });
    }

    /// Waits until an attempt with this provider and model may begin: the provider is not on hold, and the limits leave
    /// room.
    ///
    /// `queue` identifies the requester, such as a user or a channel. Attempts of one queue are granted in order, and
    /// several queues take turns. The position in the queue is taken at the first poll and given up on drop.
    ///
    /// The run is [`RunPhase::Queued`] or [`RunPhase::OnHold`] meanwhile, and [`RunPhase::Starting`] afterwards. Each
    /// time the wait begins or its reason changes, `waits` receives the hold that it waits for, or `None` for room.
    ///
    /// The slot of the last attempt must be dropped before, because the run could otherwise wait for itself.
    pub(crate) async fn slot(
        &self,
        key: impl Into<Key>,
        queue: &str,
        waits: mpsc::UnboundedSender<Option<Held>>,
    ) -> Result<Slot, Gone> {
        let registry = &self.0.registry;
        let slot = Slot(registry.guard());
        let wanted = task::Wanted {
            ticket: slot.0.number,
            run: self.0.number,
            group: key.into(),
            queue: queue.into(),
            waits,
        };
        match registry.ask(|reply| Command::Join { wanted, reply }).await {
            Some(()) => Ok(slot),
            None => Err(Gone),
        }
    }
}

/// Permission to run one attempt. Dropping it passes the slot on.
#[derive(Debug)]
pub(crate) struct Slot(Guard);
