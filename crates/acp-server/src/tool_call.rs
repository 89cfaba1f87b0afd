//! Converts tool calls to the protocol's tool calls.

use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{
    Content, Diff, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind as SchemaKind,
};
use serde_json::{Value, json};
use teamster_api::tool_input;
use teamster_core::text::{excerpt, one_line};
use teamster_core::{ChangeKind, FileChange, Id, McpTool, PermissionRequest, ToolKind};

use crate::updates;

/// The maximum length of a title, in bytes.
const TITLE: usize = 160;
/// The maximum length of a sub-agent's text, or of a command's output, that is shown while it works, in bytes.
const LIVE_TEXT: usize = 8 << 10;

/// A tool call in progress.
#[derive(Debug, Default)]
pub(crate) struct Call {
    id: String,
    name: String,
    kind: Option<ToolKind>,
    input: Value,
    diffs: Vec<Diff>,
    locations: Vec<ToolCallLocation>,
    /// The files that the call changed.
    changes: Vec<FileChange>,
    /// The end of the sub-agent's text or of the command's output so far.
    live: String,
    /// The index of the update with it, in a replay.
    pub(crate) live_at: Option<usize>,
    /// The session's working directory. Some agents name files relative to it; editors need absolute paths.
    directory: PathBuf,
}

impl Call {
    pub(crate) fn new(
        id: &Id,
        name: &str,
        kind: ToolKind,
        input: &Value,
        mcp: Option<&McpTool>,
    ) -> Self {
        let is_edit = matches!(kind, ToolKind::Edit | ToolKind::Delete | ToolKind::Move);
        let name = match mcp {
            Some(mcp) => format!("{}: {}", mcp.server, mcp.tool),
            None => name.to_owned(),
        };
        let is_about_files = is_edit || matches!(kind, ToolKind::Read);
        Self {
            id: id.to_string(),
            name,
            kind: Some(kind),
            input: input.clone(),
            diffs: if is_edit { diffs_of(input) } else { Vec::new() },
            locations: if is_about_files {
                tool_input::paths(input).into_iter().map(location).collect()
            } else {
                Vec::new()
            },
            changes: Vec::new(),
            live: String::new(),
            live_at: None,
            directory: PathBuf::new(),
        }
    }

    /// Sets the directory of relative paths.
    pub(crate) fn in_directory(mut self, directory: &Path) -> Self {
        directory.clone_into(&mut self.directory);
        self
    }

    pub(crate) fn kind(&self) -> SchemaKind {
        match self.kind {
            Some(ToolKind::Read) => SchemaKind::Read,
            Some(ToolKind::Edit) => SchemaKind::Edit,
            Some(ToolKind::Delete) => SchemaKind::Delete,
            Some(ToolKind::Move) => SchemaKind::Move,
            Some(ToolKind::Search) => SchemaKind::Search,
            Some(ToolKind::Execute) => SchemaKind::Execute,
            Some(ToolKind::Think) if self.proposed_plan().is_some() => SchemaKind::SwitchMode,
            Some(ToolKind::Think | ToolKind::Task) => SchemaKind::Think,
            Some(ToolKind::Fetch) => SchemaKind::Fetch,
            _ => SchemaKind::Other,
        }
    }

    /// Returns the plan that the agent asks to carry out.
    fn proposed_plan(&self) -> Option<&str> {
        (self.kind == Some(ToolKind::Think)).then(|| self.input["plan"].as_str())?
    }

    /// Returns the title: the command of an execution, else the tool's name with its most descriptive argument.
    pub(crate) fn title(&self) -> String {
        let descriptive = [
            "command",
            "cmd",
            "pattern",
            "query",
            "url",
            "description",
            "prompt",
        ];
        let argument = tool_input::paths(&self.input).first().copied().or_else(|| {
            descriptive
                .iter()
                .find_map(|name| match &self.input[*name] {
                    Value::String(text) => Some(text.as_str()),
                    _ => None,
                })
        });
        let title = match argument {
            Some(command) if self.kind == Some(ToolKind::Execute) => {
                // Some CLIs start each command in a shell.
                let in_shell = tool_input::in_shell(command).map(|it| it.command);
                format!("`{}`", in_shell.as_deref().unwrap_or(command))
            }
            Some(argument) => format!("{} {argument}", self.name),
            None if self.input["commands"].is_array() => {
                format!("`{}`", tool_input::summary(&self.input, None))
            }
            None => self.name.clone(),
        };
        excerpt(&one_line(&title), TITLE)
    }

