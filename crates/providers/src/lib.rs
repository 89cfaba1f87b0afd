//! Coding agents by their names: the providers of a build and an application's own ([`Providers`]), their runtimes
//! ([`Runtimes`]), and which of them this machine has (`doctor`).
#![warn(missing_docs)]

#[cfg(feature = "acp-probe")]
pub mod acp_probe;
#[cfg(feature = "doctor")]
pub mod doctor;
mod fallback;
mod in_process;
mod providers;
mod reexports;
mod selection;
mod sessions;

pub use fallback::{Fallback, command_error};
pub use in_process::InProcess;
pub use providers::{Providers, create_cli_runtime, provider, providers};
pub use reexports::*;
pub use selection::{AgentConfig, LoopOwner, Runtimes, get_runtime};
pub use sessions::{create_session_runtime, session_providers};

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
