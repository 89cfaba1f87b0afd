//! Requests to the CLI, and which of them wait for an answer.

use std::collections::HashMap;

use serde_json::{Value, json};
use teamster_core::provider::{Exchange, OrderId};
use teamster_core::{AgentError, ErrorKind};

use crate::decoder::errors;
use crate::wire::Object;

/// Purpose of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Call {
    Initialize,
    /// The user's settings.
    Settings,
    /// A thread, which is what the CLI calls a session.
    Open,
    /// The turn with this number.
    Turn(u64),
    Interrupt,
    /// For an agent's turn, by its thread and id.
    InterruptAgent(String, String),
    Steer(OrderId),
    /// Another turn of the main agent's, which belongs to the one that waits for agents.
    Resume(OrderId),
    /// Nothing depends on its answer.
    Other,
}

/// The requests of one process.
#[derive(Debug, Default)]
pub(super) struct Calls {
    last: u64,
    waiting: HashMap<u64, Call>,
}

impl Calls {
    /// Writes a request and gives its number.
    pub(super) fn call(
        &mut self,
        exchange: &mut Exchange,
        call: Call,
        method: &str,
        params: &Value,
    ) -> u64 {
        self.last += 1;
        self.waiting.insert(self.last, call);
        exchange.write(&json!({"id": self.last, "method": method, "params": params}));
        self.last
    }

    #[cfg(all(test, repository))]
    pub(super) fn number_from(&mut self, number: u64) {
        self.last = number - 1;
    }

    /// The purpose of the request with this number. `None` if there is none that waits for an answer.
    pub(super) fn answered(&mut self, id: u64) -> Option<Call> {
        self.waiting.remove(&id)
    }
}

/// The error for a request that the CLI refused.
pub(super) fn refusal(error: &Object<'_>) -> AgentError {
    let message = error.text("message").unwrap_or_default();
    let mut refusal = errors::of_message(&message);
    // The codes of JSON-RPC for a request that is wrong and for parameters that are.
    let is_wrong = matches!(error.get::<i64>("code"), Some(-32602..=-32600));
    if refusal.kind == ErrorKind::Internal && is_wrong {
        refusal.kind = ErrorKind::Invalid;
        refusal.retryable = false;
    }
    refusal
}
