//! Items: the agent's actions, in order.

use serde_json::{Value, json};
use teamster_core::provider::{Events, UniqueIds, mcp_content};
use teamster_core::{
    AgentEvent, ChangeKind, Decision, FileChange, Id, McpTool, NoticeLevel, NoticeSource,
    PermissionEvent, Plan, PlanEntry, PlanStatus, ToolKind, ToolResult, ToolUse,
};

use super::messages::{Kind, Messages};
use super::{agents, changes, mcp, moderation};
use crate::wire::{Object, with_underscores};

/// Stage of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Started,
    Updated,
    Completed,
}

/// The items of a run, or of a turn in a session.
#[derive(Debug, Default)]
pub(crate) struct Items {
    pub(crate) messages: Messages,
    /// Tool calls without a result, in order.
    open: Vec<Open>,
    plan: Vec<PlanEntry>,
    /// True if sub-agents were started, messaged or waited for.
    pub(crate) used_sub_agents: bool,
}

/// A tool call without a result.
#[derive(Debug)]
pub(crate) struct Open {
    /// The item's id on the wire.
    item: String,
    /// The id under which it was announced.
    pub(crate) id: Id,
    pub(crate) kind: ToolKind,
    mcp: Option<McpTool>,
    /// The call, if it was not emitted yet because its arguments are unknown.
    pending: Option<Call>,
}

/// A tool call.
#[derive(Debug)]
struct Call {
    name: String,
    kind: ToolKind,
    mcp: Option<McpTool>,
    input: Value,
    /// True if arguments are missing: the CLI starts web searches before it knows the query.
    incomplete: bool,
}

/// Outcome of a tool call.
#[derive(Debug, Default)]
struct Outcome {
    output: String,
    is_error: Option<bool>,
    /// True if the call was not permitted.
    denied: bool,
    /// The reason, if there is one.
    reason: Option<String>,
    changes: Vec<(String, ChangeKind)>,
}

impl Items {
    /// Creates the items of an agent that this call started.
    pub(crate) fn of_agent(parent: Id) -> Self {
        Self {
            messages: Messages::of_agent(parent),
            ..Self::default()
        }
    }

    /// Handles an item. Returns `None` if its type is unknown; then the state is unchanged.
    pub(crate) fn item(
        &mut self,
        stage: Stage,
        item: &Object<'_>,
        ids: &mut UniqueIds,
        out: &mut Events,
    ) -> Option<()> {
        let wire_type = item.text("type")?;
        match &*with_underscores(&wire_type) {
            // A plan that the agent proposes in its plan mode is an answer.
            "agent_message" | "plan" => self.message(stage, Kind::Text, item, ids, out)?,
            "reasoning" => self.message(stage, Kind::Thinking, item, ids, out)?,
            "todo_list" => {
                // The model created or changed the list by a tool. The completed item comes at the end of the turn,
                // without an action of the model.
                if stage != Stage::Completed {
                    self.messages.settle();
                }
                self.todo_list(item, out);
            }
            "error" => {
                let message = item.text("message")?;
                out.notice(NoticeLevel::Warning, NoticeSource::Stdout, message);
            }
            kind => {
                let call = Call::of(kind, item)?;
                self.used_sub_agents |= call.kind == ToolKind::Task && item.text("tool").is_some();
                self.tool(stage, kind, item, call, ids, out);
            }
        }
        Some(())
    }

    /// Handles a piece of a message.
    pub(crate) fn piece(
        &mut self,
        item: &str,
        kind: Kind,
        piece: &str,
        ids: &mut UniqueIds,
        out: &mut Events,
    ) {
        self.messages.add(item, kind, piece, ids, out);
    }

    /// Returns the call in this item, if it has no result yet.
    pub(crate) fn open_call(&self, item: &str) -> Option<&Open> {
        self.open.iter().find(|open| open.item == item)
    }

    /// Returns the ids of an MCP tool's calls that have no result yet.
    pub(crate) fn open_calls_of_mcp(&self, server: &str, tool: &str) -> Vec<Id> {
        let is_it = |open: &&Open| {
            let mcp = open.mcp.as_ref();
            mcp.is_some_and(|mcp| mcp.server == server && mcp.tool == tool)
        };
        let calls = self.open.iter().filter(is_it);
        calls.map(|open| open.id.clone()).collect()
    }

    /// Emits the calls that wait for their arguments, at the end of the run.
    pub(crate) fn finish(&mut self, out: &mut Events) {
        for open in &mut self.open {
            if let Some(call) = open.pending.take() {
                out.push(call.event(open.id.clone(), self.messages.parent()));
            }
        }
    }

