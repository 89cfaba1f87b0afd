//! Text without repetitions: the same text comes as deltas and as a complete message, reasoning three times.
//!
//! Each message of each agent is followed by its id. Deltas are passed on as they come; the complete
//! message then only adds missing text, and replaces them if it differs.

use teamster_core::provider::Events;
use teamster_core::provider::surrogates::Joiner;
use teamster_core::{AgentEvent, Id, Retract, Text, Thinking};

use super::errors::Failure;

/// How many ended messages of one agent are remembered: a late line refers to the last one or two.
const REMEMBERED: usize = 4;

/// The messages of the main agent or of one sub-agent.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// The CLI's id of the agent; none for the main agent.
    pub(super) agent: Option<String>,
    /// The tool call that started the agent.
    pub(super) parent: Option<Id>,
    /// The CLI's id of that call.
    pub(super) raw_parent: Option<String>,
    /// Messages that stream: their whole has not come.
    open: Vec<Streamed>,
    /// Messages that are complete, or were ended before, and their text.
    ended: Vec<(Id, String)>,
    /// Reasoning of this request to the model.
    reasoning: Vec<Streamed>,
    /// Complete reasoning of this request.
    complete_reasoning: String,
    /// Text of messages that the output limit cut off, since the last tool call.
    cut: String,
    /// The answer, where it is more than its last message.
    pub(super) answer: Option<String>,
    /// Why the last request failed.
    pub(super) failure: Option<Failure>,
    /// Repetitions of the current request.
    pub(super) retries: u32,
    /// The last request failed, and was not made again.
    pub(super) call_failed: bool,
    /// The current request ended well.
    pub(super) call_succeeded: bool,
    /// The last turn ended in the middle of a message.
    pub(super) cut_off: bool,
    /// No whole message and no call has come since a turn that ended so.
    pub(super) unfinished: bool,
}

/// A message, or a piece of reasoning, that comes in deltas.
#[derive(Debug)]
struct Streamed {
    id: Id,
    text: String,
    joiner: Joiner,
}

impl Lane {
    pub(super) fn new(agent: Option<&str>, parent: Option<Id>) -> Self {
        Self {
            agent: agent.map(str::to_owned),
            parent,
            ..Self::default()
        }
    }

    /// A request to the model begins: what it thinks is new.
    pub(super) fn call_starts(&mut self) {
        self.call_succeeded = false;
        self.reasoning.clear();
        self.complete_reasoning.clear();
    }

    /// A delta of a message. It may begin or end within a surrogate pair.
    pub(super) fn delta(&mut self, id: &str, piece: &[u8], out: &mut Events) {
        if self.ended.iter().any(|(ended, _)| **ended == *id) {
            return;
        }
        let streamed = Streamed::in_list(&mut self.open, id);
        let (id, text) = streamed.push(piece);
        self.say(id, text, out);
    }

    /// A delta of reasoning.
    pub(super) fn reasoning_delta(&mut self, id: &str, piece: &[u8], out: &mut Events) {
        let streamed = Streamed::in_list(&mut self.reasoning, id);
        let (id, text) = streamed.push(piece);
        self.think(id, text, out);
    }

    /// A complete message: emits text missing in its deltas, or all of it again if they differ.
    pub(super) fn message(&mut self, id: &str, content: &str, calls_tools: bool, out: &mut Events) {
        let open = self.open.iter().position(|m| *m.id == *id);
        let (id, streamed) = match open {
            Some(at) => {
                let message = self.open.remove(at);
                (message.id, message.text)
            }
            None => match self.ended.iter().position(|(ended, _)| **ended == *id) {
                Some(at) => self.ended.remove(at),
                None => (Id::from(id), String::new()),
            },
        };
        if let Some(rest) = content.strip_prefix(&*streamed) {
            self.say(id.clone(), rest.to_owned(), out);
        } else if streamed.trim().is_empty() {
            self.say(id.clone(), content.to_owned(), out);
        } else if streamed.trim() != content.trim() && !id.is_empty() {
            retract(id.clone(), out);
            self.say(id.clone(), content.to_owned(), out);
        }
        self.answer = None;
        self.unfinished = false;
        self.cut_off = false;
        if calls_tools {
            self.cut.clear();
        } else if !self.cut.is_empty() && !content.is_empty() {
            self.answer = Some(std::mem::take(&mut self.cut) + content);
        }
        self.end(id, content.to_owned());
        self.retries = 0;
        self.failure = None;
    }

