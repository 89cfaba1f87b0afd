//! Claude Code.

mod own;

use serde_json::json;

use super::{Call, CallContext, Habits, Pointing, elsewhere, kimi, variables};
use crate::Part;

pub(super) const HABITS: Habits = Habits {
    own_request: own::request,
    own_message: own::is_message,
    ..Habits::NONE
};

pub(super) fn point_at(url: &str) -> Pointing {
    let env = [
        ("ANTHROPIC_BASE_URL", url),
        ("ANTHROPIC_API_KEY", "sk-mock-000"),
        // Limits requests to the base URL, without a name lookup. Otherwise the CLI contacts
        // `api.anthropic.com`, and a run waits if there is no answer (7 s with a silent name server). It also
        // disables the request for a title.
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        // Otherwise the user's proxy is used for the base URL too.
        ("NO_PROXY", "127.0.0.1"),
        ("no_proxy", "127.0.0.1"),
        // Parts of "nonessential", for releases in which that covers less.
        ("DISABLE_TELEMETRY", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
    ];
    Pointing {
        env: variables(&env),
        elsewhere: elsewhere(
            "
                CLAUDE_CONFIG_DIR CLAUDE_CODE_OAUTH_TOKEN CLAUDE_CODE_USE_BEDROCK
                CLAUDE_CODE_USE_FOUNDRY CLAUDE_CODE_USE_VERTEX ANTHROPIC_AUTH_TOKEN CLAUDECODE
            ",
        ),
        folders: [("CLAUDE_CONFIG_DIR", ".claude")].into(),
        before_prompt: &["-p"],
        for_root: &[("IS_SANDBOX", "1")],
        ..Pointing::default()
    }
}

pub(super) fn is_asking(user_agent: &str, tools: &[String]) -> bool {
    let offers = |name| tools.iter().any(|tool| tool == name);
    user_agent.starts_with("claude-cli/") || (offers("Bash") && !kimi::is_asking(user_agent, tools))
}

pub(super) fn call(part: &Part, context: &CallContext<'_>) -> Option<Call> {
    Some(match part {
        Part::Shell(command) => Call::new("Bash", json!({"command": command})),
        Part::BackgroundShell(command) => Call::new(
            "Bash",
            json!({"command": command, "run_in_background": true}),
        ),
        Part::ReadFile(path) => Call::new("Read", json!({"file_path": context.absolute(path)})),
        Part::WriteFile { path, content } => Call::new(
            "Write",
            json!({"file_path": context.absolute(path), "content": content}),
        ),
        Part::EditFile { path, old, new } => Call::new(
            "Edit",
            json!({"file_path": context.absolute(path), "old_string": old, "new_string": new}),
        ),
        Part::Mcp {
            server,
            tool,
            arguments,
        } => Call::new(format!("mcp__{server}__{tool}"), arguments.clone()),
        Part::Plan(entries) => {
            let todo = |entry: &String| json!({"content": entry, "status": "pending", "activeForm": entry});
            let todos: Vec<_> = entries.iter().map(todo).collect();
            Call::new("TodoWrite", json!({"todos": todos}))
        }
        Part::Ask(question) => Call::new(
            "AskUserQuestion",
            json!({"questions": [{
                "question": question,
                "header": "Question",
                "multiSelect": false,
                "options": super::choices(),
            }]}),
        ),
        Part::WebSearch(query) => Call::new("WebSearch", json!({"query": query})),
        Part::Agent { prompt, background } => {
            let mut input = json!({
                "description": "Sub-agent",
                "prompt": prompt,
                "subagent_type": "general-purpose",
            });
            if let Some(background) = background {
                input["run_in_background"] = (*background).into();
            }
            Call::new(context.offered(&["Agent", "Task"]), input)
        }
        _ => return None,
    })
}
