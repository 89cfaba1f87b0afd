//! What the events of a run add up to: text and tools, kept once. Pure.

use std::collections::HashMap;

use crate::{AgentEvent, Id};

/// The text of the main agent, with what can still be retracted.
///
/// A message is a run of text with one id. Text without an id is one message until a tool is used or ends.
/// The end of a turn parts no message: some CLIs go on with it.
#[derive(Debug, Clone, Default)]
pub struct TextLedger {
    text: String,
    /// Message and end of each run of text of one message.
    pieces: Vec<(Option<Id>, usize)>,
    /// A tool was called or has ended since the last text.
    interrupted: bool,
}

impl TextLedger {
    /// Takes an event into account.
    pub fn event(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Text(e) if e.parent_tool_id.is_none() => {
                self.push(e.message_id.as_ref(), &e.text);
            }
            AgentEvent::Retract(e) => self.retract(&e.message_id),
            AgentEvent::ToolUse(e) => self.interrupted |= e.parent_tool_id.is_none(),
            AgentEvent::ToolResult(e) => self.interrupted |= e.parent_tool_id.is_none(),
            _ => {}
        }
    }

    fn push(&mut self, message: Option<&Id>, text: &str) {
        self.text.push_str(text);
        let end = self.text.len();
        match self.pieces.last_mut() {
            Some((last, last_end))
                if last.as_ref() == message && (message.is_some() || !self.interrupted) =>
            {
                *last_end = end;
            }
            _ => self.pieces.push((message.cloned(), end)),
        }
        self.interrupted = false;
    }

    /// Removes the text of a message.
    pub fn retract(&mut self, message: &Id) {
        if !(self.pieces.iter()).any(|(id, _)| id.as_ref() == Some(message)) {
            return;
        }
        let mut kept = Self::default();
        for (id, text) in self.pieces() {
            if id != Some(message) {
                kept.text.push_str(text);
                kept.pieces.push((id.cloned(), kept.text.len()));
            }
        }
        *self = kept;
    }

    /// All of it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// All of it, without a copy.
    pub fn into_text(self) -> String {
        self.text
    }

    /// The runs of text of one message, in order.
    pub fn pieces(&self) -> impl Iterator<Item = (Option<&Id>, &str)> {
        let mut start = 0;
        self.pieces.iter().map(move |(id, end)| {
            let text = &self.text[start..*end];
            start = *end;
            (id.as_ref(), text)
        })
    }

    /// The last message, whole.
    pub fn last_message(&self) -> Option<String> {
        let (last, _) = self.pieces.last()?;
        let count = self.pieces.len();
        let of_last = |(index, (id, text)): (usize, (Option<&Id>, _))| {
            let is_last = id == last.as_ref() && (id.is_some() || index + 1 == count);
            is_last.then_some(text)
        };
        Some(self.pieces().enumerate().filter_map(of_last).collect())
    }
}

/// The tools that were called.
#[derive(Debug, Clone, Default)]
pub struct ToolLedger {
    by_id: HashMap<Id, String>,
    open: Vec<Id>,
}

impl ToolLedger {
    /// A tool is called. `false` if the id was used before.
    pub fn start(&mut self, id: &Id, name: &str) -> bool {
        if self.by_id.contains_key(id) {
            return false;
        }
        self.by_id.insert(id.clone(), name.to_owned());
        self.open.push(id.clone());
        true
    }

    /// A call ended. `false` if none of this id is open.
    pub fn end(&mut self, id: &Id) -> bool {
        match self.open.iter().position(|open| open == id) {
            Some(index) => {
                self.open.remove(index);
                true
            }
            None => false,
        }
    }

    /// Whether no tool was called.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The calls that have not ended, in order.
    pub fn open(&self) -> &[Id] {
        &self.open
    }

    /// The same, without a copy.
    pub fn into_open(self) -> Vec<Id> {
        self.open
    }

    /// The names of the tools that have not ended.
    pub fn open_names(&self) -> Vec<String> {
        self.open
            .iter()
            .filter_map(|id| self.by_id.get(id).cloned())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Retract, Text, ToolKind, ToolUse};

    fn say(ledger: &mut TextLedger, id: Option<&str>, text: &str) {
        ledger.event(&AgentEvent::Text(Text {
            text: text.into(),
            message_id: id.map(Id::from),
            parent_tool_id: None,
        }));
    }

    #[test]
    fn messages_end_where_the_id_changes_or_a_tool_is_used() {
        let mut ledger = TextLedger::default();
        say(&mut ledger, None, "I lo");
        say(&mut ledger, None, "ok.");
        ledger.event(&AgentEvent::ToolUse(Box::new(ToolUse {
            tool_name: "Read".into(),
            tool_id: "t".into(),
            input: serde_json::json!({}),
            kind: ToolKind::Read,
            mcp: None,
            parent_tool_id: None,
        })));
        say(&mut ledger, None, "Done.");
        say(&mut ledger, Some("m"), "mo");
        say(&mut ledger, Some("n"), "other");
        say(&mut ledger, Some("m"), "re");
        let m = Id::from("m");
        let n = Id::from("n");
        let pieces: Vec<_> = ledger.pieces().collect();
        assert_eq!(
            pieces,
            [
                (None, "I look."),
                (None, "Done."),
                (Some(&m), "mo"),
                (Some(&n), "other"),
                (Some(&m), "re"),
            ]
        );
        assert_eq!(ledger.last_message().as_deref(), Some("more"));
        ledger.event(&AgentEvent::Retract(Retract { message_id: m }));
        assert_eq!(ledger.text(), "I look.Done.other");
        assert_eq!(ledger.last_message().as_deref(), Some("other"));
    }
}
