//! Text and reasoning without repetitions: the CLI prints them as deltas, as a block, and in three whole messages.

use teamster_core::provider::Events;
use teamster_core::{AgentEvent, Id, Retract, Text, Thinking};

use super::wire::{Block, Piece};

/// The answer that is being written.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Number of the current answer in the run.
    number: u32,
    /// Id of the answer; `None` before the first.
    id: Option<Id>,
    /// True if the answer has begun and its complete message has not come yet.
    is_open: bool,
    /// Emitted text of each block, by its index in the answer.
    emitted: Vec<String>,
}

impl Answer {
    /// Begins another answer.
    pub(super) fn begin(&mut self) {
        self.number += 1;
        self.id = Some(Id::from(format!("m{}", self.number)));
        self.is_open = true;
        self.emitted.clear();
    }

    /// Handles a piece of a block. Returns `None` if its kind is unknown.
    pub(super) fn piece(&mut self, piece: &Piece<'_>, out: &mut Events) -> Option<()> {
        let is_thinking = match &*piece.kind {
            "text_delta" => false,
            "thinking_delta" => true,
            // Pieces of a call, which is reported when it runs; starts of blocks, and whole blocks.
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

    /// Handles the complete answer: emits missing text, and withdraws text that differs.
    pub(super) fn complete(&mut self, blocks: &[Block], out: &mut Events) {
        if !self.is_open {
            self.begin();
        }
        let texts: Vec<_> = blocks.iter().map(text_of).collect();
        let is_other = self.emitted.iter().enumerate().any(|(at, text)| {
            let complete = texts.get(at).copied().flatten();
            !complete
                .map_or("", |(_, text)| text)
                .starts_with(text.as_str())
        });
        if is_other {
            self.retract(out);
        }
        for (at, text) in texts.into_iter().enumerate() {
            let Some((is_thinking, text)) = text else {
                continue;
            };
            let emitted = self.emitted.get(at).map_or(0, String::len);
            if let Some(rest) = text.get(emitted..) {
                self.say(at, is_thinking, rest, out);
            }
        }
        self.is_open = false;
    }

    /// Withdraws the emitted text of the answer.
    pub(super) fn retract(&mut self, out: &mut Events) {
        let is_emitted = self.emitted.iter().any(|text| !text.is_empty());
        if let Some(id) = self.id.clone().filter(|_| is_emitted) {
            out.push(Retract::new(id));
        }
        self.emitted.clear();
    }

    fn say(&mut self, at: usize, is_thinking: bool, text: &str, out: &mut Events) {
        /// Larger than the number of blocks in any answer: a higher index is an error.
        const MOST_BLOCKS: usize = 10_000;
        if text.is_empty() || at >= MOST_BLOCKS {
            return;
        }
        if !self.is_open {
            self.begin();
        }
        if self.emitted.len() <= at {
            self.emitted.resize(at + 1, String::new());
        }
        self.emitted[at].push_str(text);
        let id = self.id.clone();
        out.push(if is_thinking {
            AgentEvent::Thinking(Thinking::new(text).message_id(id))
        } else {
            AgentEvent::Text(Text::new(text).message_id(id))
        });
    }
}

/// Returns whether a block is reasoning, and its text; `None` if it has no text.
fn text_of(block: &Block) -> Option<(bool, &str)> {
    match block.kind.as_str() {
        "text" => Some((false, block.text.as_deref()?)),
        "thinking" => Some((true, block.thinking.as_deref()?)),
        _ => None,
    }
}
