//! Which runs there are, and when the next attempt may begin.
//!
//! One task owns all of it. Everyone else sends it commands, so there is nothing to lock, and what
//! was sent by one caller is done in that order. A holder of something (a place among the active
//! runs, a place in a queue, a slot) holds a guard whose drop sends a command, so nothing is left
//! over when a future is dropped or a task panics.

mod active;
#[cfg(test)]
mod clock;
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
#[cfg(test)]
pub(crate) use clock::test_clock;
pub use limits::Limits;
pub use schedule::Held;
pub(crate) use schedule::Key;

/// The task that owned the state is gone, because the Tokio runtime it was started on is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the runtime on which the orchestrator was made has shut down: make it on the runtime that runs it"
)]
pub(crate) struct Gone;

/// Error of registering a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RegisterError {
    /// A run of that id has not ended yet.
    #[error("a run with the id `{0}` is active: wait for its end, abort it, or choose another id")]
    AlreadyActive(Id),
    #[error(transparent)]
    Gone(#[from] Gone),
}

/// The way to the task. Clones lead to the same one, which ends when the last of them is gone, with
/// every [`Registration`] and [`Slot`].
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    commands: mpsc::UnboundedSender<Command>,
    /// The next number of a registration or a place. They are drawn here and not by the task, so
    /// that the guard is there before the command is sent, and an answer without a waiter any
    /// more needs no care.
    numbers: Arc<AtomicU64>,
}

impl Registry {
    /// Starts the task on the Tokio runtime that this is called on.
    ///
    /// `limits` must have passed [`Limits::check`]. `clock` gives milliseconds since the Unix epoch.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime.
    pub(crate) fn start(limits: Limits, clock: Clock) -> Self {
        let (commands, received) = mpsc::unbounded_channel();
        tokio::spawn(task::run(limits, clock, received));
        Self {
            commands,
            numbers: Arc::default(),
        }
    }

    /// Makes a run known, in the phase [`RunPhase::Queued`], until the answer is dropped.
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

    /// Stops a run in the way that lets its agent clean up. Whether there was such a run.
    pub(crate) async fn abort(&self, run_id: &str) -> bool {
        let run_id = run_id.into();
        self.ask(|reply| Command::Abort { run_id, reply })
            .await
            .unwrap_or_default()
    }

    /// Stops all runs; how many there were.
    pub(crate) async fn abort_all(&self) -> usize {
        self.ask(Command::AbortAll).await.unwrap_or_default()
    }

    /// Whether there is such a run.
    pub(crate) async fn is_active(&self, run_id: &str) -> bool {
        let run_id = run_id.into();
        self.ask(|reply| Command::IsActive { run_id, reply })
            .await
            .unwrap_or_default()
    }

    /// All runs, in order of registration.
    pub(crate) async fn active(&self) -> Vec<ActiveRun> {
        self.ask(Command::Active).await.unwrap_or_default()
    }

    /// Lets no attempt of a provider begin before `until_ms` (Unix). A hold is never shortened by
    /// another one. Attempts that have begun go on.
    pub(crate) fn hold(&self, key: impl Into<Key>, until_ms: u64, reason: AgentError) {
        let key = key.into();
        self.send(Command::Hold(Held {
            provider: key.group.to_string(),
            model: key.model.map(|model| model.to_string()),
            until_ms,
            reason,
        }));
    }

    /// Ends a hold before its time; whether there was one.
    pub(crate) async fn release(&self, group: &str) -> bool {
        let group = group.into();
        self.ask(|reply| Command::Release { group, reply })
            .await
            .unwrap_or_default()
    }

    /// The hold on this key, if any.
    #[cfg(test)]
    pub(crate) async fn held(&self, key: impl Into<Key>) -> Option<Held> {
        let key = key.into();
        self.ask(|reply| Command::Held { key, reply }).await?
    }

    /// All holds there are now, by the provider's name.
    pub(crate) async fn holds(&self) -> Vec<Held> {
        self.ask(Command::Holds).await.unwrap_or_default()
    }

    /// `None` if the task is gone.
    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.send(command(reply));
        answer.await.ok()
    }

    fn send(&self, command: Command) {
        // If the task is gone there is nothing to send; the caller sees that there is no answer.
        let _ = self.commands.send(command);
    }

    fn guard(&self) -> Guard {
        Guard {
            // Only has to be another one each time, and later ones of one caller higher.
            number: self.numbers.fetch_add(1, Ordering::Relaxed),
            registry: self.clone(),
        }
    }
}

/// A number that is returned to the task when it is dropped.
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

/// A run's place among the active ones. Dropping it removes the run.
#[derive(Debug)]
pub(crate) struct Registration(Guard);

impl Registration {
    /// Tells what the run is doing. Nothing waits for it.
    pub(crate) fn update(&self, update: Update) {
        let number = self.0.number;
        self.0.registry.send(Command::Update { number, update });
    }

    /// Waits until an attempt with this provider and model may begin: it is not on hold, and the limits
    /// leave room. `queue` names who asks, such as a user or a channel: its attempts are taken in
    /// order, and those of several queues in turn.
    ///
    /// The place in the queue is taken when this is first polled, and given up when it is dropped.
    /// The run is [`RunPhase::Queued`] or [`RunPhase::OnHold`] meanwhile, and then
    /// [`RunPhase::Starting`].
    ///
    /// Each time that it begins to wait, or waits for something else, `waits` is called: for the end of this
    /// hold, or for room.
    ///
    /// A run that still has the slot of its last attempt may wait for itself: drop it before.
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

/// The right to run one attempt. Dropping it gives it to the next.
#[derive(Debug)]
pub(crate) struct Slot(Guard);
