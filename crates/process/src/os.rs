//! Access to processes other than our own child, by operating system.
//!
//! `linux` reads `/proc`. On other systems the same functions return less, and a run is ended by its process group
//! only.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
pub(crate) use linux::*;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::*;

/// A process that is distinguished from later ones with the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// Start time, in clock ticks since boot.
    pub(crate) start_time: u64,
}

/// A process that carries the mark of a run whose owner is dead.
#[derive(Debug)]
pub(crate) struct Orphan {
    pub(crate) process: Process,
    /// Its command line, arguments separated by spaces.
    pub(crate) command: String,
    /// Its runs with a dead owner, outermost first. Never empty.
    pub(crate) run_ids: Vec<String>,
}

/// The processes of runs whose owner is dead.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    /// Those that own runs themselves are first.
    pub(crate) orphans: Vec<Orphan>,
    /// Runs whose owner is exiting.
    pub(crate) dying: Vec<String>,
}

/// A process of a run other than the CLI's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Relative {
    pub(crate) process: Process,
    /// True if a signal to the CLI's group reaches it.
    pub(crate) in_group: bool,
}

pub(crate) use teamster_core::provider::RUN_ID_VARIABLE as RUN_ID_VAR;
