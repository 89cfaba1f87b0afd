//! Re-exports of the other crates' items that applications use. Authors of providers depend on the crates
//! themselves.

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

/// MCP servers in users' configuration files.
#[cfg(feature = "mcp-files")]
pub mod mcp {
    pub use teamster_mcp::{config, edit};

    /// Leases: temporary changes of a configuration file, shared by concurrent runs.
    pub mod lease {
        pub use teamster_mcp::lease::{
            Lease, LeaseError, Pending, Released, exists, pending, restore,
        };
    }
}

/// Process engine: runtimes of a provider, pools of sessions, and leftovers of runs whose owner was killed.
pub mod process {
    pub use teamster_process::{
        CliRuntime, Descendants, EnvPolicy, InheritedMark, Leftover, LineObserver, PoolConfig,
        Presence, ProcessGroup, ProcessIdentity, ProcessSignal, RuntimeConfig, SessionPool,
        StartObserver, StartedProcess, children, find_program, leasable_files, leftovers,
        live_runs, native_program, process_space, run_mark, sweep_leftovers, sweep_private_files,
    };
}
