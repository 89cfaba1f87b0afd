//! Work of one agent in a turn: the main agent, or one that it started.

use std::collections::HashMap;

use serde_json::Value;
use teamster_core::provider::Events;
use teamster_core::{AgentEvent, Id, NoticeLevel, NoticeSource, Retry};

use super::agents::Origin;
use super::errors::Failure;
use crate::decoder::Reconnect;
use crate::decoder::ids::Ids;
use crate::decoder::items::{Items, Stage};
use crate::decoder::messages::Kind;
use crate::wire::Object;

/// How many parts of a summary may be empty before the next one counts as the next.
const MOST_EMPTY_PARTS: u64 = 8;

/// Work of one agent in a turn.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) items: Items,
    /// The CLI's name of the agent; `None` for the main one.
    name: Option<String>,
    /// The parts of a summary of the model's reasoning, by the item that they are of.
    parts: HashMap<String, u64>,
    /// Requests that the CLI made again.
    retries: u32,
    /// An error of the CLI's, until the end of the turn shows whether the turn failed with it.
    pub(super) pending: Option<Failure>,
    /// Changes of files with their texts, by the item that they are of.
    pub(super) changes: HashMap<String, Value>,
}

impl Work {
    pub(super) fn of_agent(origin: Origin) -> Self {
        Self {
            items: Items::of_agent(origin.call),
            name: Some(origin.name),
            ..Self::default()
        }
    }

    /// The id of the tool call that runs in the item with this id.
    pub(super) fn call(&self, item: &str) -> Option<Id> {
        let call = self.items.open_call(item);
        call.map(|call| call.id.clone())
    }

    /// Takes an item. `None` if its type is not known; then nothing has happened.
    pub(super) fn item(
        &mut self,
        stage: Stage,
        item: &Object<'_>,
        ids: &mut Ids,
        out: &mut Events,
    ) -> Option<()> {
        let id = item.text("id").unwrap_or_default();
        match &*item.text("type")? {
            "agentMessage" | "reasoning" if stage == Stage::Started => {
                self.items.messages.begins(&id, out);
            }
            "fileChange" if stage == Stage::Started => {
                if let Some(changes) = item.value("changes") {
                    self.changes.insert(id.clone().into_owned(), changes);
                }
            }
            "fileChange" => {
                self.changes.remove(&*id);
            }
            _ => {}
        }
        self.items.item(stage, item, ids, out)
    }

    /// A piece of a summary of what the model thinks. Its parts are lines.
    pub(super) fn thought(
        &mut self,
        item: &str,
        part: u64,
        piece: &str,
        ids: &mut Ids,
        out: &mut Events,
    ) {
        let before = self.parts.entry(item.to_owned()).or_default();
        let new = part.saturating_sub(*before).min(MOST_EMPTY_PARTS);
        *before = part.max(*before);
        let lines = usize::try_from(new).unwrap_or_default();
        let piece = "\n".repeat(lines) + piece;
        self.items.piece(item, Kind::Thinking, &piece, ids, out);
    }

    /// A failure: the CLI retries it, or reports it at the end of the turn.
    pub(super) fn failed(&mut self, failure: Failure, again: bool, out: &mut Events) {
        if !again {
            self.settle_pending(out);
            self.pending = Some(failure);
            return;
        }
        self.items.messages.broke_off(out);
        self.retries += 1;
        let reconnect = Reconnect::of(&failure.message);
        let count = reconnect.as_ref();
        out.push(AgentEvent::Retry(Box::new(
            Retry::new(
                count.and_then(|it| it.attempt).unwrap_or(self.retries),
                failure.error_of_retry(),
            )
            .max_attempts(count.and_then(|it| it.max_attempts)),
        )));
    }

    /// The turn went on after what the CLI called an error.
    pub(super) fn settle_pending(&mut self, out: &mut Events) {
        if let Some(pending) = self.pending.take() {
            let message = match &self.name {
                Some(name) => format!("agent {name}: {}", pending.message),
                None => pending.message,
            };
            out.notice(NoticeLevel::Warning, NoticeSource::Stdout, message);
        }
    }

    /// The agent's turn has ended in this way, and the CLI may have reported an error. Not for the main agent.
    pub(super) fn agent_ended(
        &mut self,
        status: &str,
        reported: Option<Failure>,
        out: &mut Events,
    ) {
        if status == "failed" {
            let failure = reported.or_else(|| self.pending.take());
            self.pending = None;
            let name = self.name.as_deref().unwrap_or_default();
            let why = failure.map_or_else(String::new, |failure| {
                format!(": {}", failure.error().message)
            });
            let message = format!("agent {name} failed{why}");
            out.notice(NoticeLevel::Warning, NoticeSource::Stdout, message);
            return;
        }
        self.settle_pending(out);
        if status == "completed" {
            self.items.messages.ended(out);
        }
    }
}
