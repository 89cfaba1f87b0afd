//! Message text without repetitions.
//!
//! The CLI prints a message when it is complete. If the surrounding answer breaks off after it, the CLI asks the
//! model again. The message stays in the conversation, so the model may continue after it or repeat it, and then the
//! CLI prints it again under a new id. So after a reconnect, a message that equals one of the broken answer is a
//! repetition, one that begins with it replaces it, and any other is new. A broken answer ends at the last tool call:
//! text emitted before that is not emitted again.
//!
//! In a session the CLI prints messages as they are written. After a reconnect, a new message is held back while it
//! may still be a repetition.

use std::collections::{HashMap, HashSet};

use teamster_core::provider::{Events, UniqueIds};
use teamster_core::{AgentEvent, Id, Retract, Text, Thinking};

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Text,
    Thinking,
}

/// Messages of the model since the last tool call.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// Messages that are being written, or whose answer broke off. Each new message is compared with all of them.
    open: Vec<Message>,
    /// Complete messages, which matter only if the answer breaks off.
    finished: Vec<Message>,
    /// Complete messages of this turn, by their ids on the wire.
    complete: HashMap<(String, Kind), String>,
    /// Messages of this turn that must not be shown, by their ids on the wire.
    withheld: HashSet<(String, Kind)>,
    /// The id on the wire and the text of the last message.
    last: Option<(String, String)>,
    /// The call that started the agent which writes the messages; `None` for the main agent.
    parent: Option<Id>,
}

/// Placeholder for a missing id on the wire.
const NO_ID: &str = "item";

#[derive(Debug)]
struct Message {
    /// Id on the wire, which may be the same as an earlier message's.
    item: String,
    id: Id,
    parent: Option<Id>,
    kind: Kind,
    text: String,
    complete: bool,
    /// True if the surrounding answer broke off and the message was not repeated yet.
    broken_off: bool,
    /// True if nothing was emitted yet, because the message may repeat one from before the answer broke off.
    held: bool,
}

impl Messages {
    /// Creates the messages of an agent that this call started.
    pub(super) fn of_agent(parent: Id) -> Self {
        Self {
            parent: Some(parent),
            ..Self::default()
        }
    }

    /// Returns the call that started the agent which writes the messages; `None` for the main agent.
    pub(super) fn parent(&self) -> Option<Id> {
        self.parent.clone()
    }

    /// Sets the current text of a message, which is final if `complete`. `item` is its id on the wire.
    pub(super) fn say(
        &mut self,
        item: Option<&str>,
        kind: Kind,
        text: &str,
        complete: bool,
        ids: &mut UniqueIds,
        out: &mut Events,
    ) {
        if let Some(item) = item {
            let key = (item.to_owned(), kind);
            if self.withheld.contains(&key) {
                return;
            }
            // The same line again, or a late one.
            let is_known = |known: &String| known == text || (!complete && known.starts_with(text));
            if self.complete.get(&key).is_some_and(is_known) {
                return;
            }
            if complete {
                self.complete.insert(key, text.to_owned());
            }
        }
        let item = item.unwrap_or(NO_ID);
        if kind == Kind::Text && complete && !text.is_empty() {
            self.last = Some((item.to_owned(), text.to_owned()));
        }
        match self.growing(item, kind) {
            // Handle it as if it had come at once.
            Some(at) if self.open[at].held => drop(self.open.remove(at)),
            Some(at) => {
                self.open[at].grow(text, complete, out);
                if complete {
                    self.finished.push(self.open.remove(at));
                }
                return;
            }
            None => {}
        }
        if text.is_empty() || self.is_repeated(item, kind, text, complete, out) {
            return;
        }
        let mut message = Message {
            item: item.to_owned(),
            id: ids.unique(item),
            parent: self.parent(),
            kind,
            text: String::new(),
            complete: false,
            broken_off: false,
            held: false,
        };
        message.grow(text, complete, out);
        let list = if complete {
            &mut self.finished
        } else {
            &mut self.open
        };
        list.push(message);
    }

