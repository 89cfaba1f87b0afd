//! Tool calls in the protocol.

use serde_json::{Map, Value, json};
use teamster_core::provider::mcp_content;
use teamster_core::{AgentEvent, ChangeKind, FileChange, Id, McpTool, ToolKind};

/// An agent's report of a tool call so far.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ToolCall {
    /// The agent's id.
    pub id: String,
    /// The first title. Some agents put the tool's name there.
    pub first_title: String,
    /// The latest title, for people.
    pub title: String,
    /// The tool's name, from the few agents that send it.
    pub name: Option<String>,
    /// The protocol's word for what sort of tool it is, such as `edit`.
    pub kind: Option<String>,
    /// The protocol's word for how far it is, such as `in_progress`.
    pub status: Option<String>,
    /// The arguments, if the agent sends them.
    pub input: Option<Value>,
    /// Output of the tool, in the agent's own shape.
    pub output: Option<Value>,
    /// Content to display: texts and other content, differences of files, terminals.
    pub content: Vec<Value>,
    /// Files and places that it is about.
    pub locations: Vec<Value>,
    /// Extension data of the protocol (`_meta`).
    pub meta: Option<Value>,
    /// The tool that it is, once that was passed on.
    pub tool: Option<Tool>,
}

/// A tool call as it is passed on.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Tool {
    /// The tool's name.
    pub name: String,
    /// Kind of the tool.
    pub kind: ToolKind,
    /// The arguments.
    pub input: Value,
    /// Server and tool, for a tool of an MCP server.
    pub mcp: Option<McpTool>,
    /// It starts another agent, and the output until it ends is that agent's.
    pub sub_agent: bool,
}

/// End of a tool call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolEnd {
    /// The result as text.
    pub output: String,
    /// Whether it failed, where that is known.
    pub is_error: Option<bool>,
    /// Why it was not permitted, if it was not.
    pub denied: Option<String>,
    /// Effects with events of their own, such as changes of files.
    pub effects: Vec<AgentEvent>,
}

/// One answer that an agent offers to a request for permission.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PermissionOption {
    /// By which it is chosen.
    pub id: String,
    /// For people.
    pub name: String,
    /// The protocol's word for it, such as `allow_once`.
    pub kind: String,
}

impl PermissionOption {
    /// An answer.
    pub fn new(id: impl Into<String>, name: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            kind: kind.into(),
        }
    }
}

impl Tool {
    /// A tool that is neither a server's nor starts another agent.
    pub fn new(name: impl Into<String>, kind: ToolKind, input: Value) -> Self {
        Self {
            name: name.into(),
            kind,
            input,
            mcp: None,
            sub_agent: false,
        }
    }
}

impl ToolEnd {
    /// An end with this result.
    pub fn new(output: impl Into<String>, is_error: Option<bool>) -> Self {
        Self {
            output: output.into(),
            is_error,
            denied: None,
            effects: Vec::new(),
        }
    }
}

impl ToolCall {
    /// The tool, as far as the protocol has it: its name is the agent's own, else a title that could be
    /// one, else the protocol's word for its kind.
    pub fn plain(&self) -> Tool {
        let word = self.kind.as_deref().unwrap_or("other");
        let title = Some(&self.first_title).filter(|title| is_a_name(title));
        let name = self.name.as_deref().or(title.map(String::as_str));
        Tool::new(name.unwrap_or(word), kind_of_word(word), self.plain_input())
    }

    /// The arguments; if the agent does not send them, an object of what it sends in their place: the
    /// title, and the files that the call is about.
    pub fn plain_input(&self) -> Value {
        if let Some(input) = &self.input {
            return input.clone();
        }
        let mut known = Map::new();
        if !self.title.is_empty() {
            known.insert("title".into(), json!(self.title));
        }
        if !self.locations.is_empty() {
            known.insert("locations".into(), json!(self.locations));
        }
        Value::Object(known)
    }

    /// The texts that are to be shown, one below the other, with placeholders for what is no text. A
    /// difference of a file is in [`changes`](Self::changes).
    pub fn text(&self) -> String {
        let blocks: Vec<Value> = (self.content.iter())
            .filter_map(|item| match item["type"].as_str() {
                Some("content") => Some(item["content"].clone()),
                Some("diff") => None,
                _ => Some(item.clone()),
            })
            .collect();
        mcp_content(&blocks)
    }