    /// Returns the call at its start.
    pub(crate) fn begin(&self, tool_name: &str) -> ToolCall {
        ToolCall::new(self.id.clone(), self.title())
            .name(tool_name.to_owned())
            .kind(self.kind())
            .status(ToolCallStatus::InProgress)
            .locations(self.shown_locations())
            .content(self.shown_diffs())
            .raw_input(self.input.clone())
    }

    /// Returns the call for a permission request.
    pub(crate) fn for_permission(&self, tool_name: &str, message: Option<&str>) -> ToolCallUpdate {
        let mut content = self.shown_diffs();
        content.extend(self.proposed_plan().or(message).map(text));
        let fields = ToolCallUpdateFields::new()
            .title(self.title())
            .name(tool_name.to_owned())
            .kind(self.kind())
            .status(ToolCallStatus::Pending)
            .locations(self.shown_locations())
            .content(content)
            .raw_input(self.input.clone());
        ToolCallUpdate::new(self.id.clone(), fields)
    }

    /// Takes the diffs, files and text before that only the request for approval of this call has.
    pub(crate) fn requested(&mut self, request: &PermissionRequest) {
        if self.diffs.is_empty() && self.is_edit() {
            self.diffs = diffs_of(&request.input);
        }
        if tool_input::written_file(&request.input).is_some()
            && let [diff] = &mut self.diffs[..]
        {
            diff.old_text.clone_from(&request.old_text);
        }
        for path in tool_input::paths(&request.input) {
            if self.is_edit() && self.locations.iter().all(|it| it.path != Path::new(path)) {
                self.locations.push(location(path));
            }
        }
    }

    fn is_edit(&self) -> bool {
        matches!(
            self.kind,
            Some(ToolKind::Edit | ToolKind::Delete | ToolKind::Move)
        )
    }

    /// Appends text of a sub-agent to the call's content, which keeps only the end of a long text.
    pub(crate) fn sub_agent_text(&mut self, words: &str) -> ToolCallUpdate {
        self.add_live(words);
        let fields = ToolCallUpdateFields::new().content(vec![text(&self.live)]);
        ToolCallUpdate::new(self.id.clone(), fields)
    }

    /// Appends a piece of a command's output to the call's content, which keeps only the end of a long output. The result
    /// replaces it.
    pub(crate) fn live_output(&mut self, piece: &str) -> ToolCallUpdate {
        self.add_live(piece);
        let fields = ToolCallUpdateFields::new().content(vec![text(&self.fenced(&self.live))]);
        let about = updates::meta(json!({"liveOutput": piece}));
        ToolCallUpdate::new(self.id.clone(), fields).meta(about)
    }

    fn add_live(&mut self, piece: &str) {
        self.live.push_str(piece);
        if self.live.len() > LIVE_TEXT {
            self.live = teamster_core::text::tail(&self.live, LIVE_TEXT);
        }
    }

    /// Records a changed file. `content` is the file's current content, if the host read it. Returns `None` if the call
    /// already shows a diff of the file.
    pub(crate) fn changed(
        &mut self,
        change: &FileChange,
        content: Option<&str>,
    ) -> Option<ToolCallUpdate> {
        let path = Path::new(&change.path);
        self.changes.push(change.clone());
        if self.diffs.iter().any(|diff| same(&diff.path, path)) {
            return None;
        }
        if self.locations.iter().all(|it| !same(&it.path, path)) {
            self.locations.push(location(&change.path));
        }
        // The previous content of an updated file is unknown, so only its location is shown.
        if let (ChangeKind::Add, Some(content)) = (change.change, content) {
            self.diffs.push(Diff::new(&change.path, content));
        }
        let fields = ToolCallUpdateFields::new()
            .locations(self.shown_locations())
            .content(self.shown_diffs());
        Some(ToolCallUpdate::new(self.id.clone(), fields))
    }

