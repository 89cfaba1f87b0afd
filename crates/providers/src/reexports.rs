//! Re-exports of the providers' items that applications use. Authors of providers depend on the crates themselves.

/// Agents of the Agent Client Protocol, by their command.
#[cfg(feature = "acp")]
pub mod acp {
    pub use teamster_acp::{AcpAgent, OneTurn};
}

/// Programs that print text, by their command.
#[cfg(feature = "command")]
pub mod command {
    pub use teamster_command::{CommandSettings, ErrorPattern, Pattern, TextCommand};
}

/// Agents that are only run over the Agent Client Protocol.
#[cfg(feature = "acp-agents")]
pub mod acp_agents {
    pub use teamster_acp_agents::{CLINE, KIMI, NamedAgent, QWEN};
}

/// Claude Code.
#[cfg(feature = "claude")]
pub mod claude {
    pub use teamster_claude::Claude;
}

/// Codex.
#[cfg(feature = "codex")]
pub mod codex {
    pub use teamster_codex::Codex;
}

/// GitHub Copilot CLI.
#[cfg(feature = "copilot")]
pub mod copilot {
    pub use teamster_copilot::Copilot;
}

/// Embedded agent, whose model loop runs in this process.
#[cfg(feature = "embedded")]
pub mod embedded {
    pub use teamster_embedded::{Embedded, EmbeddedConfig, Prices, become_sandboxed, hide_keys};
}

/// Gemini CLI.
#[cfg(feature = "gemini")]
pub mod gemini {
    pub use teamster_gemini::Gemini;
}

/// OpenCode, and Kilo, a fork of it.
#[cfg(feature = "opencode")]
pub mod opencode {
    pub use teamster_opencode::{Kilo, OpenCode};
}

/// Pi.
#[cfg(feature = "pi")]
pub mod pi {
    pub use teamster_pi::Pi;
}
