//! Re-exports of the other crates' items that applications use. Authors of providers depend on the crates
//! themselves.

/// MCP servers in users' configuration files.
#[cfg(feature = "mcp-files")]
pub mod mcp {
    pub use teamster_mcp_config::{config, edit, source};

    /// Leases: temporary changes of a configuration file, shared by concurrent runs.
    pub mod lease {
        pub use teamster_mcp_config::lease::{
            Lease, LeaseError, Pending, Released, exists, pending, restore,
        };
    }
}

/// Process engine: runtimes of a provider, pools of sessions, and leftovers of runs whose owner was killed.
pub mod process {
    pub use teamster_process::{
        CliRuntime, EnvPolicy, Leftover, LineObserver, OneTurn, PoolConfig, ProcessGroup,
        ProcessSignal, RecordTo, RuntimeConfig, SessionPool, StartObserver, StartedProcess,
        container_engine, find_program, leasable_files, leftovers, live_runs, native_program,
        sweep_leftovers, sweep_private_files,
    };
}
