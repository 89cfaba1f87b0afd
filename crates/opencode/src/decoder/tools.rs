//! Tools: kinds, results and denials.

use serde_json::Value;
use teamster_core::provider::media_placeholder;
use teamster_core::{ChangeKind, FileChange, McpTool, Plan, PlanEntry, PlanStatus, ToolKind};

use crate::launch::Withheld;
use crate::tool_names::in_tool_names;

use super::wire::{Attachment, Todo, ToolMetadata, ToolState};

/// The tool with which the CLI answers a call that it cannot parse.
pub(crate) const INVALID: &str = "invalid";
/// Message of a permission request without an answer.
const REJECTED: &str = "The user rejected permission to use this specific tool call";
/// Message of a denial by a rule of the configuration.
const FORBIDDEN: &str = "The user has specified a rule which prevents you";
/// Message about a tool that was not offered: it does not exist or was permanently denied.
const UNAVAILABLE: &str = "Model tried to call unavailable tool";

/// A call and its result. The CLI prints both in one line when the call has ended.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) input: Value,
    pub(crate) kind: ToolKind,
    pub(crate) mcp: Option<McpTool>,
    pub(crate) output: String,
    pub(crate) is_error: bool,
    pub(crate) denied: bool,
    /// True if the call was denied because there was no answer, which may end the run.
    pub(crate) rejected: bool,
    pub(crate) changes: Vec<FileChange>,
    pub(crate) plan: Option<Plan>,
    /// True if the call was the work of another agent, about which the CLI prints nothing else.
    pub(crate) sub_agent: bool,
}

impl Call {
    pub(crate) fn new(
        tool: &str,
        state: ToolState<'_>,
        mcp_servers: &[String],
        withheld: &Withheld,
    ) -> Self {
        let failed = state.status.as_deref() == Some("error");
        let invalid = tool == INVALID;
        let named = |value: &Value| value.get("tool")?.as_str().map(str::to_owned);
        let name = Some(&state.input)
            .filter(|_| invalid)
            .and_then(named)
            .unwrap_or_else(|| tool.to_owned());
        let mcp = mcp_tool(&name, mcp_servers);
        let kind = if mcp.is_some() {
            ToolKind::Mcp
        } else {
            kind(&name)
        };
        // A tool of another kind may use this name for other metadata.
        let is_command = kind == ToolKind::Execute;
        let is_error = failed || invalid || is_command && command_failed(&state.metadata);
        let output = output(&state);
        let rejected = failed && output.starts_with(REJECTED);
        let denied = rejected
            || failed && output.starts_with(FORBIDDEN)
            || invalid
                && was_withheld(&name, &state.input, |name| {
                    withheld.has(name, mcp.is_some())
                });
        // A server's tool may have the name of one of the CLI's own, and any metadata.
        let (changes, plan) = if is_error || mcp.is_some() {
            (Vec::new(), None)
        } else {
            (
                changes(&name, &state.input, &state.metadata),
                plan(&name, &state.metadata),
            )
        };
        Self {
            kind,
            mcp,
            output,
            is_error,
            denied,
            rejected,
            changes,
            plan,
            sub_agent: kind == ToolKind::Task && !invalid,
            name,
            input: state.input,
        }
    }
}

/// Returns whether a shell command exited with another code than 0 or was killed. The CLI calls such a call
/// completed.
fn command_failed(metadata: &ToolMetadata<'_>) -> bool {
    metadata.exit.is_some_and(|exit| exit.get() != "0")
}

/// Returns the result as text. For a failed call, it is the error.
fn output(state: &ToolState<'_>) -> String {
    let mut text = match (&state.output, &state.error) {
        (Some(output), _) => output.to_string(),
        (None, Some(error)) => error.to_string(),
        (None, None) => String::new(),
    };
    for attachment in &state.attachments {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&placeholder(attachment));
    }
    text
}

fn placeholder(attachment: &Attachment<'_>) -> String {
    let mime = attachment.mime.as_deref();
    let kind = mime
        .and_then(|mime| mime.split('/').next())
        .filter(|kind| matches!(*kind, "image" | "audio" | "video"))
        .unwrap_or("file");
    let data = attachment.url.as_deref().and_then(|url| {
        let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
        head.ends_with(";base64").then_some(data)
    });
    media_placeholder(kind, mime, data)
}

/// Returns whether a tool was not offered because a rule withheld it: the CLI has the tool, or the run's settings
/// name it.
fn was_withheld(name: &str, input: &Value, by_settings: impl Fn(&str) -> bool) -> bool {
    let Some(error) = input.get("error").and_then(Value::as_str) else {
        return false;
    };
    let Some(rest) = error.strip_prefix(UNAVAILABLE) else {
        return false;
    };
    let offered = rest.split_once("Available tools: ");
    let offered = offered.map_or("", |(_, offered)| offered);
    match name {
        // Not `question`: that a run cannot ask a user is no denial.
        "bash" | "read" | "glob" | "grep" | "webfetch" | "task" | "todowrite" | "skill" => true,
        // Some models get `apply_patch` instead.
        "edit" | "write" => !offered.contains("apply_patch"),
        _ => by_settings(name),
    }
}

/// Returns the kind of one of the CLI's own tools. Names of earlier versions are included.
pub(crate) fn kind(name: &str) -> ToolKind {
    match name {
        "read" | "skill" | "lsp" | "lsp_hover" | "lsp_diagnostics" => ToolKind::Read,
        "edit" | "write" | "multiedit" | "patch" | "apply_patch" => ToolKind::Edit,
        "bash" | "shell" => ToolKind::Execute,
        "glob" | "grep" | "list" | "codesearch" | "websearch" => ToolKind::Search,
        "webfetch" => ToolKind::Fetch,
        "task" => ToolKind::Task,
        "todowrite" | "todoread" | "plan_enter" | "plan_exit" => ToolKind::Think,
        _ => ToolKind::Other,
    }
}

