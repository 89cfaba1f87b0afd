//! Tools: names, kinds, calls.

use std::collections::HashMap;

use serde_json::Value;
use teamster_core::provider::{BegunCalls, Events, UniqueIds, media_placeholder};
use teamster_core::{
    ChangeKind, Decision, FileChange, Id, McpTool, PermissionEvent, ToolKind, ToolResult, ToolUse,
};

use super::wire::{Block, ToolEnd, ToolStart};
use crate::launch::{Withheld, mcp};

/// The calls of a run.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Ids of all calls. The CLI passes on the model's ids, which may be repeated.
    ids: UniqueIds,
    /// Running calls, by the CLI's id.
    open: HashMap<String, Open>,
    begun: BegunCalls,
    withheld: Withheld,
    /// Names of the run's MCP servers.
    servers: Vec<String>,
}

#[derive(Debug)]
struct Open {
    id: Id,
    name: String,
    parent: Option<Id>,
    /// The file that the call changes.
    changes: Option<String>,
}

impl Calls {
    /// Creates the calls of a run without these tools, and with these MCP servers.
    pub(super) fn of(withheld: Withheld, servers: Vec<String>) -> Self {
        Self {
            withheld,
            servers,
            ..Self::default()
        }
    }

    /// Handles the first piece of a call while the model writes it.
    pub(super) fn begins(&mut self, id: &str, name: &str) {
        self.begun.piece(id, kind_of(name));
    }

    /// Handles the calls in a message, which run after it.
    pub(super) fn begin(&mut self, blocks: &[Block]) {
        for block in blocks.iter().filter(|block| block.kind == "toolCall") {
            if let (Some(id), Some(name)) = (&block.id, &block.name) {
                self.begins(id, name);
            }
        }
    }

    /// Ends the run or the turn.
    pub(super) fn finish(&mut self, out: &mut Events) {
        self.begun.finish(out);
    }

    /// Handles the start of a call.
    pub(super) fn start(&mut self, line: ToolStart, out: &mut Events) {
        self.begun.came(&line.tool_call_id);
        let id = self.ids.unique(&line.tool_call_id);
        let mcp = self.mcp_tool(&line.tool_name);
        let kind = match mcp {
            Some(_) => ToolKind::Mcp,
            None => kind_of(&line.tool_name),
        };
        let parent = (line.parent_tool_call_id.as_ref())
            .and_then(|parent| Some(self.open.get(parent)?.id.clone()));
        let changes = matches!(line.tool_name.as_str(), "edit" | "write")
            .then(|| line.args.get("path").and_then(Value::as_str))
            .flatten()
            .map(str::to_owned);
        let open = Open {
            id: id.clone(),
            name: line.tool_name.clone(),
            parent: parent.clone(),
            changes,
        };
        self.open.insert(line.tool_call_id, open);
        out.push(
            ToolUse::new(line.tool_name, id, kind, line.args)
                .mcp(mcp)
                .parent_tool_id(parent),
        );
    }

    /// Splits the name of an MCP server's tool, in which the CLI replaces each `-` of the server's name. If several
    /// servers fit, the longest name counts.
    fn mcp_tool(&self, name: &str) -> Option<McpTool> {
        let rest = name.strip_prefix(mcp::PREFIX)?;
        let known = self.servers.iter().filter_map(|server| {
            let tool = rest
                .strip_prefix(&*mcp::in_names(server))?
                .strip_prefix("__")?;
            Some((server.as_str(), tool))
        });
        let known = known.max_by_key(|(server, _)| server.len());
        let known = known.map(|(server, tool)| McpTool::new(server, tool));
        // A server of the user's own configuration.
        known.or_else(|| {
            let (server, tool) = rest.split_once("__")?;
            Some(McpTool::new(server, tool))
        })
    }

    /// Handles the end of a call. Returns `false` if its start was lost.
    pub(super) fn end(&mut self, line: &ToolEnd, out: &mut Events) -> bool {
        let Some(call) = self.open.remove(&line.tool_call_id) else {
            return false;
        };
        let output = text_of(&line.result.content);
        // The run withholds the tool, so the model does not know it.
        let is_missing = output == format!("Tool {} not found", call.name);
        if line.is_error == Some(true) && is_missing && self.withheld.has(&call.name) {
            out.push(
                PermissionEvent::new(call.name, Decision::Denied)
                    .tool_id(call.id.clone())
                    .reason(output.clone()),
            );
        }
        out.push(
            ToolResult::new(call.id.clone(), output)
                .is_error(line.is_error)
                .parent_tool_id(call.parent),
        );
        if line.is_error == Some(false)
            && let Some(path) = call.changes
        {
            // The CLI does not report whether a written file existed before.
            out.push(FileChange::new(path, ChangeKind::Update).tool_id(call.id));
        }
        true
    }
}

/// Returns the kind of a tool. Tools of extensions are unknown, and a script of `codemode` may do anything.
fn kind_of(name: &str) -> ToolKind {
    match name {
        "read" => ToolKind::Read,
        "bash" | "powershell" => ToolKind::Execute,
        "edit" | "write" => ToolKind::Edit,
        "grep" | "find" | "ls" | "tool_search" => ToolKind::Search,
        _ => ToolKind::Other,
    }
}

/// Returns a result as text.
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
