//! What a test of a program that drives coding-agent CLIs needs.
//!
//! - [`fake_agent`]: a program that pretends to be such a CLI and misbehaves on command: half
//!   lines, floods, ignored signals, children that outlive it and hold its pipes, lost output.
//! - [`proc`]: whether a process is gone, and waiting until something is so, without fixed sleeps.
//!
//! Processes, signals and pipes are Unix here, so both modules exist on Unix only.

#[cfg(unix)]
pub mod fake_agent;
#[cfg(unix)]
pub mod proc;
