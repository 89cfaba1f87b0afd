//! Tool calls in the protocol.

use serde_json::{Map, Value, json};
use teamster_core::provider::mcp_content;
use teamster_core::{AgentEvent, ChangeKind, FileChange, Id, McpTool, ToolKind};

/// State of a tool call, as the agent has reported it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ToolCall {
    /// The agent's id.
    pub id: String,
    /// The first title. Some agents put the tool's name there.
    pub first_title: String,
    /// The latest title, for people.
    pub title: String,
    /// The tool's name, if the agent sends it.
    pub name: Option<String>,
    /// The protocol's kind of the tool, such as `edit`.
    pub kind: Option<String>,
    /// The protocol's status of the call, such as `in_progress`.
    pub status: Option<String>,
    /// The arguments, if the agent sends them.
    pub input: Option<Value>,
    /// Output of the tool, in the agent's own format.
    pub output: Option<Value>,
    /// Content to display: text, file diffs, terminals.
    pub content: Vec<Value>,
    /// The latest file diffs. Some agents display them only while the call runs.
    pub diffs: Vec<Value>,
    /// Files and locations that the call concerns.
    pub locations: Vec<Value>,
    /// Extension data of the protocol (`_meta`).
    pub meta: Option<Value>,
    /// The tool, once the call was emitted.
    pub tool: Option<Tool>,
}

/// Tool of a call, as it is emitted.
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
    /// The tool starts another agent. Output until the call ends is that agent's.
    pub sub_agent: bool,
}

/// End of a tool call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolEnd {
    /// The result as text.
    pub output: String,
    /// True if the call failed; `None` if unknown.
    pub is_error: Option<bool>,
    /// Reason for the denial, if the call was denied. It may be empty.
    pub denied: Option<String>,
    /// Effects with their own events, such as file changes.
    pub effects: Vec<AgentEvent>,
}

/// An option that an agent offers in a permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PermissionOption {
    /// Id that selects the option.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// The protocol's kind of the option, such as `allow_once`.
    pub kind: String,
}

impl PermissionOption {
    /// Creates an option.
    pub fn new(id: impl Into<String>, name: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            kind: kind.into(),
        }
    }
}

impl Tool {
    /// Creates a tool that neither belongs to an MCP server nor starts another agent.
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
    /// Creates an end with this output; whether the call failed is unknown.
    pub fn new(output: impl Into<String>) -> Self {
        Self {
            output: output.into(),
            is_error: None,
            denied: None,
            effects: Vec::new(),
        }
    }
}

impl ToolCall {
    /// Returns the tool according to the protocol. Its name is the agent's name for it, else the title if that could
    /// be a name, else the kind.
    pub fn plain(&self) -> Tool {
        let word = self.kind.as_deref().unwrap_or("other");
        let title = Some(&self.first_title).filter(|title| is_a_name(title));
        let name = self.name.as_deref().or(title.map(String::as_str));
        Tool::new(name.unwrap_or(word), kind_of_word(word), self.plain_input())
    }

    /// Returns the arguments. If the agent does not send them, returns an object with the command that it shows, else
    /// the title, and with the locations.
    pub fn plain_input(&self) -> Value {
        if let Some(input) = &self.input {
            return input.clone();
        }
        let mut known = Map::new();
        if let Some(command) = self.shown_command() {
            known.insert("command".into(), json!(command));
        } else if !self.title.is_empty() {
            known.insert("title".into(), json!(self.title));
        }
        if !self.locations.is_empty() {
            known.insert("locations".into(), json!(self.locations));
        }
        Value::Object(known)
    }

    /// Returns the displayed text, with placeholders for other content. File diffs are in [`changes`](Self::changes)
    /// instead.
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

    /// Returns the end according to the protocol. The output is the displayed text, else the raw output.
    pub fn plain_end(&self) -> ToolEnd {
        let failed = self.status.as_deref() == Some("failed");
        let shown = self.text();
        let output = match &self.output {
            _ if !shown.is_empty() => shown,
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        let mut end = ToolEnd::new(output);
        end.is_error = Some(failed);
        if !failed {
            end.effects = self.changes();
        }
        end
    }

    /// Returns the file changes for which the agent shows a diff.
    pub fn changes(&self) -> Vec<AgentEvent> {
        let change = |item: &Value| {
            let change = match item["oldText"].as_str() {
                None | Some("") => ChangeKind::Add,
                _ => ChangeKind::Update,
            };
            Some(file_change(item["path"].as_str()?, change))
        };
        self.diffs.iter().filter_map(change).collect()
    }

    /// Returns the command of a call that has not ended, if the agent shows it as `$ COMMAND` and sends no arguments.
    /// Its title may be shortened.
    pub(crate) fn shown_command(&self) -> Option<&str> {
        let ended = matches!(self.status.as_deref(), Some("completed" | "failed"));
        if ended || self.input.is_some() || self.kind.as_deref() != Some("execute") {
            return None;
        }
        match self.content.as_slice() {
            [only] => only["content"]["text"].as_str()?.strip_prefix("$ "),
            _ => None,
        }
    }

    /// Returns whether the agent has sent arguments that are not empty.
    pub(crate) fn has_arguments(&self) -> bool {
        match &self.input {
            None | Some(Value::Null) => false,
            Some(Value::Object(fields)) => !fields.is_empty(),
            Some(_) => true,
        }
    }

    /// Returns whether the agent has sent any output.
    pub(crate) fn has_output(&self) -> bool {
        self.output.is_some() || !self.content.is_empty()
    }

    /// Returns whether the call is no longer pending.
    pub(crate) fn has_begun(&self) -> bool {
        self.status.as_deref().is_some_and(|word| word != "pending")
    }
}

/// Creates a file change without the id of a call, which `by_call` adds.
pub fn file_change(path: &str, change: ChangeKind) -> AgentEvent {
    AgentEvent::FileChange(Box::new(FileChange::new(path, change)))
}

/// Adds the id of the call to an event of its effects.
pub(crate) fn by_call(mut event: AgentEvent, id: &Id) -> AgentEvent {
    if let AgentEvent::FileChange(change) = &mut event {
        change.tool_id.get_or_insert_with(|| id.clone());
    }
    event
}

/// Returns whether a title could be a tool's name.
fn is_a_name(title: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':');
    (1..=64).contains(&title.len()) && title.bytes().all(allowed)
}

/// Maps the protocol's kind of a tool. `think` maps to a kind with side effects, because agents also use it for
/// sub-agents.
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
    fn tool_name_is_the_agents_name_or_a_title_or_the_kind() {
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
    fn command_that_is_shown_before_its_end_is_the_argument() {
        // Of Hermes 0.19.0; the command is made longer.
        let long = format!("printf x; {}", "true; ".repeat(20));
        let mut call = call("terminal: printf x; true; true...", "execute");
        let shown =
            |text: &str| json!({"content": {"text": text, "type": "text"}, "type": "content"});
        call.content = vec![shown(&format!("$ {long}"))];
        assert_eq!(call.plain_input(), json!({"command": long}));
        call.input = Some(json!({"command": "ls"}));
        assert_eq!(call.plain_input(), json!({"command": "ls"}));
        call.input = None;
        let titled = json!({"title": "terminal: printf x; true; true..."});
        call.status = Some("completed".into());
        assert_eq!(call.plain_input(), titled, "it is output");
        call.status = None;
        call.content.push(shown("$ ls"));
        assert_eq!(call.plain_input(), titled, "it is one of several");
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
        call.diffs = call.content[1..3].to_vec();
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
