//! Access to processes beside our own child, by operating system.
//!
//! `linux` reads `/proc`. Elsewhere the same functions know less, and a run is ended by its process
//! group alone.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
pub(crate) use linux::*;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::*;

/// A process that cannot be taken for another one which later has the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// When it started, in clock ticks since boot.
    pub(crate) start_time: u64,
}

/// A process that carries the mark of a run whose owner is gone.
#[derive(Debug)]
pub(crate) struct Orphan {
    pub(crate) process: Process,
    /// Its command line, arguments separated by spaces.
    pub(crate) command: String,
    pub(crate) run_id: String,
}

/// A process that belongs to a run, beside the CLI's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Relative {
    pub(crate) process: Process,
    /// Whether a signal to the CLI's group reaches it.
    pub(crate) in_group: bool,
}

pub(crate) use teamster_core::provider::RUN_ID_VARIABLE as RUN_ID_VAR;
