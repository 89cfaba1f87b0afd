//! The runtime whose model loop runs in the process of `teamster`.

use serde_json::json;

use super::{Call, CallContext, Habits, Pointing, elsewhere};
use crate::Part;

pub(super) const HABITS: Habits = Habits::NONE;

/// Uses OpenAI Responses, which has every kind of token. The runtime supports all four protocols.
pub(super) fn point_at(url: &str) -> Pointing {
    let env = [
        ("OPENAI_API_KEY", "sk-mock-000".to_owned()),
        ("OPENAI_BASE_URL", format!("{url}/v1")),
        // For callers that request models of the other services.
        ("ANTHROPIC_API_KEY", "sk-mock-000".to_owned()),
        ("ANTHROPIC_BASE_URL", url.to_owned()),
        ("GEMINI_API_KEY", "mock-000".to_owned()),
        ("GOOGLE_GEMINI_BASE_URL", url.to_owned()),
        ("OLLAMA_HOST", url.to_owned()),
        ("OPENAI_COMPATIBLE_BASE_URL", format!("{url}/v1")),
    ];
    Pointing {
        env: env.map(|(name, value)| (name.to_owned(), value)).into(),
        // A model with a known price.
        model: Some("openai/gpt-5.1".to_owned()),
        elsewhere: elsewhere("GEMINI_BASE_URL GOOGLE_API_KEY"),
        folders: [("XDG_STATE_HOME", ".local/state")].into(),
        ..Pointing::default()
    }
}

/// Identifies the runtime by `user-agent`, because its tools have the names of others.
pub(super) fn is_asking(user_agent: &str, _tools: &[String]) -> bool {
    user_agent.starts_with("teamster-embedded/")
}

pub(super) fn call(part: &Part, _context: &CallContext<'_>) -> Option<Call> {
    // Paths may be relative.
    Some(match part {
        Part::Shell(command) => Call::new("bash", json!({"command": command})),
        Part::ReadFile(path) => Call::new("read", json!({"path": path})),
        Part::WriteFile { path, content } => {
            Call::new("write", json!({"path": path, "content": content}))
        }
        Part::EditFile { path, old, new } => Call::new(
            "edit",
            json!({"path": path, "old_string": old, "new_string": new}),
        ),
        Part::Mcp {
            server,
            tool,
            arguments,
        } => Call::new(format!("mcp__{server}__{tool}"), arguments.clone()),
        Part::Plan(entries) => {
            let entry = |entry: &String| json!({"content": entry, "status": "pending"});
            let entries: Vec<_> = entries.iter().map(entry).collect();
            Call::new("update_plan", json!({"entries": entries}))
        }
        // The runtime has no such tool and reports that to the model.
        Part::Ask(question) => Call::new("question", json!({"question": question})),
        _ => return None,
    })
}
