//! Accumulates the events of a run: text, tools and usage. Pure.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ops::Add;

use crate::{AgentEvent, CostSource, Id, RunResult, TextPiece, Usage};

/// The messages of the main agent, which can still be retracted.
///
/// A message is consecutive text with the same id, or without one. A tool call, its result and the end of a turn
/// end it, so that later text is shown after them.
#[derive(Debug, Clone, Default)]
pub struct TextLedger {
    text: String,
    pieces: Vec<Piece>,
    /// True if the last message has ended.
    interrupted: bool,
}

#[derive(Debug, Clone)]
struct Piece {
    message: Option<Id>,
    /// End offset in the whole text, in bytes.
    end: usize,
    /// True if it is only white space.
    is_blank: bool,
}

impl TextLedger {
    /// Updates the ledger with an event.
    pub fn event(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Text(e) if e.parent_tool_id.is_none() => {
                self.push(e.message_id.as_ref(), &e.text);
            }
            AgentEvent::Retract(e) => self.retract(&e.message_id),
            AgentEvent::ToolUse(e) => self.interrupted |= e.parent_tool_id.is_none(),
            AgentEvent::ToolResult(e) => self.interrupted |= e.parent_tool_id.is_none(),
            AgentEvent::TurnEnd(_) => self.interrupted = true,
            _ => {}
        }
    }

    /// Adds text of a message.
    pub fn push(&mut self, message: Option<&Id>, text: &str) {
        let goes_on = |last: &Piece| last.message.as_ref() == message;
        if self.interrupted || !self.pieces.last().is_some_and(goes_on) {
            self.pieces.push(Piece {
                message: message.cloned(),
                end: self.len(),
                is_blank: true,
            });
            self.interrupted = false;
        }
        self.push_more(text);
    }

    /// Appends text to the open message. Without one the text is discarded.
    #[inline]
    pub fn push_more(&mut self, text: &str) {
        let Some(last) = self.pieces.last_mut().filter(|_| !self.interrupted) else {
            return;
        };
        last.end += text.len();
        last.is_blank = last.is_blank && text.trim().is_empty();
        self.text.push_str(text);
    }

    /// Ends the open message, if any.
    pub fn end_message(&mut self) {
        self.interrupted = true;
    }

    /// Removes the text of a message.
    pub fn retract(&mut self, message: &Id) {
        self.retract_after(0, message);
    }

    /// Removes the text of a message from all but the first `kept` pieces.
    pub fn retract_after(&mut self, kept: usize, message: &Id) {
        let is_it = |piece: &Piece| piece.message.as_ref() == Some(message);
        if !self.pieces.iter().skip(kept).any(is_it) {
            return;
        }
        // Text after it is another message.
        let interrupted = self.interrupted || self.pieces.last().is_some_and(is_it);
        let (mut start, mut text) = (0, String::new());
        let mut pieces = Vec::new();
        for (index, piece) in self.pieces.iter().enumerate() {
            if index < kept || !is_it(piece) {
                text.push_str(self.text.get(start..piece.end).unwrap_or_default());
                pieces.push(Piece {
                    end: text.len(),
                    ..piece.clone()
                });
            }
            start = piece.end;
        }
        (self.text, self.pieces, self.interrupted) = (text, pieces, interrupted);
    }

    /// Removes all but the first `kept` pieces.
    pub fn truncate(&mut self, kept: usize) {
        self.pieces.truncate(kept);
        let end = self.pieces.last().map_or(0, |last| last.end);
        self.text.truncate(end);
        self.interrupted = true;
    }

    /// Returns the length of the text, in bytes.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns whether there is only white space.
    pub fn is_blank(&self) -> bool {
        self.pieces.iter().all(|piece| piece.is_blank)
    }

    /// Returns the whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the whole text without a copy.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Returns the lengths and ids of the pieces of the text.
    pub fn text_pieces(&self) -> Vec<TextPiece> {
        let mut start = 0;
        let piece = |piece: &Piece| {
            let bytes = (piece.end - start) as u64;
            start = piece.end;
            TextPiece::new(bytes).message_id(piece.message.clone())
        };
        self.pieces.iter().map(piece).collect()
    }

    /// Returns the number of messages.
    pub fn count(&self) -> usize {
        self.pieces.len()
    }

    /// Returns the number of messages that have ended.
    pub fn count_over(&self) -> usize {
        let goes_on = !self.interrupted && !self.pieces.is_empty();
        self.count() - usize::from(goes_on)
    }

    /// Returns the messages, in order.
    pub fn pieces(&self) -> impl ExactSizeIterator<Item = (Option<&Id>, &str)> {
        let mut start = 0;
        self.pieces.iter().map(move |piece| {
            let text = self.text.get(start..piece.end).unwrap_or_default();
            start = piece.end;
            (piece.message.as_ref(), text)
        })
    }

    /// Returns the complete last message, including earlier parts with the same id.
    pub fn last_message(&self) -> Option<String> {
        let count = self.pieces.len();
        let last = &self.pieces.last()?.message;
        let of_last = |(index, (id, text)): (usize, (Option<&Id>, _))| {
            let is_last = index + 1 == count || (id.is_some() && id == last.as_ref());
            is_last.then_some(text)
        };
        Some(self.pieces().enumerate().filter_map(of_last).collect())
    }
}