    /// Takes back a message that must not be shown, with this text at its end. Returns `false` if it was
    /// withheld before.
    pub(super) fn withhold(
        &mut self,
        item: Option<&str>,
        kind: Kind,
        text: &str,
        out: &mut Events,
    ) -> bool {
        let item = item.unwrap_or(NO_ID);
        if !self.withheld.insert((item.to_owned(), kind)) {
            return false;
        }
        let is_it = |message: &Message| message.item == item && message.kind == kind;
        for messages in [&mut self.open, &mut self.finished] {
            messages.retain(|message| {
                if is_it(message) && !message.held {
                    message.retract(out);
                }
                !is_it(message)
            });
        }
        // It may repeat a message of the broken answer, which was shown.
        let repeated = self.repeated(kind, text).map(|at| self.open.remove(at));
        if let Some(repeated) = &repeated {
            repeated.retract(out);
        }
        if kind == Kind::Text {
            let is_last = |last: &str| repeated.as_ref().is_some_and(|it| it.text == last);
            self.last
                .take_if(|(id, last)| id == item || last == text || is_last(last));
        }
        true
    }

    /// Adds a piece of a message that is being written. `item` is its id on the wire.
    pub(super) fn add(
        &mut self,
        item: &str,
        kind: Kind,
        piece: &str,
        ids: &mut UniqueIds,
        out: &mut Events,
    ) {
        if piece.is_empty() || self.withheld.contains(&(item.to_owned(), kind)) {
            return;
        }
        let at = match self.growing(item, kind) {
            Some(at) => at,
            // A late piece.
            None if self.complete.contains_key(&(item.to_owned(), kind)) => return,
            None => {
                self.open.push(Message {
                    item: item.to_owned(),
                    id: Id::from(item),
                    parent: self.parent(),
                    kind,
                    text: String::new(),
                    complete: false,
                    broken_off: false,
                    held: true,
                });
                self.open.len() - 1
            }
        };
        let message = &mut self.open[at];
        message.text.push_str(piece);
        if !message.held {
            out.push(message.event(piece.to_owned()));
            return;
        }
        let mut message = self.open.remove(at);
        let is_old = |m: &Message| m.broken_off && m.kind == kind;
        let may_be = |m: &Message| is_old(m) && m.text.starts_with(&message.text);
        if !self.open.iter().any(may_be) {
            let shorter = |m: &Message| is_old(m) && message.text.starts_with(&m.text);
            if let Some(at) = self.open.iter().position(shorter) {
                self.open.remove(at).retract(out);
            }
            message.held = false;
            message.id = ids.unique(item);
            out.push(message.event(message.text.clone()));
        }
        self.open.push(message);
    }

    /// Begins another message. An unfinished one was dropped.
    pub(crate) fn begins(&mut self, item: &str, out: &mut Events) {
        self.drop_halves(|message| message.item != item, out);
    }

    /// Ends the turn successfully. An unfinished message was dropped.
    pub(crate) fn ended(&mut self, out: &mut Events) {
        self.drop_halves(|_| true, out);
    }

    fn drop_halves(&mut self, which: impl Fn(&Message) -> bool, out: &mut Events) {
        self.open.retain(|message| {
            let dropped = !message.complete && which(message);
            if dropped && !message.held {
                message.retract(out);
            }
            !dropped
        });
    }

    fn growing(&self, item: &str, kind: Kind) -> Option<usize> {
        let is_it = |m: &Message| !m.complete && m.item == item && m.kind == kind;
        self.open.iter().position(is_it)
    }

    /// Marks the answer as broken off: the model is asked again.
    pub(crate) fn broke_off(&mut self, out: &mut Events) {
        self.open.retain_mut(|message| {
            if !message.complete && !message.held {
                message.retract(out);
            }
            message.complete
        });
        self.open.append(&mut self.finished);
        for message in &mut self.open {
            message.broken_off = true;
        }
    }

    /// Handles a tool call or the end of a turn: complete messages will not be repeated.
    pub(crate) fn settle(&mut self) {
        self.open.retain(|message| !message.complete);
        self.finished.clear();
    }

    /// Begins a turn.
    pub(super) fn turn_started(&mut self) {
        self.settle();
        self.complete.clear();
        self.withheld.clear();
    }

    /// Returns the text of the run's last message.
    pub(crate) fn last(&self) -> Option<&str> {
        self.last.as_ref().map(|(_, text)| &**text)
    }

