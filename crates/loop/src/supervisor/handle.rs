//! Handle of a running supervisor, and the messages to its task.

use teamster_process::ProcessIdentity;
use tokio::sync::mpsc;

use super::agent::Exit;

/// Message to the task that is no request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Message {
    Exited(ProcessIdentity, Exit),
    Reload,
    End,
}

/// Handle of a running supervisor.
#[derive(Debug, Clone)]
pub struct Handle(mpsc::UnboundedSender<Message>);

impl Handle {
    pub(super) fn new(sender: mpsc::UnboundedSender<Message>) -> Self {
        Self(sender)
    }

    /// Reads the configuration again.
    pub fn reload(&self) {
        // The supervisor may have ended.
        let _ = self.0.send(Message::Reload);
    }

    /// Ends the supervisor and, unless [`keep_agents`](super::SupervisorSettings::keep_agents) is set, its loops. A second
    /// call kills the loops at once. The next supervisor starts them again.
    pub fn end(&self) {
        // The supervisor may have ended.
        let _ = self.0.send(Message::End);
    }
}
