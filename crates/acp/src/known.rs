//! Facts about agents without a dialect of their own, by the names that they give themselves.

use serde_json::{Map, Value, json};

/// Facts about an agent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    /// Extension data (`_meta`) of the requests that open a session.
    pub(crate) session_meta: Option<Map<String, Value>>,
    /// True if its options of the kind `allow_always` allow more than the tool, or for longer than the session.
    pub(crate) always_is_more: bool,
}

impl Known {
    /// Returns the facts about the agent with this name.
    ///
    /// For `claude-agent-acp` (0.49.0): its model's tool `EnterPlanMode` leads to a mode in which commands run without
    /// a request, also those of the same answer, so the tool is taken away. Its option `allow_always` writes a rule for
    /// a command into the settings of the project, and for an edit it changes the mode to one that allows commands too.
    pub(crate) fn of(agent: &str) -> Self {
        // With or without the scope of its package.
        let name = agent.rsplit('/').next().unwrap_or(agent);
        if !matches!(name, "claude-agent-acp" | "claude-code-acp") {
            return Self::default();
        }
        let meta = json!({"claudeCode": {"options": {"disallowedTools": ["EnterPlanMode"]}}});
        Self {
            session_meta: meta.as_object().cloned(),
            always_is_more: true,
        }
    }
}
