//! The state of a session in a connection.

use std::collections::VecDeque;

use agent_client_protocol_schema::v1::RequestId;
use serde_json::Value;
use teamster_core::Id;

use crate::updates::View;
use crate::{Prompt, Setup};

/// The maximum number of prompts that wait for the end of a turn.
pub(crate) const QUEUE: usize = 16;

/// The state of a session in a connection.
#[derive(Debug, Default)]
pub(crate) struct Session {
    pub(crate) setup: Setup,
    /// A prompt was sent, so the agent can no longer be changed.
    pub(crate) started: bool,
    /// The agent was asked what it offers, and no prompt has come since.
    pub(crate) asks_offers: bool,
    /// The turn in progress.
    pub(crate) turn: Option<Turn>,
    /// Prompts that wait for the end of the turn.
    pub(crate) queue: VecDeque<(RequestId, Prompt)>,
    pub(crate) view: View,
    /// The options that the editor last received.
    pub(crate) known_options: Option<Value>,
    /// The commands that the editor last received.
    pub(crate) known_commands: Option<Value>,
}

/// A turn whose prompt the editor sent.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) id: RequestId,
    /// The turn's run, once the prompt is in the log.
    pub(crate) run_id: Option<Id>,
    /// The turn was cancelled: its stop reason is `cancelled`.
    pub(crate) cancelled: bool,
}

impl Session {
    pub(crate) fn new(setup: Setup) -> Self {
        Self {
            started: setup.resumed,
            view: View::new(setup.cwd.clone()),
            setup,
            ..Self::default()
        }
    }
}
