//! Items: what the agent does, one after the other.

use serde_json::{Map, Value, json};
use teamster_core::provider::{Events, mcp_content};
use teamster_core::{
    AgentEvent, ChangeKind, Decision, FileChange, Id, McpTool, NoticeLevel, NoticeSource,
    Permission, Plan, PlanEntry, PlanStatus, ToolKind, ToolResult, ToolUse,
};

use super::ids::Ids;
use super::mcp;
use super::messages::{Kind, Messages};
use super::wire::{Object, with_underscores};

/// Where an item stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Started,
    Updated,
    Completed,
}

/// The items of a run, or of a turn in a session.
#[derive(Debug, Default)]
pub(crate) struct Items {
    ids: Ids,
    pub(crate) messages: Messages,
    /// Tool calls without a result, in order.
    open: Vec<Open>,
    plan: Vec<PlanEntry>,
    /// Sub-agents were started, spoken to or waited for.
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
    /// The call, if it was not said yet because its arguments are not known.
    unsaid: Option<Call>,
}

/// A tool call.
#[derive(Debug)]
struct Call {
    name: String,
    kind: ToolKind,
    mcp: Option<McpTool>,
    input: Value,
    /// The CLI starts web searches before it knows what for.
    incomplete: bool,
}

/// What became of a tool call.
#[derive(Debug, Default)]
struct Outcome {
    output: String,
    is_error: Option<bool>,
    /// It was not permitted.
    denied: bool,
    /// Why, if that is said.
    reason: Option<String>,
    changes: Vec<(String, ChangeKind)>,
}

impl Items {
    /// Takes an item. `None` if its type is not known; then nothing has happened.
    pub(crate) fn item(&mut self, stage: Stage, item: &Object<'_>, out: &mut Events) -> Option<()> {
        let wire_type = item.text("type")?;
        match &*with_underscores(&wire_type) {
            "agent_message" => self.message(stage, Kind::Text, item, out)?,
            "reasoning" => self.message(stage, Kind::Thinking, item, out)?,
            "todo_list" => {
                // The model made or changed it by a tool. At its end, the turn's, it did nothing.
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
                self.tool(stage, kind, item, call, out);
            }
        }
        Some(())
    }

    /// A piece of a message.
    pub(crate) fn piece(&mut self, item: &str, kind: Kind, piece: &str, out: &mut Events) {
        self.messages.add(item, kind, piece, &mut self.ids, out);
    }

    /// The call in this item, if it has no result yet.
    pub(crate) fn open_call(&self, item: &str) -> Option<&Open> {
        self.open.iter().find(|open| open.item == item)
    }

    /// The ids of the calls of a tool of an MCP server that have no result yet.
    pub(crate) fn open_calls_of_mcp(&self, server: &str, tool: &str) -> Vec<Id> {
        let is_it = |open: &&Open| {
            let mcp = open.mcp.as_ref();
            mcp.is_some_and(|mcp| mcp.server == server && mcp.tool == tool)
        };
        let calls = self.open.iter().filter(is_it);
        calls.map(|open| open.id.clone()).collect()
    }

    /// The run is over: says the calls that waited for their arguments.
    pub(crate) fn finish(&mut self, out: &mut Events) {
        for open in &mut self.open {
            if let Some(call) = open.unsaid.take() {
                out.push(call.event(open.id.clone()));
            }
        }
    }

