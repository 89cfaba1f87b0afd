//! Sub-agents of a run: the JSON of `--agents`.

use serde_json::{Map, Value, json};
use teamster_core::provider::Args;
use teamster_core::{AgentError, ExecuteParams, PermissionMode, SubAgent};

/// Settings that the CLI takes as a list here, and as a text with commas in its files.
const LISTS: [&str; 2] = ["tools", "disallowedTools"];

/// Settings that may hold secrets. Other users of the machine can read a program's arguments.
const NOT_IN_ARGUMENTS: [&str; 2] = ["mcpServers", "hooks"];

/// Adds the flag for the sub-agents of this run.
pub(super) fn options(params: &ExecuteParams, args: &mut Args) {
    if params.sub_agents.is_empty() {
        return;
    }
    let all: Map<_, _> = (params.sub_agents.iter())
        .map(|agent| (agent.name.clone(), entry(agent)))
        .collect();
    args.value("--agents", Value::Object(all).to_string());
}

fn entry(agent: &SubAgent) -> Value {
    let mut entry = agent.settings.clone();
    for name in LISTS {
        if let Some(setting) = entry.get_mut(name)
            && let Some(text) = setting.as_str()
        {
            *setting = json!(items(text));
        }
    }
    entry.insert("description".to_owned(), json!(agent.description));
    entry.insert("prompt".to_owned(), json!(agent.prompt));
    Value::Object(entry)
}

/// Splits a text at its commas, except those of a rule such as `Bash(a, b)`.
fn items(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let items = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    let items = items.map(str::trim).filter(|item| !item.is_empty());
    items.map(str::to_owned).collect()
}

/// Rejects sub-agents that no tool could start, and those whose settings may not be in arguments.
pub(super) fn check(params: &ExecuteParams) -> Result<(), AgentError> {
    let has_secrets = |agent: &&SubAgent| {
        (NOT_IN_ARGUMENTS.iter()).any(|name| agent.settings.contains_key(*name))
    };
    if let Some(agent) = params.sub_agents.iter().find(has_secrets) {
        return Err(AgentError::refused_item(
            "sub_agents",
            &*agent.name,
            "mcpServers and hooks would be in the arguments of the program, which other users can read; \
             give the run its MCP servers instead",
        ));
    }
    if params.sub_agents.is_empty() || params.permission != PermissionMode::ReadOnly {
        return Ok(());
    }
    Err(AgentError::refused(
        "sub_agents",
        "in read-only, Claude Code has no tool that starts one; use another permission mode",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_of_a_file_become_a_list() {
        let mut agent = SubAgent::new("reviewer", "Reviews code", "You review.");
        agent.settings = Map::from_iter([
            ("tools".to_owned(), json!("Read, Bash(git log, x),")),
            ("disallowedTools".to_owned(), json!(["Write"])),
            ("model".to_owned(), json!("haiku")),
        ]);
        assert_eq!(
            entry(&agent),
            json!({
                "tools": ["Read", "Bash(git log, x)"],
                "disallowedTools": ["Write"],
                "model": "haiku",
                "description": "Reviews code",
                "prompt": "You review."
            })
        );
    }

    #[test]
    fn settings_that_may_hold_secrets_are_refused() {
        for name in NOT_IN_ARGUMENTS {
            let mut agent = SubAgent::new("a", "b", "c");
            agent.settings.insert(name.to_owned(), json!({}));
            let params = ExecuteParams::new("hi").sub_agents([agent]);
            let error = check(&params).unwrap_err();
            assert!(error.message.contains("other users can read"), "{error}");
        }
    }

    #[test]
    fn sub_agents_are_refused_without_a_tool_that_starts_them() {
        let params = ExecuteParams::new("hi").sub_agents([SubAgent::new("a", "b", "c")]);
        assert_eq!(check(&params), Ok(()));
        let error = check(&params.permission(PermissionMode::ReadOnly)).unwrap_err();
        assert_eq!(error.parameter(), Some("sub_agents"));
    }
}
