//! The input of a tool, for people.

mod edit;
mod patch;

pub use edit::{Change, Edit, Shown, edits, paths, written_file};

use std::path::Path;

use serde_json::Value;
use teamster_core::text::one_line;

/// Returns the most descriptive argument of a tool in one line.
pub fn summary(input: &Value, directory: Option<&Path>) -> String {
    const DESCRIPTIVE: [&str; 15] = [
        "command",
        "file_path",
        "filePath",
        "dir_path",
        "notebook_path",
        "path",
        "pattern",
        "query",
        "url",
        "description",
        "subject",
        "skill",
        "name",
        "text",
        "prompt",
    ];
    let Value::Object(fields) = input else {
        return match input {
            Value::Null => String::new(),
            Value::String(text) => one_line(text),
            other => one_line(&other.to_string()),
        };
    };
    let descriptive = (DESCRIPTIVE.iter()).find_map(|key| fields.get(*key).and_then(Value::as_str));
    if descriptive.is_none() {
        let changed = paths(input).into_iter();
        let changed: Vec<_> = changed.map(|path| relative(path, directory)).collect();
        if !changed.is_empty() {
            return one_line(&changed.join(", "));
        }
    }
    if let Some(command) = fields
        .get("command")
        .and_then(Value::as_str)
        .and_then(in_shell)
    {
        return one_line(&command.command);
    }
    if let Some(Value::Array(commands)) = fields.get("commands")
        && let Some(commands) = commands
            .iter()
            .map(Value::as_str)
            .collect::<Option<Vec<_>>>()
        && !commands.is_empty()
    {
        return one_line(&commands.join("; "));
    }
    let text = descriptive.or_else(|| fields.values().find_map(Value::as_str));
    match text {
        Some(text) => one_line(relative(text, directory)),
        None if fields.is_empty() => String::new(),
        None => one_line(&input.to_string()),
    }
}

/// A command that a shell executes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InShell {
    /// Shell with its option, such as `/bin/bash -lc`.
    pub shell: String,
    /// The command.
    pub command: String,
}

/// Returns the parts of `bash -lc 'COMMAND'`, as some CLIs start all of theirs. Returns `None` if there is more than that,
/// or a quotation that only a shell can read.
pub fn in_shell(command: &str) -> Option<InShell> {
    if ["$'", "$\""].iter().any(|mark| command.contains(mark)) {
        return None;
    }
    let words = shell_words::split(command).ok()?;
    let [shell, flag, command] = <[String; 3]>::try_from(words).ok()?;
    let name = ["/bin/", "/usr/bin/"]
        .iter()
        .find_map(|folder| shell.strip_prefix(folder));
    let is_shell = ["bash", "sh", "zsh"].contains(&name.unwrap_or(&shell));
    (is_shell && ["-c", "-lc"].contains(&&*flag)).then(|| InShell {
        shell: format!("{shell} {flag}"),
        command,
    })
}

/// Makes a path below the directory relative to it. Returns other text unchanged.
pub fn relative<'a>(text: &'a str, directory: Option<&Path>) -> &'a str {
    directory
        .and_then(Path::to_str)
        .filter(|directory| *directory != "/")
        .and_then(|directory| text.strip_prefix(directory))
        .and_then(|rest| rest.strip_prefix('/'))
        .filter(|rest| !rest.is_empty())
        .unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_most_descriptive_argument_of_a_tool_is_shown() {
        let input = |value: Value| summary(&value, Some(Path::new("/tmp/ws")));
        assert_eq!(
            input(json!({"description": "run", "command": "echo\n\u{1b}[2Jone"})),
            "echo [2Jone"
        );
        assert_eq!(
            input(json!({"content": "x", "file_path": "/tmp/ws/src/a.rs"})),
            "src/a.rs"
        );
        assert_eq!(input(json!({"path": "/tmp/wsx/a"})), "/tmp/wsx/a");
        assert_eq!(input(json!({"n": 1})), "{\"n\":1}");
        let changes = json!([{"path": "/tmp/ws/a", "kind": "add"}, {"path": "/b", "diff": "x"}]);
        assert_eq!(input(json!({"changes": changes, "root": "/"})), "a, /b");
        assert_eq!(input(json!({"odd": "value"})), "value");
        for (command, shown) in [
            (
                "/bin/bash -lc 'make test && echo done'",
                "make test && echo done",
            ),
            ("sh -c ls", "ls"),
            ("/tmp/bash -lc ls", "/tmp/bash -lc ls"),
            ("bash -lc ls && rm x", "bash -lc ls && rm x"),
            ("bash -lc 'open", "bash -lc 'open"),
            (r"bash -lc $'rm\x20x'", r"bash -lc $'rm\x20x'"),
        ] {
            assert_eq!(input(json!({"command": command})), shown);
        }
        assert_eq!(
            input(json!({"commands": ["ls", "make test"]})),
            "ls; make test"
        );
        assert_eq!(
            input(json!({"commands": ["ls", 1]})),
            r#"{"commands":["ls",1]}"#
        );
        assert_eq!(input(json!(["\u{9b}2J"])), "[\" 2J\"]");
        assert_eq!(input(json!({})), "");
        assert_eq!(input(Value::Null), "");
    }
}
