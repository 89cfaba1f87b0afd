//! Tools: names, kinds, calls.

use std::collections::HashMap;

use serde_json::Value;
use teamster_core::provider::{Events, UniqueIds, media_placeholder};
use teamster_core::{
    AgentEvent, ChangeKind, Decision, FileChange, Id, Permission, ToolKind, ToolResult, ToolUse,
};

use super::wire::{Block, ToolEnd, ToolStart};
use crate::launch::Withheld;

/// The calls of a run.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// The ids of all calls. The CLI passes on the model's, which may occur again.
    ids: UniqueIds,
    /// Those that run, by the CLI's id.
    open: HashMap<String, Open>,
    withheld: Withheld,
}

#[derive(Debug)]
struct Open {
    id: Id,
    name: String,
    /// The file that it changes.
    changes: Option<String>,
}

impl Calls {
    /// The calls of a run that is without these tools.
    pub(super) fn without(withheld: Withheld) -> Self {
        Self {
            withheld,
            ..Self::default()
        }
    }

    /// A call begins to run.
    pub(super) fn start(&mut self, line: ToolStart, out: &mut Events) {
        let id = self.ids.unique(&line.tool_call_id);
        let kind = kind_of(&line.tool_name);
        let changes = matches!(line.tool_name.as_str(), "edit" | "write")
            .then(|| line.args.get("path").and_then(Value::as_str))
            .flatten()
            .map(str::to_owned);
        let open = Open {
            id: id.clone(),
            name: line.tool_name.clone(),
            changes,
        };
        self.open.insert(line.tool_call_id, open);
        out.push(AgentEvent::ToolUse(Box::new(ToolUse::new(
            line.tool_name,
            id,
            kind,
            line.args,
        ))));
    }

    /// A call has ended. `false` if its beginning was lost.
    pub(super) fn end(&mut self, line: &ToolEnd, out: &mut Events) -> bool {
        let Some(call) = self.open.remove(&line.tool_call_id) else {
            return false;
        };
        let output = text_of(&line.result.content);
        // The run is without the tool, which the model does not know.
        let is_missing = output == format!("Tool {} not found", call.name);
        if line.is_error == Some(true) && is_missing && self.withheld.has(&call.name) {
            out.push(AgentEvent::Permission(Box::new(
                Permission::new(call.name, Decision::Denied)
                    .tool_id(call.id.clone())
                    .reason(output.clone()),
            )));
        }
        out.push(AgentEvent::ToolResult(Box::new(
            ToolResult::new(call.id.clone(), output).is_error(line.is_error),
        )));
        if line.is_error == Some(false)
            && let Some(path) = call.changes
        {
            // The CLI does not report whether a written file existed before.
            out.push(AgentEvent::FileChange(Box::new(
                FileChange::new(path, ChangeKind::Update).tool_id(call.id),
            )));
        }
        true
    }
}

/// Kind of a tool. Those of extensions are not known.
fn kind_of(name: &str) -> ToolKind {
    match name {
        "read" => ToolKind::Read,
        "bash" | "powershell" => ToolKind::Execute,
        "edit" | "write" => ToolKind::Edit,
        "grep" | "find" | "ls" => ToolKind::Search,
        _ => ToolKind::Other,
    }
}

/// A result as text.
fn text_of(blocks: &[Block]) -> String {
    let parts: Vec<String> = blocks.iter().map(part_of).collect();
    parts.join("\n")
}

fn part_of(block: &Block) -> String {
    match &block.text {
        Some(text) => text.clone(),
        None => media_placeholder(
            &block.kind,
            block.mime_type.as_deref(),
            block.data.as_deref(),
        ),
    }
}
