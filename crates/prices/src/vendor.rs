//! Vendors of models, and those of the CLIs.

/// A vendor of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Vendor {
    /// Anthropic.
    Anthropic,
    /// OpenAI.
    OpenAi,
    /// Google.
    Google,
    /// GitHub Copilot, which has prices of its own for the models of others.
    Copilot,
    /// xAI.
    Xai,
    /// DeepSeek.
    DeepSeek,
    /// MiniMax.
    MiniMax,
    /// Moonshot AI.
    Moonshot,
    /// Z.ai.
    Zai,
}

impl Vendor {
    /// Returns the most likely vendor of a model that a CLI names without one. `None` where a name is enough, or where
    /// the CLI has the models of several vendors.
    pub fn of_cli(cli: &str) -> Option<Self> {
        Some(match cli {
            "codex" => Self::OpenAi,
            "copilot" => Self::Copilot,
            "gemini" => Self::Google,
            _ => return None,
        })
    }
}
