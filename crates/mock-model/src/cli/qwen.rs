//! Qwen Code.

use serde_json::json;

use super::{Call, CallContext, Habits, HomeFile, Pointing, elsewhere};
use crate::Part;

pub(super) const HABITS: Habits = Habits::NONE;

/// Uses Chat Completions. The settings select the login. They also disable Qwen's own requests after a turn,
/// which would consume the script's next answers: suggestions for the next prompt, and notes for its memory.
pub(super) fn point_at(url: &str) -> Pointing {
    let env = [
        ("OPENAI_API_KEY", "sk-mock-000".to_owned()),
        ("OPENAI_BASE_URL", format!("{url}/v1")),
        ("OPENAI_MODEL", "mock-model".to_owned()),
    ];
    let settings = json!({
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "general": {"enableAutoUpdate": false},
        "ui": {"enableFollowupSuggestions": false},
        "memory": {"enableManagedAutoMemory": false, "enableManagedAutoDream": false, "enableAutoSkill": false},
    });
    Pointing {
        env: env.map(|(name, value)| (name.to_owned(), value)).into(),
        files: vec![HomeFile::new(
            ".qwen/settings.json",
            format!("{settings:#}\n"),
        )],
        elsewhere: elsewhere(&["QWEN_HOME", "QWEN_RUNTIME_DIR", "QWEN_CODE_MODEL"]),
        folders: [("QWEN_HOME", ".qwen")].into(),
        before_prompt: &["-p"],
        ..Pointing::default()
    }
}

pub(super) fn is_asking(user_agent: &str, _: &[String]) -> bool {
    user_agent.starts_with("QwenCode/")
}

/// Returns `None`: Qwen's tools are identified by their schemas.
pub(super) fn call(_: &Part, _: &CallContext<'_>) -> Option<Call> {
    None
}
