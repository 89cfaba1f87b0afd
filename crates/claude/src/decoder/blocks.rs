//! `assistant` and `user` lines, which have complete content blocks.

use std::borrow::Cow;

use serde_json::value::RawValue;
use teamster_core::provider::Events;
use teamster_core::provider::json_line::repaired;
use teamster_core::text::excerpt;
use teamster_core::{
    Id, NoticeLevel, NoticeSource, Plan, ToolKind, ToolResult, ToolUse, UsageReport,
};

use super::messages::BlockKind;
use super::wire::{Block, Content, Message, MessageLine, TombstoneLine};
use super::written_calls::WrittenCall;
use super::{ClaudeDecoder, NOTICE_BYTES, SYNTHETIC, Synthetic, tools};

impl ClaudeDecoder {
    /// Decodes the known content of an `assistant` line. Returns `false` if there is more.
    pub(super) fn assistant(&mut self, line: MessageLine<'_>, out: &mut Events) -> bool {
        self.session_seen(line.session_id.as_deref(), out);
        self.settle_pending(out);
        if line.parent_tool_use_id.is_none() {
            self.background.turn_begins();
        }
        let Message {
            id,
            model,
            content,
            usage,
        } = line.message;
        let id = id.as_deref().map(Id::from);
        let lane = self.lane(line.parent_tool_use_id.as_deref());
        if lane != 0
            && let (Some(id), Some(usage)) = (&id, usage)
            && let Some(so_far) = self.turns.sub_agent_used(id, usage.into())
        {
            out.push(UsageReport::new(so_far));
        }
        if model.as_deref() == Some(SYNTHETIC) {
            if lane == 0 {
                self.synthetic(Synthetic {
                    text: tools::output(content),
                    error: line.error.map(Cow::into_owned),
                    api_error: line.api_error.map(Cow::into_owned),
                    status: line.api_error_status,
                });
            } else if line.error.is_some() {
                let text = excerpt(&tools::output(content), NOTICE_BYTES);
                out.notice(NoticeLevel::Warning, NoticeSource::Stdout, text);
            } else {
                self.lanes[lane].emit_plain(&tools::output(content), out);
            }
            return true;
        }
        let mut known = true;
        match content {
            Content::Nothing => {}
            Content::Text(text) => {
                self.lanes[lane].whole_block(id.as_ref(), BlockKind::Text, &text, out);
            }
            Content::Blocks(blocks) => {
                for block in blocks {
                    known &= self.assistant_block(lane, id.as_ref(), block, out);
                }
            }
        }
        known
    }

    /// Handles a message that was removed from the conversation. Its tool calls stay, because they may have run.
    pub(super) fn tombstone(&mut self, line: TombstoneLine<'_>, out: &mut Events) {
        self.settle_pending(out);
        let Some(removed) = line.message.filter(|removed| removed.kind == "assistant") else {
            return;
        };
        let Some(Message {
            id: Some(id),
            content,
            ..
        }) = removed.message
        else {
            return;
        };
        let id = Id::from(id);
        let blocks: Vec<_> = match &content {
            Content::Nothing => Vec::new(),
            Content::Text(text) => vec![(BlockKind::Text, &**text)],
            Content::Blocks(blocks) => (blocks.iter()).filter_map(text_of).collect(),
        };
        for lane in &mut self.lanes {
            lane.remove(&id, &blocks, out);
        }
    }

    /// Decodes a block. Returns `false` for an unknown kind.
    fn assistant_block(
        &mut self,
        lane: usize,
        id: Option<&Id>,
        block: Block<'_>,
        out: &mut Events,
    ) -> bool {
        match block.kind.as_ref() {
            "text" => {
                let text = block.text.unwrap_or_default();
                self.lanes[lane].whole_block(id, BlockKind::Text, &text, out);
            }
            "thinking" => {
                let text = block.thinking.unwrap_or_default();
                self.lanes[lane].whole_block(id, BlockKind::Thinking, &text, out);
            }
            kind if kind.ends_with("tool_use") => {
                self.lanes[lane].other_block(id, out);
                self.tool_use(lane, block, out);
            }
            kind if kind.ends_with("tool_result") => {
                self.lanes[lane].other_block(id, out);
                self.tool_result(lane, block, None, out);
            }
            // The reasoning is encrypted, but the block confirms the message.
            "redacted_thinking" => self.lanes[lane].other_block(id, out),
            _ => return false,
        }
        true
    }

