//! Kimi Code.

use serde_json::json;

use super::{Call, CallContext, Habits, Pointing, elsewhere};
use crate::Part;

pub(super) const HABITS: Habits = Habits::NONE;

/// In Anthropic Messages, by a model that variables describe.
pub(super) fn point_at(url: &str) -> Pointing {
    let env = [
        ("KIMI_MODEL_NAME", "mock-model".to_owned()),
        ("KIMI_MODEL_API_KEY", "sk-mock-000".to_owned()),
        ("KIMI_MODEL_PROVIDER_TYPE", "anthropic".to_owned()),
        ("KIMI_MODEL_BASE_URL", format!("{url}/v1")),
        ("KIMI_CODE_NO_AUTO_UPDATE", "1".to_owned()),
    ];
    Pointing {
        env: env.map(|(name, value)| (name.to_owned(), value)).into(),
        elsewhere: elsewhere(&["KIMI_CODE_HOME", "KIMI_API_KEY", "KIMI_CODE_BASE_URL"]),
        folders: [("KIMI_CODE_HOME", ".kimi-code")].into(),
        before_prompt: &["-p"],
        ..Pointing::default()
    }
}

/// Its `user-agent` is that of the service's library. Its tools are called like Claude's, but for these.
pub(super) fn is_asking(_: &str, tools: &[String]) -> bool {
    let offers = |name| tools.iter().any(|tool| tool == name);
    offers("Bash") && offers("ReadMediaFile") && offers("TodoList")
}

/// Its other tools are found by what they take.
pub(super) fn call(part: &Part, _: &CallContext<'_>) -> Option<Call> {
    match part {
        // It takes the name of a kind of sub-agent, which is not in the schema.
        Part::Agent { prompt, .. } => Some(Call::new(
            "Agent",
            json!({"description": "Sub-agent", "prompt": prompt, "subagent_type": "coder"}),
        )),
        _ => None,
    }
}
