//! Requests to the CLI, and those that wait for a response.

use std::collections::HashMap;

use serde_json::{Value, json};
use teamster_core::provider::{CommandId, Outbox};
use teamster_core::{AgentError, ErrorKind};

use super::goals::GoalCommand;
use super::offers::BuiltIn;
use crate::decoder::errors;
use crate::wire::Object;

/// Purpose of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Call {
    Initialize,
    /// Reads the user's settings.
    Settings,
    /// Opens a thread, which is the CLI's name for a session.
    Open,
    /// Starts the turn with this number.
    Turn(u64),
    /// Compacts the conversation, which is the turn with this number.
    Compact(u64),
    /// Carries out a command about the goal, which is the turn with this number.
    Goal(u64, GoalCommand),
    /// Changes the settings of the thread before this command, which is the turn with this number.
    SettingsBefore(u64, BuiltIn),
    Interrupt,
    /// Interrupts an agent's turn, by its thread and id.
    InterruptAgent(String, String),
    Steer(CommandId),
    /// Starts another turn of the main agent, which belongs to the turn that waits for agents.
    Resume(CommandId),
    /// A request whose response has no effect.
    Other,
}

/// The requests of one process.
#[derive(Debug, Default)]
pub(super) struct Calls {
    last: u64,
    waiting: HashMap<u64, Call>,
}

impl Calls {
    /// Writes a request and returns its number.
    pub(super) fn call(
        &mut self,
        outbox: &mut Outbox,
        call: Call,
        method: &str,
        params: &Value,
    ) -> u64 {
        self.last += 1;
        self.waiting.insert(self.last, call);
        outbox.write(&json!({"id": self.last, "method": method, "params": params}));
        self.last
    }

    #[cfg(all(test, repository))]
    pub(super) fn number_from(&mut self, number: u64) {
        self.last = number - 1;
    }

    /// Returns the purpose of the request with this number, or `None` if no such request waits for a response.
    pub(super) fn answered(&mut self, id: u64) -> Option<Call> {
        self.waiting.remove(&id)
    }
}

/// Returns the error for a request that the CLI refused.
pub(super) fn refusal(error: &Object<'_>) -> AgentError {
    let message = error.text("message").unwrap_or_default();
    let mut refusal = errors::of_message(&message);
    // JSON-RPC codes for an invalid request and for invalid parameters.
    let is_wrong = matches!(error.get::<i64>("code"), Some(-32602..=-32600));
    if refusal.kind == ErrorKind::Internal && is_wrong {
        refusal.kind = ErrorKind::Invalid;
        refusal.retryable = false;
    }
    refusal
}