    fn message(
        &mut self,
        stage: Stage,
        kind: Kind,
        item: &Object<'_>,
        out: &mut Events,
    ) -> Option<()> {
        let text = match item.text("text") {
            Some(text) => text,
            None => item.get::<Vec<String>>("summary")?.join("\n").into(),
        };
        let id = item.text("id");
        let whole = stage == Stage::Completed;
        self.messages
            .say(id.as_deref(), kind, &text, whole, &mut self.ids, out);
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

    /// The plan as it now is.
    pub(crate) fn plan(&mut self, entries: Vec<PlanEntry>, out: &mut Events) {
        if entries != self.plan {
            self.plan.clone_from(&entries);
            out.push(AgentEvent::Plan(Plan::new(entries)));
        }
    }

    fn tool(&mut self, stage: Stage, kind: &str, item: &Object<'_>, call: Call, out: &mut Events) {
        let item_id = id_of(item);
        let at = self.open.iter().position(|open| open.item == item_id);
        if at.is_none() {
            // A new call. What a call that runs on in the background says is no part of an answer.
            self.messages.settle();
        }
        if stage != Stage::Completed {
            if at.is_none() {
                let id = self.ids.fresh(&item_id);
                let mut open = Open {
                    item: item_id,
                    id: id.clone(),
                    kind: call.kind,
                    mcp: call.mcp.clone(),
                    unsaid: None,
                };
                if call.incomplete {
                    open.unsaid = Some(call);
                } else {
                    out.push(call.event(id));
                }
                self.open.push(open);
            }
            return;
        }
        let name = call.name.clone();
        let (id, unsaid) = match at.map(|at| self.open.remove(at)) {
            Some(open) => (open.id, open.unsaid.is_some()),
            // Its start was lost, or it had none.
            None => (self.ids.fresh(&item_id), true),
        };
        if unsaid {
            out.push(call.event(id.clone()));
        }
        Outcome::of(kind, item).push(name, &id, out);
    }
}

fn id_of(item: &Object<'_>) -> String {
    item.text("id")
        .map_or_else(|| "item".to_owned(), std::borrow::Cow::into_owned)
}

impl Call {
    /// The call in an item; `None` if items of this type are no tool calls, or not known.
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
                fields(item, &["command"]),
            ),
            "file_change" => {
                let changes = changes(item);
                let only_deletes = !changes.is_empty()
                    && changes.iter().all(|(_, kind)| *kind == ChangeKind::Delete);
                let tool_kind = if only_deletes {
                    ToolKind::Delete
                } else {
                    ToolKind::Edit
                };
                let mut input = fields(item, &["changes"]);
                input.get_mut("changes").map(plain_changes);
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
                let mut input = fields(item, &["prompt", "receiver_thread_ids"]);
                if let Some(input) = input.as_object_mut() {
                    input.retain(|_, value| *value != json!([]));
                }
                let name = with_underscores(&named()).into_owned();
                call(ToolKind::Task, name, input)
            }
            "web_search" => {
                let mut input = fields(item, &["query", "action"]);
                input.get_mut("action").map(plain_action);
                Self {
                    incomplete: input["query"].as_str().is_none_or(str::is_empty),
                    ..call(ToolKind::Search, kind.to_owned(), input)
                }
            }
            _ => return None,
        })
    }

    fn event(self, tool_id: Id) -> AgentEvent {
        AgentEvent::ToolUse(Box::new(
            ToolUse::new(self.name, tool_id, self.kind, self.input).mcp(self.mcp),
        ))
    }
}

/// The input of a tool: these fields of its item, where they are there.
fn fields(item: &Object<'_>, names: &[&str]) -> Value {
    let field = |name: &&str| Some(((*name).to_owned(), item.value(name)?));
    Value::Object(names.iter().filter_map(field).collect::<Map<_, _>>())
}

/// The changes of files as a run has them, which is by a word for each; `codex app-server` has an object
/// for it and the text of the change.
fn plain_changes(changes: &mut Value) {
    let list = changes.as_array_mut().into_iter().flatten();
    for change in list.filter_map(Value::as_object_mut) {
        let word = change
            .get("kind")
            .and_then(|kind| kind.get("type"))
            .cloned();
        if let Some(word) = word {
            change.insert("kind".to_owned(), word);
            change.remove("diff");
        }
    }
}

