//! Messages without duplicate text: the same text comes as deltas, as a complete block, and in the result.
//!
//! This module tracks the blocks of each agent's messages. Deltas are emitted as they come. A complete block (an
//! `assistant` line) then only adds what its deltas lacked. The CLI drops a message that never ended and is replaced
//! by another. The text of such a message is retracted.

use teamster_core::provider::Events;
use teamster_core::{Id, Retract, Text, Thinking};

use teamster_core::provider::surrogates::Joiner;

/// Number of messages remembered per agent. Late lines refer to the last one or two.
const REMEMBERED: usize = 8;

/// Messages of the main agent or of one sub-agent.
#[derive(Debug)]
pub(super) struct Lane {
    parent: Option<Id>,
    messages: Vec<Message>,
    /// True if text was emitted since the caller last set this to `false`.
    pub(super) has_text: bool,
}

#[derive(Debug)]
struct Message {
    id: Option<Id>,
    /// Id of its complete blocks, if the line with its start was lost, and `id` with it.
    late_id: Option<Id>,
    /// True while the end of the stream has not come.
    streaming: bool,
    /// True once the model has reported the stop reason.
    finished: bool,
    /// Index of the first block that will never be completed, because the message was cut off.
    abandoned_from: Option<u64>,
    blocks: Vec<Block>,
    /// Complete blocks so far, in order.
    complete: Vec<(BlockKind, String)>,
}

#[derive(Debug)]
struct Block {
    index: u64,
    kind: BlockKind,
    /// Text of its deltas; emptied when the complete block comes.
    text: String,
    joiner: Joiner,
    /// True once the complete block came.
    confirmed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    Text,
    Thinking,
    /// A tool call or anything else that comes without deltas.
    Other,
}

impl Lane {
    pub(super) fn new(parent: Option<Id>) -> Self {
        Self {
            parent,
            messages: Vec::new(),
            has_text: false,
        }
    }

    pub(super) fn parent(&self) -> Option<&Id> {
        self.parent.as_ref()
    }

    /// Discards the messages of a turn that has ended.
    pub(super) fn forget(&mut self) {
        self.messages.clear();
        self.has_text = false;
    }

    /// Begins a message that streams.
    pub(super) fn start(&mut self, id: Option<Id>, out: &mut Events) {
        self.supersede(id.as_ref(), out);
        self.add(id, true);
    }

    /// Records that the model has reported the stop reason.
    pub(super) fn finished(&mut self) {
        if let Some(message) = self.messages.last_mut() {
            message.finished = true;
        }
    }

    /// Handles the CLI's end of the streaming message. Up to 2.1.290, a message that was cut off has only this end:
    /// it has no stop reason, and another message may replace it.
    pub(super) fn closed(&mut self) {
        if let Some(message) = self.messages.last_mut() {
            message.streaming &= !message.finished;
        }
    }

    /// Ends the streaming message.
    pub(super) fn stop(&mut self) {
        if let Some(message) = self.messages.last_mut() {
            message.streaming = false;
        }
    }

    /// Marks the streaming message as cut off: its blocks from index `from` on will never be completed. Its text is
    /// kept unless another message replaces it.
    pub(super) fn abandon(&mut self, from: u64) {
        if let Some(message) = self.messages.last_mut() {
            message.abandoned_from = Some(from);
        }
    }

    /// Begins a block of the streaming message, which may already have text.
    pub(super) fn start_block(
        &mut self,
        index: u64,
        kind: BlockKind,
        text: &[u8],
        out: &mut Events,
    ) {
        let message = self.current();
        message.blocks.push(Block::new(index, kind));
        if !text.is_empty() {
            self.delta(index, kind, text, out);
        }
    }

    /// Adds a delta to a block of the streaming message. It may begin or end within a surrogate pair.
    pub(super) fn delta(&mut self, index: u64, kind: BlockKind, text: &[u8], out: &mut Events) {
        self.add_delta(index, kind, |it| it.push(text).into_owned(), out);
    }

    /// Adds a delta of whole characters to a block of the streaming message.
    pub(super) fn text_delta(
        &mut self,
        index: u64,
        kind: BlockKind,
        text: String,
        out: &mut Events,
    ) {
        self.add_delta(index, kind, |it| it.push_text(text), out);
    }

