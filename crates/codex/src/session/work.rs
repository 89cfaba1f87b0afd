//! Work of one agent in a turn: of the main agent, or of an agent that it started.

use std::collections::HashMap;

use serde_json::Value;
use teamster_core::provider::{Events, UniqueIds};
use teamster_core::{Id, NoticeLevel, NoticeSource, Retry};

use super::agents::Origin;
use super::errors::Failure;
use crate::decoder::Reconnect;
use crate::decoder::items::{Items, Stage};
use crate::decoder::messages::Kind;
use crate::wire::Object;

/// Maximum number of line breaks between two parts of a summary. There is one for each skipped part and one more.
const MOST_EMPTY_PARTS: u64 = 8;

/// Work of one agent in a turn.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) items: Items,
    /// The CLI's name of the agent; `None` for the main agent.
    name: Option<String>,
    /// Current parts of the reasoning summaries, by item.
    parts: HashMap<String, u64>,
    /// Number of requests that the CLI repeated.
    retries: u32,
    /// A reported error, until the end of the turn shows whether it was the reason of a failure.
    pub(super) pending: Option<Failure>,
    /// Changes of files with their texts, by item.
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

    /// Returns the id of the tool call in this item, if it has no result yet.
    pub(super) fn call(&self, item: &str) -> Option<Id> {
        let call = self.items.open_call(item);
        call.map(|call| call.id.clone())
    }

    /// Handles an item. Returns `None` if its type is unknown; then the state is unchanged.
    pub(super) fn item(
        &mut self,
        stage: Stage,
        item: &Object<'_>,
        ids: &mut UniqueIds,
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

    /// Handles a piece of a reasoning summary. The parts of a summary become lines.
    pub(super) fn thought(
        &mut self,
        item: &str,
        part: u64,
        piece: &str,
        ids: &mut UniqueIds,
        out: &mut Events,
    ) {
        let before = self.parts.entry(item.to_owned()).or_default();
        let new = part.saturating_sub(*before).min(MOST_EMPTY_PARTS);
        *before = part.max(*before);
        let lines = usize::try_from(new).unwrap_or_default();
        let piece = "\n".repeat(lines) + piece;
        self.items.piece(item, Kind::Thinking, &piece, ids, out);
    }

    /// Handles a failure that the CLI retries or reports at the end of the turn.
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
        out.push(
            Retry::new(
                count.and_then(|it| it.attempt).unwrap_or(self.retries),
                failure.error_of_retry(),
            )
            .max_attempts(count.and_then(|it| it.max_attempts)),
        );
    }

    /// Emits a pending failure as a notice, because the turn continued after it.
    pub(super) fn settle_pending(&mut self, out: &mut Events) {
        if let Some(pending) = self.pending.take() {
            let message = match &self.name {
                Some(name) => format!("agent {name}: {}", pending.message),
                None => pending.message,
            };
            out.notice(NoticeLevel::Warning, NoticeSource::Stdout, message);
        }
    }

    /// Handles the end of the turn of an agent other than the main one, and an error that the CLI may have reported.
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
