//! Text without repetitions.
//!
//! The CLI prints a message when it is complete. If the answer that it is part of breaks off after it,
//! the CLI asks the model again; the message stays in the conversation, so the model may continue after
//! it, or repeat it, and then the CLI prints it again under a new id. So after a reconnect a
//! message that is the same as one of the answer that broke off is that one; one that begins with it
//! takes its place; and any other is new. An answer that broke off ends at the last tool call: text that
//! was emitted before that is not emitted again.
//!
//! In a session the CLI prints messages as they are written. After a reconnect a new one is held back for
//! as long as it may turn out to be a repeated one.

use std::collections::HashMap;

use teamster_core::provider::Events;
use teamster_core::{AgentEvent, Id, Retract, Text, Thinking};

use super::ids::Ids;

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Text,
    Thinking,
}

/// Messages of the model since the last tool call.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    open: Vec<Message>,
    /// The messages of this turn that are complete, by their ids on the wire.
    complete: HashMap<(String, Kind), String>,
    /// The text of the last message.
    last: Option<String>,
    /// The call that started the agent which writes it; `None` for the main agent.
    parent: Option<Id>,
}

/// In place of an id on the wire.
const NO_ID: &str = "item";

#[derive(Debug)]
struct Message {
    /// Its id on the wire, which may be that of an earlier one.
    item: String,
    id: Id,
    parent: Option<Id>,
    kind: Kind,
    text: String,
    complete: bool,
    /// The answer that it is part of broke off, and it has not come again.
    broken_off: bool,
    /// Nothing of it was emitted yet, because it may repeat one from before the answer broke off.
    held: bool,
}

impl Messages {
    /// Those of an agent that this call has started.
    pub(super) fn of_agent(parent: Id) -> Self {
        Self {
            parent: Some(parent),
            ..Self::default()
        }
    }

    /// The call that started the agent which writes them; `None` for the main agent.
    pub(super) fn parent(&self) -> Option<Id> {
        self.parent.clone()
    }

    /// A message as it now is; `complete` if that is all of it. `item` is its id on the wire.
    pub(super) fn say(
        &mut self,
        item: Option<&str>,
        kind: Kind,
        text: &str,
        complete: bool,
        ids: &mut Ids,
        out: &mut Events,
    ) {
        if let Some(item) = item {
            let key = (item.to_owned(), kind);
            // The very same line again, or a late one.
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
            self.last = Some(text.to_owned());
        }
        match self.growing(item, kind) {
            // As if it came at once.
            Some(at) if self.open[at].held => drop(self.open.remove(at)),
            Some(at) => return self.open[at].grow(text, complete, out),
            None => {}
        }
        if text.is_empty() || self.is_repeated(item, kind, text, complete, out) {
            return;
        }
        let mut message = Message {
            item: item.to_owned(),
            id: ids.fresh(item),
            parent: self.parent(),
            kind,
            text: String::new(),
            complete: false,
            broken_off: false,
            held: false,
        };
        message.grow(text, complete, out);
        self.open.push(message);
    }

    /// A piece of a message that is being written. `item` is its id on the wire.
    pub(super) fn add(
        &mut self,
        item: &str,
        kind: Kind,
        piece: &str,
        ids: &mut Ids,
        out: &mut Events,
    ) {
        if piece.is_empty() {
            return;
        }
        let at = match self.growing(item, kind) {
            Some(at) => at,
            // A late one.
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
            message.id = ids.fresh(item);
            out.push(message.event(message.text.clone()));
        }
        self.open.push(message);
    }

    /// Another message begins: one that is half written was dropped.
    pub(crate) fn begins(&mut self, item: &str, out: &mut Events) {
        self.drop_halves(|message| message.item != item, out);
    }

    /// The turn ended well: what is half written was dropped.
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

    /// The answer broke off and the model is asked again.
    pub(crate) fn broke_off(&mut self, out: &mut Events) {
        self.open.retain_mut(|message| {
            if !message.complete && !message.held {
                message.retract(out);
            }
            message.broken_off = true;
            message.complete
        });
    }

    /// A tool was called, or a turn ended: what is whole will not come again.
    pub(crate) fn settle(&mut self) {
        self.open.retain(|message| !message.complete);
    }

    /// A turn began.
    pub(super) fn turn_started(&mut self) {
        self.settle();
        self.complete.clear();
    }

    /// The text of the last message of the run.
    pub(crate) fn last(&self) -> Option<&str> {
        self.last.as_deref()
    }

    /// Whether this message repeats one of the answer that broke off, or may turn out to be one
    /// that does when it is complete. One that was cut short there is retracted.
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
        if let Some(same) = self.open.iter_mut().find(|m| is_old(m) && m.text == text) {
            same.broken_off = false;
            item.clone_into(&mut same.item);
            return true;
        }
        let shorter = |m: &Message| is_old(m) && text.starts_with(&m.text);
        if let Some(at) = self.open.iter().position(shorter) {
            self.open.remove(at).retract(out);
        }
        false
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
        out.push(AgentEvent::Retract(Retract::new(self.id.clone())));
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