    fn add_delta(
        &mut self,
        index: u64,
        kind: BlockKind,
        text: impl FnOnce(&mut Joiner) -> String,
        out: &mut Events,
    ) {
        let message = self.current();
        let block = message.block(index, kind);
        if block.confirmed {
            return;
        }
        let text = text(&mut block.joiner);
        block.text.push_str(&text);
        let id = message.id.clone();
        self.emit(id, kind, text, out);
    }

    /// Handles a complete block of text or reasoning.
    pub(super) fn whole_block(
        &mut self,
        id: Option<&Id>,
        kind: BlockKind,
        text: &str,
        out: &mut Events,
    ) {
        let at = self.find_or_add(id, out);
        let message = &mut self.messages[at];
        let block = message.streamed(kind, text).map(|b| {
            b.confirmed = true;
            std::mem::take(&mut b.text).len()
        });
        message.complete.push((kind, text.to_owned()));
        let emitted = match block {
            Some(emitted) => emitted,
            None => match message.unlike(kind) {
                // The deltas differ; the complete block wins.
                Some(unlike) => {
                    unlike.confirmed = true;
                    if message.id.is_some() {
                        return self.emit_again(at, out);
                    }
                    0
                }
                None => {
                    // No delta of it came. A later one is a duplicate.
                    message.blocks.push(Block {
                        confirmed: true,
                        ..Block::new(u64::MAX, kind)
                    });
                    0
                }
            },
        };
        let id = message.id.clone();
        self.emit(id, kind, text[emitted..].to_owned(), out);
    }

    /// Handles a complete block of another kind, which confirms the message.
    pub(super) fn other_block(&mut self, id: Option<&Id>, out: &mut Events) {
        let at = self.find_or_add(id, out);
        let message = &mut self.messages[at];
        match message
            .blocks
            .iter_mut()
            .find(|b| b.kind == BlockKind::Other && !b.confirmed)
        {
            Some(block) => block.confirmed = true,
            None => message.blocks.push(Block {
                confirmed: true,
                ..Block::new(u64::MAX, BlockKind::Other)
            }),
        }
    }

    /// Emits text of the CLI itself, which belongs to no message.
    pub(super) fn emit_plain(&mut self, text: &str, out: &mut Events) {
        self.emit(None, BlockKind::Text, text.to_owned(), out);
    }

    /// Retracts the streaming message if another one replaces it. The CLI drops a message that was cut off before its
    /// first complete block, and retries the request. If the message was cut off later, the CLI may drop its
    /// remaining blocks, and then reports that.
    fn supersede(&mut self, by: Option<&Id>, out: &mut Events) {
        let Some(at) = self.messages.len().checked_sub(1) else {
            return;
        };
        let message = &mut self.messages[at];
        if !message.streaming || message.id.as_ref() == by {
            return;
        }
        message.streaming = false;
        let is_whole = message.blocks.iter().any(|b| b.confirmed);
        let dropped_from = match message.abandoned_from {
            None if is_whole => return,
            Some(from) if is_whole => from,
            _ => 0,
        };
        let unconfirmed =
            |b: &Block| b.kind != BlockKind::Other && !b.confirmed && !b.text.is_empty();
        let mut dropped = message.blocks.iter().filter(|b| b.index >= dropped_from);
        if dropped.any(unconfirmed) && message.id.is_some() {
            message.blocks.retain(|b| b.confirmed);
            self.emit_again(at, out);
        }
    }

    /// Retracts these complete blocks of a message, and its incomplete ones.
    pub(super) fn remove(&mut self, id: &Id, blocks: &[(BlockKind, &str)], out: &mut Events) {
        let found = self
            .messages
            .iter()
            .rposition(|m| m.id.as_ref() == Some(id));
        let Some(at) = found else {
            return;
        };
        let message = &mut self.messages[at];
        let complete = message.complete.len();
        for block in blocks {
            let at = (message.complete.iter()).position(|(kind, text)| (*kind, &**text) == *block);
            if let Some(at) = at {
                message.complete.remove(at);
            }
        }
        let unconfirmed =
            |b: &Block| b.kind != BlockKind::Other && !b.confirmed && !b.text.is_empty();
        let partial = message.blocks.iter().any(unconfirmed);
        message.blocks.retain(|b| b.confirmed);
        if partial || message.complete.len() < complete {
            self.emit_again(at, out);
        }
    }

