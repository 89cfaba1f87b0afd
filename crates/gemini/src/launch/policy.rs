//! Denials as rules of the CLI's policy engine.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

use teamster_core::{AgentError, ExecuteParams, PermissionMode};

use super::is_changed_in_list;
use crate::tool_names::is_own;

/// The CLI's own tools that change something, or run programs that may. The others need no permission, or change only
/// the agent's own state.
const CHANGING_TOOLS: &[&str] = &[
    "write_file",
    "replace",
    "run_shell_command",
    "save_memory",
    "enter_plan_mode",
    "discovered_tool_*",
];

/// The tool that ends the plan mode. In a run the CLI approves it by itself (measured), and then writes files.
const LEAVES_PLAN: &str = "exit_plan_mode";

/// Folder of an administrator's own policies. If it has a file, the CLI ignores those of the command line with only a
/// warning.
#[cfg(target_os = "macos")]
const SYSTEM_POLICIES: &str = "/Library/Application Support/GeminiCli/policies";
#[cfg(not(target_os = "macos"))]
const SYSTEM_POLICIES: &str = "/etc/gemini-cli/policies";

/// Maximum length of an MCP tool's name. The CLI cuts the middle out of a longer one.
const LONGEST_TOOL_NAME: usize = 63;

/// Length of each end that remains of such a name, with `...` between them.
const SHORTENED_NAME_END: usize = 30;

/// Returns whether anything must be denied.
pub(crate) fn is_needed(params: &ExecuteParams) -> bool {
    let has_rules = [PermissionMode::ReadOnly, PermissionMode::Plan];
    has_rules.contains(&params.permission) || !params.denied_tools.is_empty()
}

/// Refuses a run in which the rules would have no effect. The CLI continues without rules that it cannot read.
pub(super) fn check_location(params: &ExecuteParams) -> Result<(), AgentError> {
    let parameter = if params.denied_tools.is_empty() {
        "permission"
    } else {
        "denied_tools"
    };
    if has_policies(Path::new(SYSTEM_POLICIES)) {
        return Err(AgentError::refused(
            parameter,
            format!(
                "the policies of this machine in {SYSTEM_POLICIES} make Gemini CLI ignore the rules of \
             a run; add the denials there"
            ),
        ));
    }
    let location = std::env::temp_dir();
    if location.to_str().is_none_or(is_changed_in_list) {
        return Err(AgentError::refused(
            parameter,
            format!(
                "Gemini CLI would not find its rules in {}; set TMPDIR to a path without \
             commas",
                location.display()
            ),
        ));
    }
    Ok(())
}

fn has_policies(dir: &Path) -> bool {
    let Ok(files) = std::fs::read_dir(dir) else {
        return false;
    };
    files.flatten().any(|file| {
        let name = file.file_name();
        name.to_string_lossy().ends_with(".toml")
    })
}

/// Returns the rules of this run in the CLI's format; `None` if nothing is denied.
pub(super) fn rules(params: &ExecuteParams) -> Result<Option<String>, AgentError> {
    let mut rules = String::new();
    if params.permission == PermissionMode::ReadOnly {
        for tool in CHANGING_TOOLS {
            rule(&mut rules, tool, None);
        }
    }
    if params.permission == PermissionMode::Plan {
        rule(&mut rules, LEAVES_PLAN, None);
    }
    for tool in &params.denied_tools {
        let (name, prefix) = parts(tool)?;
        rule(&mut rules, name, prefix);
    }
    Ok((!rules.is_empty()).then_some(rules))
}

/// Splits `run_shell_command(git push)` into the tool and the prefix of the command.
fn parts(tool: &str) -> Result<(&str, Option<&str>), AgentError> {
    let refuse = |why: &str| {
        Err(AgentError::refused(
            "denied_tools",
            format!("{tool:?}: {why}"),
        ))
    };
    let (name, prefix) = match tool.split_once('(') {
        Some((name, rest)) => match rest.strip_suffix(')') {
            Some(prefix) => (name, Some(prefix)),
            None => return refuse("the bracket is not closed"),
        },
        None => (tool, None),
    };
    if let Some(prefix) = prefix {
        if name != "run_shell_command" {
            return refuse("only run_shell_command takes a prefix; deny the whole tool");
        }
        if prefix.trim() != prefix || prefix.is_empty() || prefix.chars().any(char::is_control) {
            return refuse("give the beginning of a command between the brackets");
        }
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '*');
    let can_be = name == "*"
        || name.starts_with("mcp_")
        || name.starts_with("discovered_tool_")
        || is_own(name);
    if name.starts_with("mcp_") && name.ends_with("_*") && name.len() > SHORTENED_NAME_END + 1 {
        return refuse(
            "Gemini CLI shortens long tool names, so this would not deny all of them; list them one by \
             one",
        );
    }
    // The CLI silently ignores unknown names and denies nothing.
    if !can_be || !name.chars().all(is_name) {
        return refuse(
            "Gemini CLI has no tool of this name; it has run_shell_command, write_file, replace, \
             web_fetch and others, and mcp_SERVER_TOOL",
        );
    }
    Ok((name, prefix))
}

/// Returns a tool's name as the CLI offers it to the model: a long name without its middle.
fn as_offered(name: &str) -> Cow<'_, str> {
    let is_cut = name.starts_with("mcp_") && name.len() > LONGEST_TOOL_NAME;
    // `parts` has checked that names are ASCII.
    match (
        name.get(..SHORTENED_NAME_END),
        name.len().checked_sub(SHORTENED_NAME_END),
    ) {
        (Some(begin), Some(end)) if is_cut => Cow::Owned(format!("{begin}...{}", &name[end..])),
        _ => Cow::Borrowed(name),
    }
}

/// Adds a rule with the highest priority. The texts must have been checked: TOML reads them in the same way as JSON.
fn rule(rules: &mut String, tool: &str, prefix: Option<&str>) {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    // Writing to a string cannot fail.
    let _ = writeln!(rules, "[[rule]]\ntoolName = {}", quoted(&as_offered(tool)));
    if let Some(prefix) = prefix {
        let _ = writeln!(rules, "commandPrefix = {}", quoted(prefix));
    }
    let _ = writeln!(rules, "decision = \"deny\"\npriority = 999\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_the_cli_cuts_is_denied_as_it_is_cut() {
        let denied = |tool: &str| {
            let mut params = ExecuteParams::new("hi");
            params.denied_tools = vec![tool.to_owned()];
            rules(&params).map(|rules| rules.unwrap().lines().nth(1).unwrap().to_owned())
        };
        let tool = |middle: usize| format!("mcp_srv_{}_end", "x".repeat(middle));
        let name = tool(51);
        assert_eq!(denied(&name).unwrap(), format!("toolName = \"{name}\""));
        let cut = format!("mcp_srv_{}...{}_end", "x".repeat(22), "x".repeat(26));
        assert_eq!(denied(&tool(52)).unwrap(), format!("toolName = \"{cut}\""));
        let server = |length: usize| format!("mcp_{}_*", "s".repeat(length));
        assert!(denied(&server(25)).is_ok());
        let error = denied(&server(26)).unwrap_err();
        assert!(error.message.starts_with("denied_tools: "), "{error}");
    }

    #[test]
    fn only_policies_in_the_place_of_the_system_count() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!has_policies(&dir.path().join("none")));
        std::fs::write(dir.path().join("notes.txt"), "").unwrap();
        assert!(!has_policies(dir.path()));
        std::fs::write(dir.path().join("rules.toml"), "").unwrap();
        assert!(has_policies(dir.path()));
    }
}
