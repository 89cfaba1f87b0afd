//! The other crates' modules, as far as an application uses them. Their whole is for the authors of providers,
//! who depend on the crates themselves.

/// Any agent of the Agent Client Protocol, by its command.
#[cfg(feature = "acp")]
pub mod acp {
    pub use teamster_acp::{AcpAgent, OneTurn};
}

/// Any program that prints text, by its command.
#[cfg(feature = "command")]
pub mod command {
    pub use teamster_command::{CommandSettings, ErrorPattern, Pattern, TextCommand};
}

/// Agents that are run by the Agent Client Protocol only.
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

/// The runtime whose model loop is in this process.
#[cfg(feature = "embedded")]
pub mod embedded {
    pub use teamster_embedded::{Embedded, EmbeddedConfig, Prices};
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

/// MCP servers in the files that users have.
#[cfg(feature = "mcp-files")]
pub mod mcp {
    pub use teamster_mcp::{config, edit};

    /// A change of a configuration file for the time of a run, shared by concurrent runs and always undone.
    pub mod lease {
        pub use teamster_mcp::lease::{
            Lease, LeaseError, Pending, Released, exists, pending, restore,
        };
    }
}

/// The engine: runtimes of a provider, pools of sessions, and what is left of runs whose owner was killed.
pub mod process {
    pub use teamster_process::{
        CliRuntime, Descendants, EnvPolicy, InheritedMark, Leftover, LineObserver, PoolConfig,
        Presence, ProcessGroup, ProcessIdentity, ProcessSignal, RuntimeConfig, SessionPool,
        StartObserver, StartedProcess, children, find_program, leasable_files, leftovers,
        live_runs, native_program, process_space, run_mark, sweep_leftovers, sweep_private_files,
    };
}
