//! Commands that wait for their outcome.

use std::collections::HashMap;
use std::time::Duration;

use teamster_core::provider::CommandId;
use teamster_core::{AgentError, ErrorCode, ErrorKind};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Time limit of a command.
const COMMAND_LIMIT: Duration = Duration::from_secs(30);

/// Channel for a command's outcome.
pub(crate) type Outcome = oneshot::Sender<Result<(), AgentError>>;

/// Callers that wait for the outcome of a command.
#[derive(Default)]
pub(crate) struct Replies {
    waiting: HashMap<CommandId, (Outcome, Instant)>,
    next: u64,
}

impl Replies {
    /// Adds a caller and returns the id of its command.
    pub(crate) fn add(&mut self, to: Outcome) -> CommandId {
        let id = CommandId::new(self.next);
        self.next += 1;
        self.waiting
            .insert(id, (to, Instant::now() + COMMAND_LIMIT));
        id
    }

    /// Removes and returns the caller that waits for this command.
    pub(crate) fn take(&mut self, id: CommandId) -> Option<Outcome> {
        self.waiting.remove(&id).map(|(to, _)| to)
    }

    /// Fails the commands that have reached the time limit. Returns whether there were any.
    pub(crate) fn give_up(&mut self) -> bool {
        let now = Instant::now();
        let late = self.waiting.extract_if(|_, (_, until)| *until <= now);
        let mut any = false;
        for (_, (to, _)) in late {
            any = true;
            let message = format!("the CLI did not answer within {COMMAND_LIMIT:?}");
            let error = AgentError::new(ErrorCode::WatchdogTimeout, ErrorKind::Timeout, message);
            // The caller may have stopped waiting.
            let _ = to.send(Err(error));
        }
        any
    }

    /// Returns the time at which the next command reaches its limit.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.waiting.values().map(|(_, until)| *until).min()
    }

    /// Drops all commands without an outcome.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }
}