    /// The result, as far as the protocol has it: the texts that are to be shown, else what the tool gave
    /// in the agent's own shape.
    pub fn plain_end(&self) -> ToolEnd {
        let failed = self.status.as_deref() == Some("failed");
        let shown = self.text();
        let output = match &self.output {
            _ if !shown.is_empty() => shown,
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        let mut end = ToolEnd::new(output, Some(failed));
        if !failed {
            end.effects = self.changes();
        }
        end
    }

    /// The files that it changed, of which the agent shows the difference.
    pub fn changes(&self) -> Vec<AgentEvent> {
        let is_diff = |item: &&Value| item["type"] == "diff";
        let change = |item: &Value| {
            let change = match item["oldText"].as_str() {
                None | Some("") => ChangeKind::Add,
                _ => ChangeKind::Update,
            };
            Some(file_change(item["path"].as_str()?, change))
        };
        (self.content.iter())
            .filter(is_diff)
            .filter_map(change)
            .collect()
    }

    /// Whether enough is known to pass the call on.
    pub(crate) fn has_begun(&self) -> bool {
        self.status.as_deref().is_some_and(|word| word != "pending")
    }
}

/// A change of a file, whose call its caller announces.
pub(crate) fn file_change(path: &str, change: ChangeKind) -> AgentEvent {
    AgentEvent::FileChange(Box::new(FileChange::new(path, change)))
}

/// Names the call in what it did.
pub(crate) fn by_call(mut event: AgentEvent, id: &Id) -> AgentEvent {
    if let AgentEvent::FileChange(change) = &mut event {
        change.tool_id.get_or_insert_with(|| id.clone());
    }
    event
}

/// Whether a title could be the name of a tool.
fn is_a_name(title: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':');
    (1..=64).contains(&title.len()) && title.bytes().all(allowed)
}

/// Maps the protocol's word for a kind. `think` does not count as free of side effects:
/// agents also use it for other agents that they start.
pub(crate) fn kind_of_word(word: &str) -> ToolKind {
    match word {
        "read" => ToolKind::Read,
        "edit" => ToolKind::Edit,
        "delete" => ToolKind::Delete,
        "move" => ToolKind::Move,
        "search" => ToolKind::Search,
        "execute" => ToolKind::Execute,
        "fetch" => ToolKind::Fetch,
        "switch_mode" => ToolKind::Think,
        _ => ToolKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(title: &str, kind: &str) -> ToolCall {
        ToolCall {
            first_title: title.into(),
            title: title.into(),
            kind: Some(kind.into()),
            ..ToolCall::default()
        }
    }

    #[test]
    fn a_name_is_the_agent_s_own_or_a_title_that_could_be_one_or_the_kind() {
        let mut named = call("Writing a file", "edit");
        named.name = Some("write_file".into());
        assert_eq!(named.plain().name, "write_file");
        assert_eq!(call("probe_echo", "other").plain().name, "probe_echo");
        let plain = call("ls -la", "execute").plain();
        assert_eq!(
            (plain.name.as_str(), plain.kind),
            ("execute", ToolKind::Execute)
        );
        assert_eq!(plain.input, json!({"title": "ls -la"}));
        assert_eq!(call("", "").plain().kind, ToolKind::Other);
        assert!(call("Plan", "think").plain().kind.has_side_effects());
    }

    #[test]
    fn displayed_content_precedes_the_raw_output() {
        let mut call = call("x", "edit");
        call.status = Some("completed".into());
        call.output = Some(json!({"a": 1}));
        assert_eq!(call.plain_end().output, r#"{"a":1}"#);
        call.output = Some(json!("output"));
        assert_eq!(call.plain_end().output, "output");
        call.content = vec![
            json!({"type": "content", "content": {"type": "text", "text": "shown"}}),
            json!({"type": "diff", "path": "/a", "oldText": null, "newText": "x"}),
            json!({"type": "diff", "path": "/b", "oldText": "y", "newText": "x"}),
            json!({"type": "terminal", "terminalId": "t"}),
        ];
        let end = call.plain_end();
        assert_eq!(end.output, "shown\n[terminal]");
        assert_eq!(end.is_error, Some(false));
        let id = Id::from("c1");
        let changes: Vec<_> = (end.effects.into_iter())
            .map(|event| match by_call(event, &id) {
                AgentEvent::FileChange(e) => (e.path, e.change, e.tool_id),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            changes,
            [
                ("/a".to_owned(), ChangeKind::Add, Some(id.clone())),
                ("/b".to_owned(), ChangeKind::Update, Some(id))
            ]
        );
        call.status = Some("failed".into());
        assert_eq!(call.plain_end().is_error, Some(true));
        assert!(call.plain_end().effects.is_empty());
    }
}