    fn message(
        &mut self,
        stage: Stage,
        kind: Kind,
        item: &Object<'_>,
        ids: &mut UniqueIds,
        out: &mut Events,
    ) -> Option<()> {
        let text = match item.text("text") {
            Some(text) => text,
            None => item.get::<Vec<String>>("summary")?.join("\n").into(),
        };
        let id = item.text("id");
        if let Some(why) = moderation::withheld(item) {
            if self.messages.withhold(id.as_deref(), kind, &text, out) {
                out.notice(NoticeLevel::Warning, NoticeSource::Stdout, why);
            }
            return Some(());
        }
        let is_complete = stage == Stage::Completed;
        self.messages
            .say(id.as_deref(), kind, &text, is_complete, ids, out);
        Some(())
    }

    fn todo_list(&mut self, item: &Object<'_>, out: &mut Events) {
        let entry = |todo: &Object<'_>| {
            Some(PlanEntry::new(
                todo.text("text")?.into_owned(),
                match todo.get("completed") {
                    Some(true) => PlanStatus::Completed,
                    _ => PlanStatus::Pending,
                },
            ))
        };
        let entries: Vec<_> = item.objects("items").iter().filter_map(entry).collect();
        self.plan(entries, out);
    }

    /// Sets the current plan.
    pub(crate) fn plan(&mut self, entries: Vec<PlanEntry>, out: &mut Events) {
        if entries != self.plan {
            self.plan.clone_from(&entries);
            out.push(Plan::new(entries));
        }
    }

    fn tool(
        &mut self,
        stage: Stage,
        kind: &str,
        item: &Object<'_>,
        call: Call,
        ids: &mut UniqueIds,
        out: &mut Events,
    ) {
        let parent = self.messages.parent();
        let item_id = id_of(item);
        let at = self.open.iter().position(|open| open.item == item_id);
        if at.is_none() {
            // A new call. Output of a call that continues in the background is not part of an answer.
            self.messages.settle();
        }
        if stage != Stage::Completed {
            if at.is_none() {
                let id = ids.unique(&item_id);
                let mut open = Open {
                    item: item_id,
                    id: id.clone(),
                    kind: call.kind,
                    mcp: call.mcp.clone(),
                    pending: None,
                };
                if call.incomplete {
                    open.pending = Some(call);
                } else {
                    out.push(call.event(id, parent));
                }
                self.open.push(open);
            }
            return;
        }
        let name = call.name.clone();
        let (id, pending) = match at.map(|at| self.open.remove(at)) {
            Some(open) => (open.id, open.pending.is_some()),
            // The start was lost, or there was none.
            None => (ids.unique(&item_id), true),
        };
        if pending {
            out.push(call.event(id.clone(), parent.clone()));
        }
        Outcome::of(kind, item).push(name, &id, parent, out);
    }
}

fn id_of(item: &Object<'_>) -> String {
    item.text("id")
        .map_or_else(|| "item".to_owned(), std::borrow::Cow::into_owned)
}

impl Call {
    /// Returns the call in an item. `None` if items of this type are unknown or no tool calls.
    fn of(kind: &str, item: &Object<'_>) -> Option<Self> {
        let call = |kind: ToolKind, name: String, input: Value| Self {
            name,
            kind,
            mcp: None,
            input,
            incomplete: false,
        };
        let named = || {
            item.text("tool")
                .map_or_else(|| kind.to_owned(), std::borrow::Cow::into_owned)
        };
        Some(match kind {
            "command_execution" => call(
                ToolKind::Execute,
                kind.to_owned(),
                item.fields(&["command"]),
            ),
            "file_change" => {
                let changes = changes::of(item);
                let only_deletes = !changes.is_empty()
                    && changes.iter().all(|(_, kind)| *kind == ChangeKind::Delete);
                let tool_kind = if only_deletes {
                    ToolKind::Delete
                } else {
                    ToolKind::Edit
                };
                let mut input = item.fields(&["changes"]);
                input.get_mut("changes").map(changes::in_run_form);
                call(tool_kind, kind.to_owned(), input)
            }
            "mcp_tool_call" => {
                let tool = named();
                let mcp = mcp::of_call(item.text("server").unwrap_or_default(), &tool);
                let kind = mcp.as_ref().map_or(ToolKind::Read, |_| ToolKind::Mcp);
                let input = item.value("arguments").unwrap_or_else(|| json!({}));
                Self {
                    mcp,
                    ..call(kind, tool, input)
                }
            }
            "collab_tool_call" | "collab_agent_tool_call" => {
                let mut input = item.fields(&["prompt", "receiver_thread_ids"]);
                if let Some(input) = input.as_object_mut() {
                    input.retain(|_, value| *value != json!([]));
                }
                let name = with_underscores(&named()).into_owned();
                call(ToolKind::Task, name, input)
            }
            "sub_agent_activity" => {
                let input = item.fields(agents::FIELDS);
                call(ToolKind::Task, agents::tool(item)?.to_owned(), input)
            }
            "web_search" => {
                let mut input = item.fields(&["query", "action"]);
                input.get_mut("action").map(plain_action);
                Self {
                    incomplete: input["query"].as_str().is_none_or(str::is_empty),
                    ..call(ToolKind::Search, kind.to_owned(), input)
                }
            }
            _ => return None,
        })
    }