/// Returns server and tool in a name such as `server_tool`. Both may contain `_`, so this works only for configured
/// servers.
fn mcp_tool(name: &str, servers: &[String]) -> Option<McpTool> {
    servers
        .iter()
        .filter_map(|server| {
            let begin = in_tool_names(server);
            let tool = name.strip_prefix(begin.as_str())?.strip_prefix('_')?;
            let found = || McpTool::new(server.clone(), tool);
            (!begin.is_empty() && !tool.is_empty()).then(|| (begin.len(), found()))
        })
        // The longest match; of equal ones the first, which is the run's own.
        .rev()
        .max_by_key(|(length, _)| *length)
        .map(|(_, found)| found)
}

/// Returns the files that a successful call changed.
fn changes(tool: &str, input: &Value, metadata: &ToolMetadata<'_>) -> Vec<FileChange> {
    let text = |name: &str| input.get(name).and_then(Value::as_str);
    let one = |path: Option<&str>, change| {
        path.map(|path| file_change(path, change))
            .into_iter()
            .collect()
    };
    match tool {
        "write" => {
            let change = match metadata.exists {
                Some(false) => ChangeKind::Add,
                _ => ChangeKind::Update,
            };
            one(metadata.filepath.as_deref().or(text("filePath")), change)
        }
        "edit" | "multiedit" => {
            let file = metadata.filediff.as_ref().and_then(|d| d.file.as_deref());
            // An edit with an empty old text creates the file. The CLI refuses it for an existing file.
            let change = match text("oldString") {
                Some("") => ChangeKind::Add,
                _ => ChangeKind::Update,
            };
            one(file.or(text("filePath")), change)
        }
        "apply_patch" | "patch" => metadata
            .files
            .iter()
            .filter_map(|file| {
                let change = match file.change.as_deref() {
                    Some("add") => ChangeKind::Add,
                    Some("delete") => ChangeKind::Delete,
                    Some("move") => ChangeKind::Move,
                    _ => ChangeKind::Update,
                };
                let path = file.move_path.as_ref().or(file.file_path.as_ref())?;
                Some(file_change(path, change))
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn file_change(path: &str, change: ChangeKind) -> FileChange {
    FileChange::new(path, change)
}

/// Returns the current to-do list.
fn plan(tool: &str, metadata: &ToolMetadata<'_>) -> Option<Plan> {
    let todos = metadata.todos.as_ref().filter(|_| tool == "todowrite")?;
    Some(Plan::new(todos.iter().filter_map(entry)))
}

fn entry(todo: &Todo<'_>) -> Option<PlanEntry> {
    Some(PlanEntry::new(
        todo.content.as_deref()?.to_owned(),
        PlanStatus::from_word(todo.status.as_deref()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_of_an_mcp_tool_is_reported_only_if_it_is_known() {
        let servers =
            ["", "a", "a_b", "my server", "my.server", "🚀x", "ää", "___"].map(str::to_owned);
        let found = |name| mcp_tool(name, &servers).map(|t| (t.server, t.tool));
        assert_eq!(found("a_x"), Some(("a".into(), "x".into())));
        assert_eq!(found("a_b_x"), Some(("a_b".into(), "x".into())));
        assert_eq!(found("my_server_x"), Some(("my server".into(), "x".into())));
        // Two UTF-16 units of a character of four bytes; then one unit each for characters of two bytes.
        assert_eq!(found("__x_t"), Some(("🚀x".into(), "t".into())));
        assert_eq!(found("___t"), Some(("ää".into(), "t".into())));
        // The length is that of the replaced name, not its bytes.
        assert_eq!(found("____t"), Some(("___".into(), "t".into())));
        assert_eq!(found("_x_t"), None, "not of a server without a name");
        assert_eq!(found("other_x"), None);
        assert_eq!(found("a_"), None);
        assert_eq!(found("bash"), None);
    }

    #[test]
    fn unavailable_tool_is_denied_only_if_the_cli_has_it() {
        let withheld = |name: &str, offered: &str| {
            let error = format!(
                "Model tried to call unavailable tool '{name}'. Available tools: {offered}."
            );
            let input = serde_json::json!({"tool": name, "error": error});
            was_withheld(name, &input, |name| name == "s_denied")
        };
        assert!(withheld("bash", "read"));
        assert!(withheld("write", "read"));
        assert!(!withheld("write", "apply_patch, read"));
        assert!(!withheld("no_such_tool", "bash"));
        assert!(!withheld("question", "bash"));
        assert!(withheld("s_denied", "bash"));
        let input = serde_json::json!({"tool": "bash", "error": "Invalid input for tool bash"});
        assert!(!was_withheld("bash", &input, |_| true));
    }

    #[test]
    fn media_become_placeholders() {
        let state: ToolState<'_> = serde_json::from_str(
            r#"{"status":"completed","output":"Image read successfully","attachments":[
                {"type":"file","mime":"image/png","url":"data:image/png;base64,AAECAw=="},
                {"type":"file","mime":"application/pdf","url":"file:///x.pdf"}]}"#,
        )
        .unwrap();
        assert_eq!(
            output(&state),
            "Image read successfully\n[image: image/png, 4 bytes]\n[file: application/pdf]"
        );
    }
}
