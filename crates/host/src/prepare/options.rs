//! Settings of a run or session that are not in its description.

use std::sync::Arc;

use teamster_core::{Capabilities, CliInfo, ExecuteParams};

use crate::KeptHistory;

/// Options of a run that are not in its description.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunOptions {
    /// Id of the run.
    pub id: String,
    /// True if the id was chosen rather than made: then the history must not have it.
    pub is_chosen: bool,
    /// True if clients answer the agent's requests, by the socket of the run's folder. Otherwise they are denied.
    pub clients_answer: bool,
    /// True if entries keep what the CLI printed.
    pub native: bool,
    /// True if the process ends after the run. Then the history's file is [left open](teamster_store::Store::leave).
    pub ends_process: bool,
}

impl RunOptions {
    /// Creates the options of a run with this id, which was made for it.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            is_chosen: false,
            clients_answer: false,
            native: false,
            ends_process: false,
        }
    }

    /// Sets the options of a run with a folder of its own, whose clients answer requests.
    #[must_use]
    pub fn detached(mut self) -> Self {
        (self.is_chosen, self.clients_answer) = (true, true);
        self
    }
}

/// Source of the answers to a session's requests.
#[non_exhaustive]
pub enum Answers {
    /// They are denied.
    Deny,
    /// Clients of the session's folder. An agent that cannot ask is denied.
    Clients,
    /// Clients of the session's folder. An agent that cannot ask is refused where the description has a time limit of
    /// requests, and denied elsewhere.
    RequiredClients,
    /// The client of a session in this process ([`PreparedSession::attached`](crate::PreparedSession::attached)), which
    /// has any time. An agent that cannot ask is denied.
    Attached,
}

/// Function that removes from an agent's parameters what it does not take and need not. It returns `false` if such an
/// agent must not be a fallback.
pub(crate) type Fit =
    Box<dyn Fn(&CliInfo, &Capabilities, &mut ExecuteParams) -> bool + Send + Sync>;

/// Options of a session that are not in its description.
#[non_exhaustive]
pub struct SessionRunOptions {
    /// Id of the session.
    pub id: String,
    /// Party that answers the agent's requests.
    pub answers: Answers,
    /// True if the session has a folder of its own, which is named in errors of others that would use it.
    pub(crate) is_detached: bool,
    /// True if entries keep what the CLI printed.
    pub native: bool,
    /// A history that sessions share, with their conversation. Default: the session opens its own.
    pub(crate) history: Option<Arc<KeptHistory>>,
    /// Advice for starting the conversation of `session_key` over, for an error. Default: the fields of a run that do.
    pub(crate) start_over: Option<String>,
    /// Fits the parameters to each agent. Default: they are those of the description.
    pub(crate) fit: Option<Fit>,
}

impl SessionRunOptions {
    /// Creates the options of a session with this id.
    pub fn new(id: impl Into<String>, answers: Answers) -> Self {
        Self {
            id: id.into(),
            answers,
            is_detached: false,
            native: false,
            history: None,
            start_over: None,
            fit: None,
        }
    }
}
