//! Tool calls while the model writes them: content blocks that begin with the tool's name and the call's id, followed by
//! pieces of the JSON of its input.
//!
//! Normally the whole call follows in an `assistant` line before the end of its block, and is emitted from there. The
//! CLI can be killed between the two, so whichever comes first is emitted.

use std::collections::HashSet;

use serde_json::{Map, Value};
use teamster_core::Id;
use teamster_core::provider::Events;
use teamster_core::provider::surrogates::Joiner;

use super::tools;

/// Tool calls in content blocks.
#[derive(Debug, Default)]
pub(super) struct WrittenCalls {
    /// Calls whose block has not ended and whose `assistant` line has not come.
    open: Vec<Open>,
    /// Emitted calls whose `assistant` line has not come.
    emitted: HashSet<Id>,
}

#[derive(Debug)]
struct Open {
    lane: usize,
    /// Index of the block in its message.
    index: u64,
    id: Id,
    name: String,
    /// The input as the block begins, which is normally empty.
    first: Value,
    json: String,
    joiner: Joiner,
}

/// A tool call as the model wrote it.
#[derive(Debug)]
pub(super) struct WrittenCall {
    /// Index of the agent's lane.
    pub(super) lane: usize,
    pub(super) id: Id,
    pub(super) name: String,
    /// The input, or its text if that is not JSON.
    pub(super) input: Value,
}

impl WrittenCalls {
    /// Begins the block of a call.
    pub(super) fn start(&mut self, lane: usize, index: u64, id: &str, name: &str, first: &Value) {
        self.open.push(Open {
            lane,
            index,
            id: Id::from(id),
            name: name.to_owned(),
            first: first.clone(),
            json: String::new(),
            joiner: Joiner::default(),
        });
    }

    /// Appends a piece of the input's JSON. It may begin or end within a surrogate pair.
    pub(super) fn piece(&mut self, lane: usize, index: u64, piece: &[u8]) {
        if let Some(at) = self.find(lane, index) {
            let open = &mut self.open[at];
            open.json.push_str(&open.joiner.push(piece));
        }
    }

    /// Ends a block. Returns its call if that was not emitted before.
    pub(super) fn stop(&mut self, lane: usize, index: u64) -> Option<WrittenCall> {
        let at = self.find(lane, index)?;
        let open = self.open.remove(at);
        self.emitted.insert(open.id.clone());
        Some(open.call())
    }

    /// Handles the call of an `assistant` line. Returns whether it was emitted before.
    pub(super) fn is_repeated(&mut self, id: &Id) -> bool {
        self.open.retain(|open| open.id != *id);
        self.emitted.remove(id)
    }

    /// Takes the calls whose block has not ended.
    pub(super) fn take_unfinished(&mut self) -> Vec<WrittenCall> {
        let open = std::mem::take(&mut self.open);
        self.emitted.extend(open.iter().map(|open| open.id.clone()));
        open.into_iter().map(Open::call).collect()
    }

    /// Drops and counts the calls whose block has not ended.
    pub(super) fn drop_unfinished(&mut self, out: &mut Events) {
        self.open.drain(..).for_each(|open| open.count(out));
    }

    /// Drops and counts the unfinished calls of an agent, because another message takes their place.
    pub(super) fn drop_unfinished_of(&mut self, lane: usize, out: &mut Events) {
        let dropped = self.open.extract_if(.., |open| open.lane == lane);
        dropped.for_each(|open| open.count(out));
    }

    fn find(&self, lane: usize, index: u64) -> Option<usize> {
        (self.open.iter()).rposition(|open| (open.lane, open.index) == (lane, index))
    }
}

impl Open {
    /// Counts the call, if its tool can change things.
    fn count(self, out: &mut Events) {
        if tools::kind(&self.name).has_side_effects() {
            out.unfinished_call();
        }
    }

    fn call(self) -> WrittenCall {
        let text = self.json;
        let input = if text.trim().is_empty() {
            match self.first {
                Value::Null => Value::Object(Map::new()),
                first => first,
            }
        } else {
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        };
        WrittenCall {
            lane: self.lane,
            id: self.id,
            name: self.name,
            input,
        }
    }
}