/// The tool calls of a run, each with data of its user (`T`). Calls that have ended are kept.
#[derive(Debug, Clone)]
pub struct ToolLedger<T = ()> {
    calls: HashMap<Id, Call<T>>,
    /// The open calls by their numbers, so that a call of any number of open ones ends without a search.
    open: BTreeMap<usize, Id>,
}

#[derive(Debug, Clone)]
struct Call<T> {
    data: T,
    /// Number of calls before it.
    number: usize,
}

impl<T> Default for ToolLedger<T> {
    fn default() -> Self {
        Self {
            calls: HashMap::new(),
            open: BTreeMap::new(),
        }
    }
}

impl<T> ToolLedger<T> {
    /// Adds a tool call. Returns `false` if the id was used before.
    pub fn start(&mut self, id: &Id, call: T) -> bool {
        let number = self.calls.len();
        let Entry::Vacant(new) = self.calls.entry(id.clone()) else {
            return false;
        };
        new.insert(Call { data: call, number });
        self.open.insert(number, id.clone());
        true
    }

    /// Ends a call and returns its data, or `None` if no call with this id is open.
    pub fn end(&mut self, id: &Id) -> Option<&T> {
        let call = self.calls.get(id)?;
        self.open.remove(&call.number)?;
        Some(&call.data)
    }

    /// Returns whether no tool was called.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns the data of a call, whether it is open or not.
    pub fn get(&self, id: &Id) -> Option<&T> {
        self.calls.get(id).map(|call| &call.data)
    }

    /// Returns a mutable reference to the data of an open call.
    pub fn open_mut(&mut self, id: &Id) -> Option<&mut T> {
        let call = self.calls.get_mut(id)?;
        (self.open.contains_key(&call.number)).then_some(&mut call.data)
    }

    /// Returns the open calls, in order.
    pub fn open(&self) -> impl ExactSizeIterator<Item = (&Id, &T)> + DoubleEndedIterator {
        // `start` puts each open id into the map.
        (self.open.values()).map(|id| (id, &self.calls[id].data))
    }

    /// Returns all calls, open or not, in any order.
    pub fn calls(&self) -> impl ExactSizeIterator<Item = (&Id, &T)> {
        self.calls.iter().map(|(id, call)| (id, &call.data))
    }

    /// Returns the ids of the open calls, in order.
    pub fn into_open(self) -> Vec<Id> {
        self.open.into_values().collect()
    }
}

/// Usage as reported during a run. Figures that were not reported are absent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct UsageLedger {
    /// Tokens.
    pub usage: Option<Usage>,
    /// Cost in USD.
    pub cost_usd: Option<f64>,
    /// The cost is an estimate, at least in part.
    pub is_estimate: bool,
}

impl UsageLedger {
    /// Updates the ledger with an event. The figures of events are cumulative.
    pub fn event(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Usage(report) => {
                self.usage = Some(report.usage);
                self.set_cost(report.cost_usd, report.cost_source);
            }
            AgentEvent::TurnEnd(end) => self.set_cost(end.cost_usd, None),
            _ => {}
        }
    }

    /// Updates the ledger with a result, whose figures take precedence.
    pub fn result(&mut self, result: &RunResult) {
        self.usage = result.usage.or(self.usage);
        self.set_cost(result.total_cost_usd, result.cost_source);
    }

    fn set_cost(&mut self, usd: Option<f64>, source: Option<CostSource>) {
        if usd.is_some() {
            self.cost_usd = usd;
            self.is_estimate = source == Some(CostSource::Estimated);
        }
    }

    /// Returns the source of the cost. A cost that is partly an estimate counts as one.
    pub fn cost_source(&self) -> Option<CostSource> {
        self.cost_usd.map(|_| {
            if self.is_estimate {
                CostSource::Estimated
            } else {
                CostSource::Reported
            }
        })
    }

    /// Returns the sum of both. A figure that only one side has is kept unchanged.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            usage: sum(self.usage, other.usage, Usage::plus),
            cost_usd: sum(self.cost_usd, other.cost_usd, f64::add),
            is_estimate: self.is_estimate || other.is_estimate,
        }
    }
}

/// Returns the sum, or the only value.
fn sum<T>(a: Option<T>, b: Option<T>, add: impl FnOnce(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(add(a, b)),
        (one, None) | (None, one) => one,
    }
}

#[cfg(test)]
mod tests;
