//! Systems without `/proc`: other processes cannot be inspected, so a run is ended by its process group.

use std::io;

use nix::sys::signal::Signal;

use super::{Orphans, Process, Relative};

pub(crate) fn start_time(_: u32) -> Option<u64> {
    None
}

pub(crate) fn parent(_: u32) -> Option<u32> {
    None
}

pub(crate) fn is_running(_: Process) -> bool {
    false
}

pub(crate) fn is_stopped(_: Process) -> bool {
    false
}

pub(crate) fn is_hidden(_: u32) -> bool {
    true
}

pub(crate) fn add_tree(_: Option<u32>, _: &mut Vec<Relative>) {}

pub(crate) fn add_children(_: &[u32], _: &mut Vec<Process>) {}

pub(crate) fn processor_ticks(_: u32) -> Option<u64> {
    None
}

pub(crate) fn last_pid() -> Option<u32> {
    None
}

pub(crate) fn outside_session(_: u32, _: &str, _: Option<u32>) -> Vec<Process> {
    Vec::new()
}

pub(crate) fn since_boot_ms() -> u64 {
    0
}

pub(crate) fn signal_process(_: Process, _: Signal) -> io::Result<()> {
    Ok(())
}

pub(crate) fn kill_process(_: Process) -> io::Result<()> {
    Ok(())
}

pub(crate) fn marked(_: &str, _: Option<u32>) -> Vec<Process> {
    Vec::new()
}

pub(crate) fn orphans() -> Orphans {
    Orphans::default()
}

pub(crate) fn own_children() -> Vec<u32> {
    Vec::new()
}

pub(crate) fn limited_to(_: u64) -> Vec<Process> {
    Vec::new()
}

pub(crate) fn enlarge_pipe<T>(_: T) {}

/// Returns the start time of a process: sessions cannot be read here.
pub(crate) fn session_start(process: Process) -> u64 {
    process.start_time
}

/// Unknown on these systems.
pub(crate) const TICK_MS: u64 = 0;

pub(crate) fn boot_time_ms() -> Option<u64> {
    None
}

pub(crate) fn directory(_: u32) -> Option<std::path::PathBuf> {
    None
}

pub(crate) fn process_space() -> Option<String> {
    None
}
