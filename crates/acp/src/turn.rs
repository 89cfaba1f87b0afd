//! State of a turn.

use std::collections::HashSet;

use teamster_core::Id;
use teamster_core::provider::UniqueIds;

use crate::tool::ToolCall;

/// State of the active turn.
#[derive(Debug, Default)]
pub struct TurnSoFar {
    /// Calls that have not ended.
    pub(crate) open: Vec<Open>,
    /// Ids of emitted calls.
    pub(crate) used: UniqueIds,
    /// The agent's ids of calls that have ended.
    pub(crate) ended: HashSet<String>,
    pub(crate) answer: bool,
    pub(crate) messages: u32,
    pub(crate) last_message: Option<Id>,
    pub(crate) requests: u32,
    pub(crate) rejected: bool,
    /// Number of consecutive retries of a request to the model.
    pub(crate) retries: u32,
    /// True if more of the turn followed the answer to its prompt.
    pub(crate) followed: bool,
    /// Call of the sub-agent that the current update names.
    pub(crate) named_parent: Option<Id>,
}

/// A call that has not ended.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) call: ToolCall,
    /// Id of the emitted `tool_use`; `None` before that.
    pub(crate) id: Option<Id>,
    /// True if the call was denied.
    pub(crate) denied: bool,
    pub(crate) parent: Option<Id>,
    /// Number of requests to the model when the call was emitted.
    pub(crate) at: u32,
    /// True if the call began after the answer to the prompt.
    pub(crate) late: bool,
    /// True if the agent reports the call itself, and not only requests permission for it.
    pub(crate) reported: bool,
    /// True if the agent has reported that the call begins (`tool_call`).
    pub(crate) created: bool,
}

impl TurnSoFar {
    /// Returns the calls that have not ended.
    pub fn open_calls(&self) -> impl DoubleEndedIterator<Item = &ToolCall> {
        self.open.iter().map(|open| &open.call)
    }

    /// Returns whether any tool was used.
    pub fn used_tools(&self) -> bool {
        !self.used.is_empty()
    }

    /// Returns whether there was text since the turn began, or since the last tool call.
    pub fn has_answer(&self) -> bool {
        self.answer
    }

    /// Returns the number of messages with text, as far as the agent distinguishes them.
    pub fn messages(&self) -> u32 {
        self.messages
    }

    /// Returns the number of context usage updates.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Returns whether a tool was denied.
    pub fn was_rejected(&self) -> bool {
        self.rejected
    }

    pub(crate) fn find(&mut self, cli_id: &str) -> Option<&mut Open> {
        self.open.iter_mut().find(|open| open.call.id == cli_id)
    }

    /// Returns whether calls are open that began after the answer to the prompt. An agent need not report the end of
    /// a call that is known only by its permission request.
    pub(crate) fn late_calls(&self) -> bool {
        self.open.iter().any(|open| open.late && open.reported)
    }

    /// Returns the call of the active sub-agent, if there is one: text and calls belong to it. Calls in the same
    /// response as the sub-agent's do not, because it has not sent a request to the model yet. `usage_begins_messages` is
    /// false for agents that do not report requests: their sub-agent works as soon as its call is created.
    pub(crate) fn parent(&self, usage_begins_messages: bool) -> Option<Id> {
        if self.named_parent.is_some() {
            return self.named_parent.clone();
        }
        let is_agent = |open: &&Open| open.call.tool.as_ref().is_some_and(|tool| tool.sub_agent);
        let works = |open: &&Open| {
            is_agent(open)
                && if usage_begins_messages {
                    open.at < self.requests
                } else {
                    open.created
                }
        };
        self.open.iter().rev().find(works)?.id.clone()
    }
}
