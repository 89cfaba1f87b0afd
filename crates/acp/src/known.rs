//! Facts about agents without a dialect of their own, by the names that they give themselves.

use serde_json::{Map, Value, json};

/// Facts about an agent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    /// Extension data (`_meta`) of the requests that open a session.
    pub(crate) session_meta: Option<Map<String, Value>>,
    /// True if its options of the kind `allow_always` allow more than the tool, or for longer than the session.
    pub(crate) always_is_more: bool,
    /// What the tokens that it reports are those of; `None` if that is unknown.
    pub(crate) tokens: Option<TokensOf>,
}

/// What an agent's count of tokens covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokensOf {
    /// All turns of the session.
    Session,
    /// The turns of the session in this process.
    Process,
}

impl Known {
    /// Returns the facts about the agent with this name.
    ///
    /// For `claude-agent-acp` (0.49.0): its model's tool `EnterPlanMode` leads to a mode in which commands run without
    /// a request, also those of the same answer, so the tool is taken away. Its option `allow_always` writes a rule for
    /// a command into the settings of the project, and for an edit it changes the mode to one that allows commands too.
    ///
    /// For `hermes-agent` (0.19.0), `@mistralai/mistral-vibe` (3.0.2) and `OpenHands CLI ACP Agent` (1.16.0): what their
    /// tokens are those of.
    pub(crate) fn of(agent: &str) -> Self {
        // With or without the scope of its package.
        let name = agent.rsplit('/').next().unwrap_or(agent);
        let meta = json!({"claudeCode": {"options": {"disallowedTools": ["EnterPlanMode"]}}});
        let mut known = Self::default();
        match name {
            "claude-agent-acp" | "claude-code-acp" => {
                known.session_meta = meta.as_object().cloned();
                known.always_is_more = true;
            }
            "hermes-agent" => known.tokens = Some(TokensOf::Process),
            "mistral-vibe" | "OpenHands CLI ACP Agent" => known.tokens = Some(TokensOf::Session),
            _ => {}
        }
        known
    }
}
