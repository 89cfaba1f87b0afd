//! Tool calls.

use serde_json::Value;
use serde_json::value::RawValue;
use teamster_core::provider::Events;
use teamster_core::provider::json_line::{parse, value};
use teamster_core::{AgentEvent, Decision, Id, PermissionEvent, ToolResult, ToolUse};

use super::AcpProtocol;
use crate::dialect::NextUpdate;
use crate::tool::{Tool, ToolCall, ToolEnd, by_call};
use crate::turn::{Open, TurnSoFar};
use crate::wire::{CallUpdate, list};

impl AcpProtocol {
    /// Handles a new call or an update of one.
    pub(super) fn call(&mut self, raw: &RawValue, is_new: bool, out: &mut Events) -> Option<()> {
        let update: CallUpdate<'_> = parse(raw.get())?;
        let cli_id = update.tool_call_id.as_deref()?;
        if !self.is_active() {
            return self.is_of_earlier(cli_id).then_some(());
        }
        let is_over = self.turn.ended.contains(cli_id) || self.is_of_earlier(cli_id);
        if !is_new && is_over && self.turn.find(cli_id).is_none() {
            return Some(());
        }
        self.resolve(NextUpdate::Call(cli_id), out);
        let open = self.turn.open_or_new(cli_id);
        merge(&mut open.call, &update);
        open.reported = true;
        open.created |= is_new;
        // The agent reports a denied call once more, with its output.
        let is_repeated = open.denied && self.dialect.repeats_denied() && !open.call.has_output();
        let ended =
            matches!(open.call.status.as_deref(), Some("completed" | "failed")) && !is_repeated;
        let begun = open.call.has_begun();
        let is_reported = open.id.is_some();
        let call = &self.turn.find(cli_id)?.call;
        let is_written = ended || begun && !self.dialect.awaits_arguments(call);
        if !is_reported && (is_written || self.dialect.can_emit(call)) {
            self.announce(cli_id, out);
        }
        if ended {
            self.end_call(cli_id, out);
        } else if !is_new && update.content.is_some() {
            self.live_output(cli_id, &update, out);
        }
        Some(())
    }

    pub(super) fn is_of_earlier(&self, cli_id: &str) -> bool {
        self.earlier.contains(cli_id)
    }

    /// Merges a permission request's data about a call. It may have more data than the call, or unrelated data.
    pub(super) fn know_of_request(&mut self, cli_id: &str, update: &CallUpdate<'_>) {
        let known = self
            .turn
            .find(cli_id)
            .is_some_and(|open| open.id.is_some() || open.call.has_begun());
        if known {
            return;
        }
        let dialect = &self.dialect;
        let open = self.turn.open_or_new(cli_id);
        let call = &mut open.call;
        let input = call.input.take().filter(|_| dialect.can_emit(call));
        let title = std::mem::take(&mut call.first_title);
        merge(call, update);
        if !title.is_empty() {
            call.first_title = title;
        }
        call.input = input.or_else(|| call.input.take());
    }

    /// Emits a call, unless it already was. Returns its id and tool.
    pub(super) fn announce(&mut self, cli_id: &str, out: &mut Events) -> Option<(Id, Tool)> {
        let parent = self.turn.parent(self.dialect.usage_begins_messages());
        let late = self.is_late();
        let open = self.turn.open.iter_mut().find(|it| it.call.id == cli_id)?;
        if let (Some(id), Some(tool)) = (&open.id, &open.call.tool) {
            return Some((id.clone(), tool.clone()));
        }
        let tool = self.dialect.tool(&open.call);
        let id = self.turn.used.unique(cli_id);
        open.id = Some(id.clone());
        open.parent.clone_from(&parent);
        open.at = self.turn.requests;
        open.late = late;
        open.call.tool = Some(tool.clone());
        self.turn.answer = false;
        self.turn.retries = 0;
        out.push(AgentEvent::ToolUse(Box::new(
            ToolUse::new(tool.name.clone(), id.clone(), tool.kind, tool.input.clone())
                .mcp(tool.mcp.clone())
                .parent_tool_id(parent),
        )));
        Some((id, tool))
    }