    pub(crate) fn end(&self, output: &str, failed: bool) -> ToolCallUpdate {
        let mut content = if failed {
            Vec::new()
        } else {
            self.shown_diffs()
        };
        // The output of an edit adds nothing to its diff.
        if content.is_empty() && !output.is_empty() {
            content.push(text(&self.fenced(output)));
        }
        let status = if failed {
            ToolCallStatus::Failed
        } else {
            ToolCallStatus::Completed
        };
        let fields = ToolCallUpdateFields::new()
            .status(status)
            .content(content)
            .raw_output(Value::String(output.to_owned()));
        let changes: Vec<_> = (self.changes.iter())
            .map(|it| json!({"path": it.path, "change": it.change}))
            .collect();
        let meta = (!changes.is_empty()).then(|| updates::meta(json!({"changes": changes})));
        ToolCallUpdate::new(self.id.clone(), fields).meta(meta)
    }

    /// Wraps output that is not Markdown in a code fence longer than any in the output.
    fn fenced(&self, output: &str) -> String {
        let is_plain = matches!(
            self.kind,
            Some(ToolKind::Execute | ToolKind::Read | ToolKind::Search)
        );
        if !is_plain {
            return output.to_owned();
        }
        let longest = output.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        format!("{fence}\n{output}\n{fence}")
    }

    fn shown_diffs(&self) -> Vec<ToolCallContent> {
        let mut diffs = self.diffs.clone();
        for diff in &mut diffs {
            diff.path = self.directory.join(&diff.path);
        }
        diffs.into_iter().map(ToolCallContent::Diff).collect()
    }

    fn shown_locations(&self) -> Vec<ToolCallLocation> {
        let mut locations = self.locations.clone();
        for location in &mut locations {
            location.path = self.directory.join(&location.path);
        }
        locations
    }
}

fn text(text: &str) -> ToolCallContent {
    ToolCallContent::Content(Content::new(text.to_owned()))
}

/// Returns the diffs in the input of an editing tool.
fn diffs_of(input: &Value) -> Vec<Diff> {
    let edits = tool_input::edits(input).into_iter();
    edits
        .map(|edit| Diff::new(edit.path, edit.new).old_text(edit.old))
        .collect()
}

fn location(path: &str) -> ToolCallLocation {
    ToolCallLocation::new(path)
}