    /// A complete message cannot be read: the text of its deltas is kept.
    pub(super) fn message_ends(&mut self, id: &str) {
        if let Some(at) = self.open.iter().position(|m| *m.id == *id) {
            let message = self.open.remove(at);
            self.end(message.id, message.text);
        }
        self.unfinished = false;
    }

    /// The complete reasoning of a message: nothing is new if it came in deltas.
    pub(super) fn reasoning_of_message(&mut self, id: &str, text: &str, out: &mut Events) {
        let streamed: String = self.reasoning.iter().map(|r| r.text.as_str()).collect();
        let text = text.trim();
        let new = if streamed.trim().is_empty() {
            text
        } else {
            text.strip_prefix(streamed.trim()).unwrap_or_default()
        };
        self.complete_reasoning.push_str(text);
        if !new.trim().is_empty() {
            self.think(Id::from(id), new.to_owned(), out);
        }
    }

    /// A complete piece of reasoning, which comes after the message that it led to.
    pub(super) fn reasoning(&mut self, id: &str, text: &str, out: &mut Events) {
        let streamed = self.reasoning.iter().any(|r| *r.id == *id);
        let text = text.trim();
        if !streamed && !text.is_empty() && !self.complete_reasoning.contains(text) {
            self.complete_reasoning.push_str(text);
            self.think(Id::from(id), text.to_owned(), out);
        }
    }

    /// The CLI asks the model again: the text of the failed request is withdrawn. The next message may
    /// have the same id.
    pub(super) fn retry(&mut self, out: &mut Events) {
        self.call_failed = false;
        for half in std::mem::take(&mut self.open) {
            if !half.text.is_empty() {
                retract(half.id, out);
            }
        }
        for half in std::mem::take(&mut self.reasoning) {
            if !half.text.is_empty() {
                retract(half.id, out);
            }
        }
        self.complete_reasoning.clear();
    }

    /// A turn is over. Messages whose whole never came stay as they are. If the request itself had
    /// ended well, they were cut off, by the output limit if the CLI lets the model go on.
    pub(super) fn turn_ends(&mut self) {
        self.cut_off = false;
        for half in std::mem::take(&mut self.open) {
            if !half.text.is_empty() && self.call_succeeded {
                self.cut.push_str(&half.text);
                self.answer = Some(self.cut.clone());
                self.cut_off = true;
                self.unfinished = true;
            }
            self.end(half.id, half.text);
        }
    }

    fn end(&mut self, id: Id, text: String) {
        // Without an id it could be taken for another message.
        if id.is_empty() {
            return;
        }
        if self.ended.len() == REMEMBERED {
            self.ended.remove(0);
        }
        self.ended.push((id, text));
    }

    fn say(&self, id: Id, text: String, out: &mut Events) {
        if !text.is_empty() {
            out.push(AgentEvent::Text(
                Text::new(text)
                    .message_id(Some(id).filter(|id| !id.is_empty()))
                    .parent_tool_id(self.parent.clone()),
            ));
        }
    }

    fn think(&self, id: Id, text: String, out: &mut Events) {
        if !text.is_empty() {
            out.push(AgentEvent::Thinking(
                Thinking::new(text)
                    .message_id(Some(id).filter(|id| !id.is_empty()))
                    .parent_tool_id(self.parent.clone()),
            ));
        }
    }
}

/// Withdraws the text under this id. Without an id that is not possible.
fn retract(message_id: Id, out: &mut Events) {
    if !message_id.is_empty() {
        out.push(AgentEvent::Retract(Retract::new(message_id)));
    }
}

impl Streamed {
    /// The one of this id, which may be new.
    fn in_list<'a>(list: &'a mut Vec<Self>, id: &str) -> &'a mut Self {
        // The one that streams is nearly always the last one.
        let at = match list.iter().rposition(|m| *m.id == *id) {
            Some(at) => at,
            None => {
                list.push(Self {
                    id: Id::from(id),
                    text: String::new(),
                    joiner: Joiner::default(),
                });
                list.len() - 1
            }
        };
        &mut list[at]
    }

    fn push(&mut self, piece: &[u8]) -> (Id, String) {
        let text = self.joiner.push(piece).into_owned();
        self.text.push_str(&text);
        (self.id.clone(), text)
    }
}