    /// Emits the calls that were not emitted yet, because their arguments were incomplete.
    pub(super) fn announce_pending(&mut self, out: &mut Events) {
        let pending = self.turn.open.iter().filter(|open| open.id.is_none());
        let pending: Vec<_> = pending.map(|open| open.call.id.clone()).collect();
        for cli_id in pending {
            self.announce(&cli_id, out);
        }
    }

    fn end_call(&mut self, cli_id: &str, out: &mut Events) {
        self.withdraw_of(cli_id);
        let Some(open) = self.turn.take(cli_id) else {
            return;
        };
        let (Some(id), Some(tool)) = (open.id.clone(), open.call.tool.clone()) else {
            return;
        };
        let end = self.dialect.tool_end(&open.call, &tool);
        self.pass_end(&open, &id, &tool, end, out);
    }

    fn pass_end(&mut self, open: &Open, id: &Id, tool: &Tool, end: ToolEnd, out: &mut Events) {
        if let Some(reason) = end.denied {
            self.turn.rejected = true;
            out.push(AgentEvent::Permission(Box::new(
                PermissionEvent::new(tool.name.clone(), Decision::Denied)
                    .tool_id(id.clone())
                    .reason(Some(reason).filter(|reason| !reason.is_empty())),
            )));
        }
        self.turn.answer = false;
        self.live.ended(id);
        out.push(AgentEvent::ToolResult(Box::new(
            ToolResult::new(id.clone(), end.output)
                .is_error(end.is_error)
                .parent_tool_id(open.parent.clone()),
        )));
        for effect in end.effects {
            out.push(by_call(effect, id));
        }
    }

    /// Marks a call as denied. Some agents report nothing more about such a call.
    pub(super) fn was_denied(&mut self, cli_id: &str, out: &mut Events) {
        self.turn.rejected = true;
        let Some(open) = self.turn.find(cli_id) else {
            return;
        };
        open.denied = true;
        let Some(tool) = open.call.tool.clone() else {
            return;
        };
        if let Some(output) = self.dialect.denied_output(&tool)
            && let Some(open) = self.turn.take(cli_id)
            && let Some(id) = open.id.clone()
        {
            let mut end = ToolEnd::new(output);
            end.is_error = Some(true);
            self.pass_end(&open, &id, &tool, end, out);
        }
    }
}

impl TurnSoFar {
    fn open_or_new(&mut self, cli_id: &str) -> &mut Open {
        let at = self.open.iter().position(|open| open.call.id == cli_id);
        let at = at.unwrap_or_else(|| {
            self.open.push(Open {
                call: ToolCall {
                    id: cli_id.to_owned(),
                    ..ToolCall::default()
                },
                id: None,
                denied: false,
                parent: None,
                at: 0,
                late: false,
                reported: false,
                created: false,
            });
            self.open.len() - 1
        });
        &mut self.open[at]
    }

    fn take(&mut self, cli_id: &str) -> Option<Open> {
        let at = self.open.iter().position(|open| open.call.id == cli_id)?;
        self.ended.insert(cli_id.to_owned());
        Some(self.open.remove(at))
    }
}

/// Merges an update into the known state of a call.
fn merge(call: &mut ToolCall, update: &CallUpdate<'_>) {
    let set = |field: &mut Option<String>, new: &Option<std::borrow::Cow<'_, str>>| {
        if let Some(new) = new {
            *field = Some(new.clone().into_owned());
        }
    };
    if let Some(title) = update.title.as_deref().filter(|title| !title.is_empty()) {
        if call.first_title.is_empty() {
            title.clone_into(&mut call.first_title);
        }
        title.clone_into(&mut call.title);
    }
    set(&mut call.name, &update.name);
    set(&mut call.kind, &update.kind);
    set(&mut call.status, &update.status);
    let set = |field: &mut Option<Value>, new: Option<&RawValue>| {
        if let Some(new) = new {
            *field = Some(value(new)).filter(|value| !value.is_null());
        }
    };
    set(&mut call.input, update.raw_input);
    set(&mut call.output, update.raw_output);
    set(&mut call.meta, update.meta);
    if update.content.is_some() {
        call.content = list(update.content);
        let is_diff = |item: &&Value| item["type"] == "diff";
        let diffs: Vec<Value> = call.content.iter().filter(is_diff).cloned().collect();
        if !diffs.is_empty() {
            call.diffs = diffs;
        }
    }
    if update.locations.is_some() {
        call.locations = list(update.locations);
    }
}