    fn tool_use(&mut self, lane: usize, block: Block<'_>, out: &mut Events) {
        let id = Id::from(block.id.unwrap_or_default());
        if self.written_calls.is_repeated(&id) {
            return;
        }
        let call = WrittenCall {
            lane,
            id,
            name: block.name.unwrap_or_default().into_owned(),
            input: block.input,
        };
        self.announce(call, out);
    }

    /// Emits a tool call.
    pub(super) fn announce(&mut self, call: WrittenCall, out: &mut Events) {
        let WrittenCall {
            lane,
            id,
            name,
            input,
        } = call;
        let servers = self.session.as_ref().and_then(|s| s.mcp_servers.as_deref());
        let mcp = self.servers.tool(&name, servers.unwrap_or_default());
        self.servers.called(&id, &name);
        let kind = tools::kind(&name);
        self.tools.started(&id, &name, kind, &input, lane > 0);
        let plan = tools::plan(&name, &input);
        let kind = if mcp.is_some() { ToolKind::Mcp } else { kind };
        out.push(
            ToolUse::new(name, id, kind, input)
                .mcp(mcp)
                .parent_tool_id(self.lanes[lane].parent().cloned()),
        );
        if let Some(entries) = plan {
            out.push(Plan::new(entries));
        }
    }

    /// Emits the calls that the model had begun to write when the output ended.
    pub(super) fn announce_unfinished(&mut self, out: &mut Events) {
        for call in self.written_calls.take_unfinished() {
            self.announce(call, out);
        }
    }

    fn tool_result(
        &mut self,
        lane: usize,
        block: Block<'_>,
        details: Option<&RawValue>,
        out: &mut Events,
    ) {
        let tool_id = Id::from(block.tool_use_id.unwrap_or_default());
        let output = tools::output(block.content);
        let change = self.tools.ended(&tool_id, &output, block.is_error, details);
        let taken = self.servers.denied(&tool_id, &output);
        if let Some(tool) = taken.filter(|_| block.is_error == Some(true)) {
            self.denied(Some(&tool), Some(&tool_id), None, out);
        }
        out.push(
            ToolResult::new(tool_id, output)
                .is_error(block.is_error)
                .parent_tool_id(self.lanes[lane].parent().cloned()),
        );
        if let Some(event) = change {
            out.push(event);
        }
    }

    /// Decodes the known content of a `user` line. Returns `false` if there is more.
    pub(super) fn user(&mut self, line: MessageLine<'_>, out: &mut Events) -> bool {
        if let Content::Text(text) = &line.message.content {
            self.background.message(text);
        }
        if line.is_replay {
            // Echo of a message of the caller.
            return true;
        }
        self.session_seen(line.session_id.as_deref(), out);
        self.settle_pending(out);
        let sub_agent = line.parent_tool_use_id.is_some();
        let lane = self.lane(line.parent_tool_use_id.as_deref());
        let mut known = true;
        match line.message.content {
            // A summary that the CLI sends as the user.
            Content::Nothing | Content::Text(_) => {}
            Content::Blocks(blocks) => {
                for block in blocks {
                    if block.tool_use_id.is_some() {
                        let result = line.tool_use_result.map(repaired);
                        if let Some(result) = result.as_deref().filter(|_| !sub_agent) {
                            self.background.launched(result);
                        }
                        self.tool_result(lane, block, result.as_deref(), out);
                    } else if let Some(text) = block.text {
                        // Text that the CLI sends to the model by itself. A sub-agent's text is its task.
                        if !sub_agent {
                            let text = excerpt(&text, NOTICE_BYTES);
                            out.notice(NoticeLevel::Info, NoticeSource::Stdout, text);
                        }
                    } else {
                        known = false;
                    }
                }
            }
        }
        known
    }
}

/// Returns the text or reasoning of a block.
fn text_of<'a>(block: &'a Block<'_>) -> Option<(BlockKind, &'a str)> {
    match &*block.kind {
        "text" => Some((BlockKind::Text, block.text.as_deref()?)),
        "thinking" => Some((BlockKind::Thinking, block.thinking.as_deref()?)),
        _ => None,
    }
}