/// What a search does as a run has it; `codex app-server` also has what is not there, and other words.
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
                outcome.changes = changes(item);
            }
            "mcp_tool_call" => outcome.of_mcp(item),
            "collab_tool_call" | "collab_agent_tool_call" => outcome.output = agents(item),
            _ => {}
        }
        if status == "declined" {
            outcome.denied = true;
            let reason = outcome.output.trim();
            outcome.reason = (!reason.is_empty()).then(|| reason.to_owned());
        }
        outcome
    }

    /// The result of an MCP tool, or why there is none.
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
            // Either may be a part of the other.
            if !self.output.contains(&*message) {
                if message.contains(&self.output) {
                    self.output.clear();
                }
                add(&mut self.output, &message);
            }
        }
    }

    fn push(self, tool_name: String, id: &Id, out: &mut Events) {
        if self.denied {
            out.push(AgentEvent::Permission(Box::new(
                Permission::new(tool_name, Decision::Denied)
                    .tool_id(id.clone())
                    .reason(self.reason),
            )));
        }
        out.push(AgentEvent::ToolResult(Box::new(
            ToolResult::new(id.clone(), self.output).is_error(self.is_error),
        )));
        for (path, change) in self.changes {
            out.push(AgentEvent::FileChange(Box::new(
                FileChange::new(path, change).tool_id(id.clone()),
            )));
        }
    }
}

/// What an MCP tool gave: its content, and below it its structured part unless the content says the
/// same. The model gets the structured part alone where there is one.
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
    let says = |block: &Value, structured: &Value| {
        let text = block["text"].as_str();
        let value = text.and_then(|text| serde_json::from_str::<Value>(text).ok());
        value.as_ref() == Some(structured) || structured.as_str().is_some_and(|s| text == Some(s))
    };
    if let Some(structured) = result.value("structured_content")
        && !content.iter().any(|block| says(block, &structured))
    {
        // What is too deep to be read is its text.
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

/// Adds a line below, unless one of both says nothing.
fn add(output: &mut String, line: &str) {
    if !output.is_empty() && !line.is_empty() {
        output.push('\n');
    }
    output.push_str(line);
}

/// The changed files: a list of objects or, as the CLI has them elsewhere, an object by their paths.
fn changes(item: &Object<'_>) -> Vec<(String, ChangeKind)> {
    if let Some(by_path) = item.object("changes") {
        let change = |(path, raw): (&str, &str)| Some((path.to_owned(), change_kind(raw)?));
        return by_path.entries().filter_map(change).collect();
    }
    let change = |change: &Object<'_>| {
        let kind = change_kind(change.raw("kind").unwrap_or_default());
        // A change is one also if it is of a kind that is not known.
        let kind = kind.unwrap_or(ChangeKind::Update);
        Some((change.text("path")?.into_owned(), kind))
    };
    let list = item.objects("changes");
    list.iter().filter_map(change).collect()
}

/// What was done to a file: a word, or an object with it as its `type`.
fn change_kind(raw: &str) -> Option<ChangeKind> {
    let word = match Object::parse(raw) {
        Some(kind) => kind.text("type")?.into_owned(),
        None => serde_json::from_str(raw).ok()?,
    };
    match word.as_str() {
        "add" => Some(ChangeKind::Add),
        "delete" => Some(ChangeKind::Delete),
        // A file that was moved is an update of its old path.
        "update" => Some(ChangeKind::Update),
        _ => None,
    }
}

/// How other agents are, one a line, each with its last message.
fn agents(item: &Object<'_>) -> String {
    let Some(states) = item.object("agents_states") else {
        return String::new();
    };
    let agent = |(id, raw): (&str, &str)| {
        let state = Object::parse(raw)?;
        let status = state.text("status").unwrap_or_default();
        let status = with_underscores(&status);
        Some(match state.text("message") {
            Some(message) => format!("{id} ({status}): {message}"),
            None => format!("{id} ({status})"),
        })
    };
    let agents: Vec<_> = states.entries().filter_map(agent).collect();
    agents.join("\n")
}
