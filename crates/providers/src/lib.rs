//! Coding agents by their names: the providers of a build and an application's own, with their runtimes ([`Providers`]),
//! and which of them this machine has (`doctor`).
#![warn(missing_docs)]

#[cfg(feature = "acp-probe")]
pub mod acp_probe;
#[cfg(feature = "doctor")]
pub mod doctor;
mod fallback;
mod in_process;
mod providers;

pub use fallback::{Fallback, command_error};
pub use in_process::InProcess;
pub use providers::{Providers, create_cli_runtime, create_session_runtime};

// What applications use of the providers. Authors of providers depend on the crates themselves.

/// Agents of the Agent Client Protocol, by their command.
#[cfg(feature = "acp")]
pub mod acp {
    pub use teamster_acp::AcpAgent;
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

/// Compiles the examples in the READMEs of the providers.
#[cfg(all(
    doctest,
    repository,
    feature = "all-providers",
    feature = "acp",
    feature = "command"
))]
mod readmes {
    #[doc = include_str!("../../claude/README.md")]
    struct Claude;
    #[doc = include_str!("../../codex/README.md")]
    struct Codex;
    #[doc = include_str!("../../copilot/README.md")]
    struct Copilot;
    #[doc = include_str!("../../gemini/README.md")]
    struct Gemini;
    #[doc = include_str!("../../opencode/README.md")]
    struct OpenCode;
    #[doc = include_str!("../../pi/README.md")]
    struct Pi;
    #[doc = include_str!("../../acp/README.md")]
    struct Acp;
    #[doc = include_str!("../../acp-agents/README.md")]
    struct AcpAgents;
    #[doc = include_str!("../../command/README.md")]
    struct Command;
}
