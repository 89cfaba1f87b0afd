//! What only an operating system knows: processes beside our own child.
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

/// The environment variable that marks the processes of a run.
pub(crate) const RUN_ID_VAR: &str = "TEAMSTER_RUN_ID";