    /// Returns whether this message repeats one of the broken answer, or may still become a repetition. A message
    /// that was cut short there is retracted.
    fn is_repeated(
        &mut self,
        item: &str,
        kind: Kind,
        text: &str,
        complete: bool,
        out: &mut Events,
    ) -> bool {
        let is_old = |m: &Message| m.broken_off && m.kind == kind;
        if !complete {
            let alike = |m: &Message| m.text.starts_with(text) || text.starts_with(&m.text);
            return self.open.iter().any(|m| is_old(m) && alike(m));
        }
        let Some(at) = self.repeated(kind, text) else {
            return false;
        };
        let mut old = self.open.remove(at);
        if old.text != text {
            old.retract(out);
            return false;
        }
        old.broken_off = false;
        item.clone_into(&mut old.item);
        self.finished.push(old);
        true
    }

    /// Returns the index of the message of the broken answer that equals a complete message, else of one that is its
    /// beginning.
    fn repeated(&self, kind: Kind, text: &str) -> Option<usize> {
        let is_old = |m: &Message| m.broken_off && m.kind == kind;
        let same = |m: &Message| is_old(m) && m.text == text;
        let shorter = |m: &Message| is_old(m) && text.starts_with(&m.text);
        let open = || self.open.iter();
        open().position(same).or_else(|| open().position(shorter))
    }
}

impl Message {
    fn grow(&mut self, text: &str, complete: bool, out: &mut Events) {
        self.complete = complete;
        let new = if let Some(new) = text.strip_prefix(self.text.as_str()) {
            new
        } else {
            self.retract(out);
            text
        };
        if !new.is_empty() {
            out.push(self.event(new.to_owned()));
        }
        text.clone_into(&mut self.text);
    }

    fn retract(&self, out: &mut Events) {
        out.push(Retract::new(self.id.clone()));
    }

    fn event(&self, text: String) -> AgentEvent {
        let message_id = Some(self.id.clone());
        match self.kind {
            Kind::Text => AgentEvent::Text(
                Text::new(text)
                    .message_id(message_id)
                    .parent_tool_id(self.parent.clone()),
            ),
            Kind::Thinking => AgentEvent::Thinking(
                Thinking::new(text)
                    .message_id(message_id)
                    .parent_tool_id(self.parent.clone()),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_messages_are_compared_only_after_a_broken_answer() {
        let (mut messages, mut ids, mut out) =
            (Messages::default(), UniqueIds::default(), Events::default());
        for item in ["item_0", "item_1", "item_2"] {
            messages.say(Some(item), Kind::Text, "Ha!", true, &mut ids, &mut out);
        }
        assert!(messages.open.is_empty());
        messages.broke_off(&mut out);
        assert_eq!(messages.open.len(), 3);
        messages.say(Some("item_3"), Kind::Text, "Ha!", true, &mut ids, &mut out);
        assert_eq!(messages.open.len(), 2);
    }

    /// Returns how many messages were retracted, and what is left of the last one.
    fn withheld(items: &[(&str, &str)], item: &str, text: &str) -> (usize, Option<String>) {
        let (mut messages, mut ids, mut out) =
            (Messages::default(), UniqueIds::default(), Events::default());
        for &(item, text) in items {
            messages.say(Some(item), Kind::Text, text, true, &mut ids, &mut out);
        }
        messages.broke_off(&mut out);
        assert!(messages.withhold(Some(item), Kind::Text, text, &mut out));
        let is_retract = |event: &AgentEvent| matches!(event, AgentEvent::Retract(_));
        let retracted = out.drain().filter(is_retract).count();
        (retracted, messages.last().map(str::to_owned))
    }

    #[test]
    fn a_withheld_message_is_taken_back_under_each_of_its_ids() {
        // Made by hand: it was shown with another text, and before the answer broke off.
        assert_eq!(withheld(&[("item_0", "A")], "item_0", "B"), (1, None));
        assert_eq!(withheld(&[("item_0", "A")], "item_1", "A"), (1, None));
        assert_eq!(withheld(&[("item_0", "A")], "item_1", "A, B"), (1, None));
        let other = Some("A".to_owned());
        assert_eq!(withheld(&[("item_0", "A")], "item_1", "B"), (0, other));
    }
}