    fn event(self, tool_id: Id, parent: Option<Id>) -> AgentEvent {
        AgentEvent::ToolUse(Box::new(
            ToolUse::new(self.name, tool_id, self.kind, self.input)
                .mcp(self.mcp)
                .parent_tool_id(parent),
        ))
    }
}

/// Converts the action of a search to the form of a run. `codex app-server` also has absent fields, and other words.
fn plain_action(action: &mut Value) {
    if let Some(action) = action.as_object_mut() {
        action.retain(|_, value| !value.is_null());
        if let Some(Value::String(word)) = action.get_mut("type") {
            *word = with_underscores(word).into_owned();
        }
    }
}

impl Outcome {
    fn of(kind: &str, item: &Object<'_>) -> Self {
        let status = item.text("status").unwrap_or_default();
        let mut outcome = Self {
            is_error: match &*status {
                "completed" => Some(false),
                "failed" | "declined" => Some(true),
                _ => None,
            },
            ..Self::default()
        };
        match kind {
            "command_execution" => {
                outcome.output = item
                    .text("aggregated_output")
                    .unwrap_or_default()
                    .into_owned();
                if let Some(code) = item.get::<i64>("exit_code") {
                    outcome.is_error = Some(code != 0);
                }
            }
            "file_change" if outcome.is_error != Some(true) => {
                outcome.changes = changes::of(item);
            }
            "mcp_tool_call" => outcome.of_mcp(item),
            "collab_tool_call" | "collab_agent_tool_call" => {
                outcome.output = agents::states(item);
            }
            "sub_agent_activity" => {
                // Only a call that succeeded has such an item.
                outcome.is_error = Some(false);
                outcome.output = item.text("agent_path").unwrap_or_default().into_owned();
            }
            _ => {}
        }
        if status == "declined" {
            outcome.denied = true;
            let reason = outcome.output.trim();
            outcome.reason = (!reason.is_empty()).then(|| reason.to_owned());
        }
        outcome
    }

    /// Sets the result of an MCP tool, or the reason why there is none.
    fn of_mcp(&mut self, item: &Object<'_>) {
        if let Some(result) = item.object("result") {
            self.output = mcp_output(&result);
            if result.get("is_error") == Some(true) {
                self.is_error = Some(true);
            }
        }
        let error = item.object("error").and_then(|error| error.text("message"));
        if let Some(message) = error.or_else(|| item.text("error")) {
            self.is_error = Some(true);
            if message.contains("requires approval") {
                self.denied = true;
                self.reason = Some(message.clone().into_owned());
            }
            // Either text may contain the other.
            if !self.output.contains(&*message) {
                if message.contains(&self.output) {
                    self.output.clear();
                }
                add(&mut self.output, &message);
            }
        }
    }

    fn push(self, tool_name: String, id: &Id, parent: Option<Id>, out: &mut Events) {
        if self.denied {
            out.push(
                PermissionEvent::new(tool_name, Decision::Denied)
                    .tool_id(id.clone())
                    .reason(self.reason),
            );
        }
        out.push(
            ToolResult::new(id.clone(), self.output)
                .is_error(self.is_error)
                .parent_tool_id(parent),
        );
        for (path, change) in self.changes {
            out.push(FileChange::new(path, change).tool_id(id.clone()));
        }
    }
}

/// Returns the output of an MCP tool: its content, followed by its structured part unless both are equal. The model
/// gets only the structured part if there is one.
fn mcp_output(result: &Object<'_>) -> String {
    let content = match result.text("content") {
        Some(text) => vec![Value::String(text.into_owned())],
        None => result.values("content").unwrap_or_default(),
    };
    let as_block = |block: Value| match block {
        Value::String(text) => json!({"type": "text", "text": text}),
        block => block,
    };
    let content: Vec<Value> = content.into_iter().map(as_block).collect();
    let mut output = mcp_content(&content);
    let is_same = |block: &Value, structured: &Value| {
        let text = block["text"].as_str();
        let value = text.and_then(|text| serde_json::from_str::<Value>(text).ok());
        value.as_ref() == Some(structured) || structured.as_str().is_some_and(|s| text == Some(s))
    };
    if let Some(structured) = result.value("structured_content")
        && !content.iter().any(|block| is_same(block, &structured))
    {
        // A value nested too deeply becomes its text.
        add(&mut output, &text_of(structured));
    }
    output
}

fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        value => value.to_string(),
    }
}

/// Appends a line, unless one of both is empty.
fn add(output: &mut String, line: &str) {
    if !output.is_empty() && !line.is_empty() {
        output.push('\n');
    }
    output.push_str(line);
}