/// Compares paths, of which one may be relative to a parent folder of the other.
fn same(one: &Path, other: &Path) -> bool {
    one.ends_with(other) || other.ends_with(one)
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::needless_pass_by_value,
        reason = "JSON is given as it is written"
    )]

    use super::*;

    fn call(name: &str, kind: ToolKind, input: Value) -> Call {
        Call::new(&"t1".into(), name, kind, &input, None)
    }

    fn wire(value: impl serde::Serialize) -> Value {
        serde_json::to_value(value).unwrap()
    }

    #[test]
    fn a_command_is_its_own_title_and_its_output_is_fenced() {
        let call = call("Bash", ToolKind::Execute, json!({"command": "ls\n-la"}));
        assert_eq!(
            wire(call.begin("Bash")),
            json!({"toolCallId": "t1", "title": "`ls -la`", "name": "Bash", "kind": "execute",
                   "status": "in_progress", "rawInput": {"command": "ls\n-la"}})
        );
        let end = wire(call.end("# a\n```\n", false));
        assert_eq!(
            end["content"][0]["content"]["text"],
            "````\n# a\n```\n\n````"
        );
        assert_eq!(end["rawOutput"], "# a\n```\n");
        assert_eq!(end["status"], "completed");
        assert_eq!(wire(call.end("no", true))["status"], "failed");
    }

    #[test]
    fn a_command_is_shown_without_the_shell_around_it() {
        let title = |input| call("shell", ToolKind::Execute, input).title();
        assert_eq!(
            title(json!({"command": "/bin/bash -lc 'make test'"})),
            "`make test`"
        );
        assert_eq!(title(json!({"commands": ["ls", "make"]})), "`ls; make`");
    }

    #[test]
    fn live_output_grows_and_keeps_its_end() {
        let mut call = call("Bash", ToolKind::Execute, json!({"command": "make"}));
        call.live_output("one\n");
        let update = wire(call.live_output("two\n"));
        assert_eq!(
            update["content"][0]["content"]["text"],
            "```\none\ntwo\n\n```"
        );
        assert_eq!(
            update["_meta"],
            json!({"teamster": {"liveOutput": "two\n"}})
        );
        assert_eq!(update["status"], Value::Null);
        let long = wire(call.live_output(&"x".repeat(3 * LIVE_TEXT)));
        let shown = long["content"][0]["content"]["text"].as_str().unwrap();
        assert!(
            shown.len() < LIVE_TEXT + 100 && shown.ends_with("xx\n```"),
            "{}",
            shown.len()
        );
    }

    #[test]
    fn paths_are_absolute() {
        // Of the embedded agent, whose model names files relative to the working directory.
        let input = json!({"path": "src/a.rs", "old_string": "x", "new_string": "y"});
        let mut call = call("edit", ToolKind::Edit, input).in_directory(Path::new("/w"));
        let begin = wire(call.begin("edit"));
        assert_eq!(begin["content"][0]["path"], "/w/src/a.rs");
        assert_eq!(begin["locations"], json!([{"path": "/w/src/a.rs"}]));
        let change = FileChange::new("/w/src/a.rs", ChangeKind::Update);
        assert_eq!(call.changed(&change, Some("y")), None);
        let update = call.changed(&FileChange::new("b", ChangeKind::Add), Some("new"));
        let update = wire(update.unwrap());
        assert_eq!(update["content"][1]["path"], "/w/b");
    }

    #[test]
    fn an_edit_has_its_difference_from_the_beginning_to_the_end() {
        let input = json!({"file_path": "/w/a", "old_string": "x", "new_string": "y"});
        let mut call = call("Edit", ToolKind::Edit, input);
        let diff = json!([{"type": "diff", "path": "/w/a", "oldText": "x", "newText": "y"}]);
        let begin = wire(call.begin("Edit"));
        assert_eq!(begin["content"], diff);
        assert_eq!(begin["locations"], json!([{"path": "/w/a"}]));
        assert_eq!(begin["title"], "Edit /w/a");
        let change = FileChange::new("/w/a", ChangeKind::Update);
        assert_eq!(call.changed(&change, Some("y")), None);
        assert_eq!(wire(call.end("done", false))["content"], diff);
    }

    #[test]
    fn an_added_file_is_shown_with_its_content() {
        let input = json!({"changes": [{"path": "/w/new", "kind": "add"}]});
        let mut call = call("file_change", ToolKind::Edit, input);
        let change = FileChange::new("/w/new", ChangeKind::Add);
        let update = wire(call.changed(&change, Some("text\n")).unwrap());
        assert_eq!(
            update["content"],
            json!([{"type": "diff", "path": "/w/new", "newText": "text\n"}])
        );
        assert_eq!(update["locations"], json!([{"path": "/w/new"}]));
    }

    #[test]
    fn a_server_s_tool_is_named_with_its_server() {
        let mcp = McpTool::new("tracker", "search");
        let call = Call::new(
            &"t1".into(),
            "mcp__tracker__search",
            ToolKind::Mcp,
            &json!({"query": "bug"}),
            Some(&mcp),
        );
        assert_eq!(call.title(), "tracker: search bug");
        assert_eq!(
            wire(call.begin("mcp__tracker__search"))["name"],
            "mcp__tracker__search"
        );
    }
}
