//! A session as its editor has it.

use std::collections::VecDeque;

use agent_client_protocol_schema::v1::RequestId;
use serde_json::Value;
use teamster_core::Id;

use crate::updates::Story;
use crate::{Prompt, Setup};

/// How many prompts wait for the end of a turn.
pub(crate) const QUEUE: usize = 16;

/// A session as its editor has it.
#[derive(Debug, Default)]
pub(crate) struct Session {
    pub(crate) setup: Setup,
    /// A prompt was sent: the agent stays.
    pub(crate) begun: bool,
    /// The turn in progress.
    pub(crate) turn: Option<Turn>,
    /// Prompts that wait for its end.
    pub(crate) queue: VecDeque<(RequestId, Prompt)>,
    pub(crate) story: Story,
    /// The options that the editor knows.
    pub(crate) shown: Option<Value>,
}

/// The turn that an editor waits for.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) id: RequestId,
    /// Its run, once its prompt is in the log.
    pub(crate) run_id: Option<Id>,
    /// It was cancelled: its end is `cancelled`, however it ends.
    pub(crate) cancelled: bool,
}

impl Session {
    pub(crate) fn new(setup: Setup) -> Self {
        Self {
            begun: setup.goes_on,
            setup,
            ..Self::default()
        }
    }
}
