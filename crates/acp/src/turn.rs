//! State of a turn.

use std::collections::HashSet;

use teamster_core::Id;

use crate::tool::ToolCall;

/// State of the active turn.
#[derive(Debug, Default)]
pub struct TurnSoFar {
    /// Calls that have not ended, with the ids under which they were passed on.
    pub(crate) open: Vec<Open>,
    /// Ids that were passed on.
    pub(crate) used: HashSet<Id>,
    /// The agent's ids of calls that have ended.
    pub(crate) ended: HashSet<String>,
    pub(crate) answer: bool,
    pub(crate) messages: u32,
    pub(crate) last_message: Option<Id>,
    pub(crate) requests: u32,
    pub(crate) rejected: bool,
    /// How often the agent has repeated its last request.
    pub(crate) retries: u32,
}

/// A call that has not ended.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) call: ToolCall,
    /// The id under which it was passed on.
    pub(crate) id: Option<Id>,
    /// It was not permitted.
    pub(crate) denied: bool,
    pub(crate) parent: Option<Id>,
    /// How many requests to the model had begun when it was passed on.
    pub(crate) at: u32,
}

impl TurnSoFar {
    /// The calls that have not ended.
    pub fn open_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.open.iter().map(|open| &open.call)
    }

    /// Whether any tool was used.
    pub fn used_tools(&self) -> bool {
        !self.used.is_empty()
    }

    /// Whether there was text since the turn began, or since its last tool ended.
    pub fn has_answer(&self) -> bool {
        self.answer
    }

    /// Number of messages with text, as far as the agent distinguishes them.
    pub fn messages(&self) -> u32 {
        self.messages
    }

    /// How often the agent has reported how full the context is.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Whether a tool was not permitted.
    pub fn was_rejected(&self) -> bool {
        self.rejected
    }

    pub(crate) fn find(&mut self, cli_id: &str) -> Option<&mut Open> {
        self.open.iter_mut().find(|open| open.call.id == cli_id)
    }

    /// The sub-agent that works, if one does: text and calls meanwhile are its. Calls that are made
    /// together with it are not: it has asked nothing of a model yet.
    pub(crate) fn parent(&self) -> Option<Id> {
        let is_agent = |open: &&Open| open.call.tool.as_ref().is_some_and(|tool| tool.sub_agent);
        let works = |open: &&Open| is_agent(open) && open.at < self.requests;
        self.open.iter().rev().find(works)?.id.clone()
    }
}
