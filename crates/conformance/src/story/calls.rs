//! Descriptions of calls that are the same for every CLI.

use std::path::Path;

use serde_json::Value;
use teamster::{ToolKind, ToolUse};
use teamster_mock_model::Part;

/// The tools that write a plan.
const PLANS: [&str; 6] = [
    "TodoWrite",
    "todowrite",
    "update_plan",
    "write_todos",
    "todo_write",
    "TodoList",
];

/// The tools that ask the user.
const QUESTIONS: [&str; 5] = [
    "AskUserQuestion",
    "ask_user",
    "ask_user_question",
    "question",
    "request_user_input",
];

/// The tools that search the web.
const SEARCHES: [&str; 3] = ["WebSearch", "google_web_search", "web_search"];

pub(super) fn scripted_call(part: &Part) -> String {
    match part {
        Part::Shell(command) | Part::BackgroundShell(command) => format!("execute: {command}"),
        Part::ReadFile(path) => format!("read: {path}"),
        Part::WriteFile { path, .. } | Part::EditFile { path, .. } => format!("edit: {path}"),
        Part::Mcp {
            server,
            tool,
            arguments,
        } => format!("mcp: {server}/{tool} {arguments}"),
        Part::Agent { prompt, .. } => format!("agent: {prompt}"),
        Part::Tool { name, .. } => format!("other: {name}"),
        Part::Plan(_) => "plan".to_owned(),
        Part::Ask(question) => format!("ask: {question}"),
        Part::WebSearch(query) | Part::ServiceSearch(query) => format!("search: {query}"),
        _ => String::new(),
    }
}

/// Makes paths relative to the working directory.
pub(crate) fn in_place(text: &str, directory: &Path) -> String {
    let directory = directory.display().to_string();
    text.replace(&format!("{directory}/"), "")
        .replace(&directory, ".")
}

/// Describes a call in the terms of the script.
pub(super) fn described_call(tool: &ToolUse, directory: &Path) -> String {
    let field = |names: &[&str]| {
        names
            .iter()
            .find_map(|name| tool.input.get(name))
            .map(
                |value| match (value, value[0].as_str().or(value[0]["path"].as_str())) {
                    (Value::String(text), _) => in_place(text, directory),
                    // A list with one item.
                    (_, Some(text)) => in_place(text, directory),
                    (other, None) => other.to_string(),
                },
            )
    };
    let (word, what) = match (&tool.mcp, tool.kind) {
        (Some(mcp), _) => (
            "mcp",
            Some(format!("{}/{} {}", mcp.server, mcp.tool, tool.input)),
        ),
        (None, ToolKind::Execute) => (
            "execute",
            field(&["command", "cmd", "commands"]).map(unwrapped),
        ),
        (None, ToolKind::Read) => (
            "read",
            field(&["file_path", "filePath", "absolute_path", "path", "files"])
                .or_else(|| first_path("locations", &tool.input, directory)),
        ),
        (None, ToolKind::Edit) => (
            "edit",
            field(&["file_path", "filePath", "path"])
                .or_else(|| first_path("changes", &tool.input, directory))
                .or_else(|| first_path("locations", &tool.input, directory)),
        ),
        (None, _) if PLANS.contains(&tool.tool_name.as_str()) => return "plan".to_owned(),
        (None, _) if QUESTIONS.contains(&tool.tool_name.as_str()) => {
            let question = tool.input["questions"][0]["question"].as_str();
            let question = question.or(tool.input["question"].as_str());
            ("ask", question.map(str::to_owned))
        }
        (None, _) if SEARCHES.contains(&tool.tool_name.as_str()) => ("search", field(&["query"])),
        (None, ToolKind::Task) => ("agent", field(&["prompt", "message"])),
        _ => ("other", Some(tool.tool_name.clone())),
    };
    match what {
        Some(what) => format!("{word}: {what}"),
        None => format!("{word}: {}", tool.input),
    }
}

/// Returns a command without the shell in which Codex runs it.
fn unwrapped(command: String) -> String {
    ["/bin/bash -lc ", "bash -lc "]
        .iter()
        .find_map(|shell| command.strip_prefix(shell))
        .and_then(|quoted| {
            let words = shell_words::split(quoted).ok()?;
            (words.len() == 1).then(|| words.concat())
        })
        .unwrap_or(command)
}

/// Returns the first file in a list: the changes of a patch, or the locations of an ACP agent's call.
fn first_path(list: &str, input: &Value, directory: &Path) -> Option<String> {
    let path = input[list].as_array()?.first()?["path"].as_str()?;
    Some(in_place(path, directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_around_a_command_is_no_part_of_it() {
        assert_eq!(
            unwrapped("/bin/bash -lc 'echo a; echo b'".into()),
            "echo a; echo b"
        );
        assert_eq!(unwrapped("/bin/bash -lc \"echo 'a'\"".into()), "echo 'a'");
        assert_eq!(unwrapped("echo hi".into()), "echo hi");
    }
}
