//! Command and paths that a call is about.

use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use serde_json::Value;
use teamster_core::ToolKind;

use super::Words;
use crate::tools::{Roots, Target};

/// Ends of the names that MCP servers give to arguments with paths, in lower case and without `_` and `-`.
const PATH_ENDS: Words = Words(
    "
        path paths file files filename filenames dir dirs directory directories folder folders uri uris
        source sources destination destinations target targets
    ",
);
/// Whole names of such arguments.
const PATH_NAMES: Words = Words("src dest dst from to cwd root");

/// Command or paths that a call is about, resolved once: the rules and the tool get the same ones.
#[derive(Debug, Default)]
pub(crate) struct Subject {
    pub(super) command: Option<String>,
    /// At most one for a built-in tool.
    pub(super) targets: Vec<Target>,
}

impl Subject {
    /// Returns the subject of a call.
    pub(crate) fn new(roots: &Roots, tool: &str, kind: ToolKind, input: &Value) -> Self {
        let field = |name: &str| input.get(name).and_then(Value::as_str);
        let has_command = matches!(kind, ToolKind::Execute | ToolKind::Mcp);
        let command = field("command").filter(|_| has_command).map(str::to_owned);
        let targets = match (tool, kind) {
            (_, ToolKind::Execute) => Vec::new(),
            (_, ToolKind::Mcp) => {
                let mut paths = Vec::new();
                find_paths(input, false, &mut paths);
                paths.iter().map(|path| roots.anywhere(path)).collect()
            }
            ("grep" | "glob", ToolKind::Search) => {
                vec![roots.existing(field("path").unwrap_or("."))]
            }
            ("write", ToolKind::Edit) => {
                let path = field("path").map(|path| roots.new_or_existing(path));
                path.into_iter().collect()
            }
            _ => {
                let path = field("path").map(|path| roots.existing(path));
                path.into_iter().collect()
            }
        };
        Self { command, targets }
    }

    /// Returns what the path of a built-in tool leads to.
    pub(crate) fn real(&self) -> Option<&Path> {
        self.targets.first()?.real.as_deref().ok()
    }

    /// Returns the reason why a path cannot be used.
    pub(crate) fn problem(&self) -> Option<&str> {
        let problem = (self.targets.iter()).find_map(|target| target.real.as_ref().err());
        problem.map(String::as_str)
    }
}

/// Finds the paths in the arguments of an MCP server's tool: by the names of the arguments, and all `file:` URIs.
fn find_paths(value: &Value, is_path: bool, found: &mut Vec<String>) {
    match value {
        Value::String(text) => match of_uri(text) {
            Some(path) => found.push(path),
            None if is_path => {
                // The server may expand it, or not.
                let below_home = (text.strip_prefix('~'))
                    .filter(|rest| rest.is_empty() || rest.starts_with('/'));
                if let Some(rest) = below_home
                    && let Some(home) = std::env::var_os("HOME")
                {
                    let path = PathBuf::from(home).join(rest.trim_start_matches('/'));
                    found.push(path.to_string_lossy().into_owned());
                }
                found.push(text.clone());
            }
            None => {}
        },
        Value::Array(items) => {
            for item in items {
                find_paths(item, is_path, found);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                find_paths(value, names_path(name), found);
            }
        }
        _ => {}
    }
}

fn names_path(name: &str) -> bool {
    let name = name.to_lowercase().replace(['_', '-'], "");
    PATH_NAMES.has(&name) || PATH_ENDS.iter().any(|end| name.ends_with(end))
}

/// Returns the path of a `file:` URI.
fn of_uri(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once(':')?;
    if !scheme.eq_ignore_ascii_case("file") {
        return None;
    }
    let path = match rest.strip_prefix("//") {
        Some(host_and_path) => &host_and_path[host_and_path.find('/').unwrap_or(0)..],
        None => rest,
    };
    let path = path.split(['?', '#']).next().unwrap_or(path);
    Some(percent_decode_str(path).decode_utf8_lossy().into_owned())
}