    /// Retracts a message and emits its complete blocks again.
    fn emit_again(&mut self, at: usize, out: &mut Events) {
        let message = &self.messages[at];
        let complete = message.complete.clone();
        let id = message.id.clone();
        if let Some(message_id) = id.clone() {
            out.push(Retract::new(message_id));
        }
        for (kind, text) in complete {
            self.emit(id.clone(), kind, text, out);
        }
    }

    fn emit(&mut self, message_id: Option<Id>, kind: BlockKind, text: String, out: &mut Events) {
        if text.is_empty() {
            return;
        }
        let parent_tool_id = self.parent.clone();
        match kind {
            BlockKind::Text => {
                self.has_text = true;
                out.push(
                    Text::new(text)
                        .message_id(message_id)
                        .parent_tool_id(parent_tool_id),
                );
            }
            BlockKind::Thinking => out.push(
                Thinking::new(text)
                    .message_id(message_id)
                    .parent_tool_id(parent_tool_id),
            ),
            BlockKind::Other => {}
        }
    }

    /// Returns the streaming message, or one without an id if the line with its start was lost.
    fn current(&mut self) -> &mut Message {
        if self.messages.last().is_none_or(|m| !m.streaming) {
            self.add(None, true);
        }
        let last = self.messages.len() - 1;
        &mut self.messages[last]
    }

    fn find_or_add(&mut self, id: Option<&Id>, out: &mut Events) -> usize {
        let of_id = |m: &Message| m.id.as_ref().or(m.late_id.as_ref()) == id;
        if let Some(at) = self.messages.iter().rposition(of_id) {
            return at;
        }
        if let Some(last) = self.messages.last_mut()
            && last.streaming
            && last.id.is_none()
            && last.late_id.is_none()
        {
            last.late_id = id.cloned();
            return self.messages.len() - 1;
        }
        self.supersede(id, out);
        self.add(id.cloned(), false);
        self.messages.len() - 1
    }

    fn add(&mut self, id: Option<Id>, streaming: bool) {
        if self.messages.len() == REMEMBERED {
            self.messages.remove(0);
        }
        self.messages.push(Message {
            id,
            late_id: None,
            streaming,
            finished: false,
            abandoned_from: None,
            blocks: Vec::new(),
            complete: Vec::new(),
        });
    }
}

impl Message {
    fn block(&mut self, index: u64, kind: BlockKind) -> &mut Block {
        // Nearly always the last block.
        let at = match self.blocks.iter().rposition(|b| b.index == index) {
            Some(at) => at,
            None => {
                self.blocks.push(Block::new(index, kind));
                self.blocks.len() - 1
            }
        };
        &mut self.blocks[at]
    }

    /// Returns the block whose deltas match this complete text or its beginning. Blocks of white space have no
    /// complete copy, so they are skipped.
    fn streamed(&mut self, kind: BlockKind, text: &str) -> Option<&mut Block> {
        let last = self.blocks.len().checked_sub(1)?;
        let at = self.blocks.iter().enumerate().position(|(at, b)| {
            b.kind == kind
                && !b.confirmed
                && text.starts_with(&b.text)
                && (at == last || !b.text.trim().is_empty())
        })?;
        Some(&mut self.blocks[at])
    }

    /// Returns a block with text from deltas but without a complete copy.
    fn unlike(&mut self, kind: BlockKind) -> Option<&mut Block> {
        self.blocks
            .iter_mut()
            .find(|b| b.kind == kind && !b.confirmed && !b.text.trim().is_empty())
    }
}

impl Block {
    fn new(index: u64, kind: BlockKind) -> Self {
        Self {
            index,
            kind,
            text: String::new(),
            joiner: Joiner::default(),
            confirmed: false,
        }
    }
}
