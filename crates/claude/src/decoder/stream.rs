//! `stream_event` lines: messages while they are written.

use teamster_core::provider::Events;
use teamster_core::provider::surrogates::Chars;
use teamster_core::{Id, UsageReport};

use super::ClaudeDecoder;
use super::messages::BlockKind;
use super::wire::{StreamEvent, StreamLine};

impl ClaudeDecoder {
    pub(super) fn stream_event(&mut self, line: StreamLine<'_>, out: &mut Events) -> Option<()> {
        let event = line.event;
        if !matches!(
            event.kind.as_ref(),
            "message_start"
                | "content_block_start"
                | "content_block_delta"
                | "content_block_stop"
                | "message_delta"
                | "message_stop"
                | "ping"
        ) {
            return None;
        }
        self.session_seen(line.session_id.as_deref(), out);
        let main = line.parent_tool_use_id.is_none();
        let lane = self.lane(line.parent_tool_use_id.as_deref());
        match event.kind.as_ref() {
            "message_start" => {
                self.settle_pending(out);
                if main {
                    self.background.turn_begins();
                }
                let (id, usage) = match event.message {
                    Some(message) => (message.id.as_deref().map(Id::from), message.usage),
                    None => (None, None),
                };
                self.lanes[lane].start(id, out);
                self.written_calls.drop_unfinished_of(lane, out);
                if main {
                    self.turns.message_begins(usage);
                }
            }
            "content_block_start" => self.block_start(lane, &event, out),
            "content_block_delta" => return self.block_delta(lane, &event, out),
            "content_block_stop" => {
                if let Some(call) = self.written_calls.stop(lane, event.index) {
                    self.announce(call, out);
                }
            }
            "message_delta" => {
                let stop_reason = event.delta.as_ref().and_then(|d| d.stop_reason.as_deref());
                if stop_reason.is_some() {
                    self.lanes[lane].finished();
                }
                if main && let Some(usage) = self.turns.message_delta(stop_reason, event.usage) {
                    out.push(UsageReport::new(usage));
                }
            }
            "message_stop" => match line.abandoned_blocks {
                Some(blocks) => self.lanes[lane].abandon(blocks.from_block_index),
                None => self.lanes[lane].closed(),
            },
            _ => {}
        }
        Some(())
    }

    fn block_start(&mut self, lane: usize, event: &StreamEvent<'_>, out: &mut Events) {
        let (kind, text) = match &event.content_block {
            Some(block) => match block.kind.as_ref() {
                "text" => (BlockKind::Text, block.text.as_ref()),
                "thinking" => (BlockKind::Thinking, block.thinking.as_ref()),
                _ => (BlockKind::Other, None),
            },
            None => (BlockKind::Other, None),
        };
        let text = text.map_or(&[][..], |Chars(text)| text);
        self.lanes[lane].start_block(event.index, kind, text, out);
        if let Some(block) = &event.content_block
            && block.kind.ends_with("tool_use")
            && let Some(id) = block.id.as_deref()
            && !self.tools.has_seen(id)
        {
            let name = block.name.as_deref().unwrap_or_default();
            (self.written_calls).start(lane, event.index, id, name, &block.input);
        }
    }

    fn block_delta(
        &mut self,
        lane: usize,
        event: &StreamEvent<'_>,
        out: &mut Events,
    ) -> Option<()> {
        let delta = event.delta.as_ref()?;
        let (kind, text) = match delta.kind.as_deref()? {
            "text_delta" => (BlockKind::Text, &delta.text),
            "thinking_delta" => (BlockKind::Thinking, &delta.thinking),
            "input_json_delta" => {
                if let Some(Chars(piece)) = &delta.partial_json {
                    self.written_calls.piece(lane, event.index, piece);
                }
                return Some(());
            }
            "signature_delta" | "citations_delta" => return Some(()),
            _ => return None,
        };
        if let Some(Chars(text)) = text {
            self.lanes[lane].delta(event.index, kind, text, out);
        }
        Some(())
    }
}
