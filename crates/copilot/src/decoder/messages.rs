//! Text without repetitions: the CLI prints text as deltas and as a complete message, and reasoning three times.
//!
//! Messages are tracked by agent and id. Deltas are passed on as they come. The complete message then only adds
//! missing text, or replaces the deltas if it differs.

use teamster_core::provider::Events;
use teamster_core::provider::surrogates::Joiner;
use teamster_core::{Id, Retract, Text, Thinking};

use super::errors::Failure;

/// Number of remembered ended messages per agent. A late line refers to one of the last two.
const REMEMBERED: usize = 4;

/// The messages of the main agent or of one sub-agent.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// The CLI's id of the agent; `None` for the main agent.
    pub(super) agent: Option<String>,
    /// Name of the sub-agent, if the CLI has printed it.
    pub(super) name: Option<String>,
    /// True if the failure of the sub-agent was reported.
    pub(super) failure_is_reported: bool,
    /// The tool call that started the agent.
    pub(super) parent: Option<Id>,
    /// The CLI's id of that call.
    pub(super) raw_parent: Option<String>,
    /// Streamed messages that are not complete yet.
    open: Vec<Streamed>,
    /// Ids and texts of messages that are complete or were ended before.
    ended: Vec<(Id, String)>,
    /// Reasoning of this request to the model.
    reasoning: Vec<Streamed>,
    /// Complete reasoning of this request.
    complete_reasoning: String,
    /// Text of messages truncated by the output limit, since the last tool call.
    cut: String,
    /// The answer, if it is more than its last message.
    pub(super) answer: Option<String>,
    /// Reason of the last request's failure.
    pub(super) failure: Option<Failure>,
    /// Number of retries of the current request.
    pub(super) retries: u32,
    /// True if the last request failed and was not repeated.
    pub(super) call_failed: bool,
    /// True if the current request succeeded.
    pub(super) call_succeeded: bool,
    /// True if the last turn ended in the middle of a message.
    pub(super) cut_off: bool,
    /// True if no complete message and no call has followed such a turn.
    pub(super) unfinished: bool,
}

/// A message or a piece of reasoning that comes in deltas.
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

    /// Begins a request to the model, whose reasoning is new.
    pub(super) fn call_starts(&mut self) {
        self.call_succeeded = false;
        self.reasoning.clear();
        self.complete_reasoning.clear();
    }

    /// Adds a delta of a message. It may begin or end within a surrogate pair.
    pub(super) fn delta(&mut self, id: &str, piece: &[u8], out: &mut Events) {
        if self.ended.iter().any(|(ended, _)| **ended == *id) {
            return;
        }
        let streamed = Streamed::in_list(&mut self.open, id);
        let (id, text) = streamed.push(piece);
        self.say(id, text, out);
    }

    pub(super) fn reasoning_delta(&mut self, id: &str, piece: &[u8], out: &mut Events) {
        let streamed = Streamed::in_list(&mut self.reasoning, id);
        let (id, text) = streamed.push(piece);
        self.think(id, text, out);
    }

    /// Handles a complete message: emits text missing in its deltas, or the whole message if they differ.
    pub(super) fn message(&mut self, id: &str, content: &str, calls_tools: bool, out: &mut Events) {
        let open = self.open.iter().position(|m| *m.id == *id);
        // Without an id, the text shows which message it is.
        let open = open.or_else(|| {
            let is_it = |m: &Streamed| {
                (id.is_empty() || m.id.is_empty())
                    && !m.text.is_empty()
                    && content.starts_with(&*m.text)
            };
            self.open.iter().position(is_it)
        });
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

    /// Ends a message whose complete form cannot be read. The text of its deltas is kept.
    pub(super) fn message_ends(&mut self, id: &str) {
        if let Some(at) = self.open.iter().position(|m| *m.id == *id) {
            let message = self.open.remove(at);
            self.end(message.id, message.text);
        }
        self.unfinished = false;
    }

    /// Handles the complete reasoning of a message. Reasoning that came in deltas is not repeated.
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

    /// Handles a complete piece of reasoning, which comes after the message that it led to.
    pub(super) fn reasoning(&mut self, id: &str, text: &str, out: &mut Events) {
        let streamed = self.reasoning.iter().any(|r| *r.id == *id);
        let text = text.trim();
        if !streamed && !text.is_empty() && !self.complete_reasoning.contains(text) {
            self.complete_reasoning.push_str(text);
            self.think(Id::from(id), text.to_owned(), out);
        }
    }

    /// Withdraws the text of the failed request, because the CLI asks the model again. The next message may have the
    /// same id.
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

    /// Ends a turn. Messages that were never completed keep their text. If the request succeeded, they were
    /// truncated, by the output limit if the CLI lets the model continue.
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
        // An empty id could be confused with another message's.
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
            out.push(
                Text::new(text)
                    .message_id(Some(id).filter(|id| !id.is_empty()))
                    .parent_tool_id(self.parent.clone()),
            );
        }
    }

    fn think(&self, id: Id, text: String, out: &mut Events) {
        if !text.is_empty() {
            out.push(
                Thinking::new(text)
                    .message_id(Some(id).filter(|id| !id.is_empty()))
                    .parent_tool_id(self.parent.clone()),
            );
        }
    }
}

/// Withdraws the text under this id. This is impossible without an id.
fn retract(message_id: Id, out: &mut Events) {
    if !message_id.is_empty() {
        out.push(Retract::new(message_id));
    }
}

impl Streamed {
    /// Returns the item with this id, which is added if missing.
    fn in_list<'a>(list: &'a mut Vec<Self>, id: &str) -> &'a mut Self {
        // The streaming item is nearly always the last one.
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
