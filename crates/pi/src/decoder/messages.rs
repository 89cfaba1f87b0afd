//! Text and reasoning, each once: the CLI prints it as deltas, as a block, and in three whole messages.

use teamster_core::provider::Events;
use teamster_core::{AgentEvent, Id, Retract, Text, Thinking};

use super::wire::{Block, Piece};

/// The answer that is being written.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Counts the answers of the run.
    number: u32,
    /// `None` before the first.
    id: Option<Id>,
    /// It has begun and was not reported as a whole yet.
    is_open: bool,
    /// What was said of each block, by its place in the answer.
    said: Vec<String>,
}

impl Answer {
    /// Another answer begins.
    pub(super) fn begin(&mut self) {
        self.number += 1;
        self.id = Some(Id::from(format!("m{}", self.number)));
        self.is_open = true;
        self.said.clear();
    }

    /// A piece of a block. `None` if it is of no kind that is known.
    pub(super) fn piece(&mut self, piece: &Piece<'_>, out: &mut Events) -> Option<()> {
        let is_thinking = match &*piece.kind {
            "text_delta" => false,
            "thinking_delta" => true,
            // Pieces of a call, which is reported when it runs; blocks that begin, and whole ones.
            "start" | "text_start" | "text_end" | "thinking_start" | "thinking_end"
            | "toolcall_start" | "toolcall_delta" | "toolcall_end" | "done" | "error" => {
                return Some(());
            }
            _ => return None,
        };
        let delta = piece.delta.as_deref()?;
        self.say(piece.content_index, is_thinking, delta, out);
        Some(())
    }

    /// The whole answer: what was not said yet of it is said now, and what was said otherwise is taken
    /// back.
    pub(super) fn whole(&mut self, blocks: &[Block], out: &mut Events) {
        if !self.is_open {
            self.begin();
        }
        let texts: Vec<_> = blocks.iter().map(text_of).collect();
        let is_other = self.said.iter().enumerate().any(|(at, said)| {
            let whole = texts.get(at).copied().flatten();
            !whole
                .map_or("", |(_, text)| text)
                .starts_with(said.as_str())
        });
        if is_other {
            self.retract(out);
        }
        for (at, text) in texts.into_iter().enumerate() {
            let Some((is_thinking, text)) = text else {
                continue;
            };
            let said = self.said.get(at).map_or(0, String::len);
            if let Some(rest) = text.get(said..) {
                self.say(at, is_thinking, rest, out);
            }
        }
        self.is_open = false;
    }

    /// What was said of the answer is void.
    pub(super) fn retract(&mut self, out: &mut Events) {
        let has_said = self.said.iter().any(|said| !said.is_empty());
        if let Some(id) = self.id.clone().filter(|_| has_said) {
            out.push(AgentEvent::Retract(Retract::new(id)));
        }
        self.said.clear();
    }

    fn say(&mut self, at: usize, is_thinking: bool, text: &str, out: &mut Events) {
        /// More blocks than any answer has: an index beyond is a mistake.
        const MOST_BLOCKS: usize = 10_000;
        if text.is_empty() || at >= MOST_BLOCKS {
            return;
        }
        if !self.is_open {
            self.begin();
        }
        if self.said.len() <= at {
            self.said.resize(at + 1, String::new());
        }
        self.said[at].push_str(text);
        let id = self.id.clone();
        out.push(if is_thinking {
            AgentEvent::Thinking(Thinking::new(text).message_id(id))
        } else {
            AgentEvent::Text(Text::new(text).message_id(id))
        });
    }
}

/// Whether a block is reasoning, and its text; `None` for one that has none.
fn text_of(block: &Block) -> Option<(bool, &str)> {
    match block.kind.as_str() {
        "text" => Some((false, block.text.as_deref()?)),
        "thinking" => Some((true, block.thinking.as_deref()?)),
        _ => None,
    }
}
