//! Supervisors of real processes: shell scripts and this very program stand in for loops.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "also in the helpers of tests")]

mod company;
mod disk;
mod killed;
mod moved;
mod requests;
mod stand_ins;
mod stopping;

use std::time::Duration;

/// How long anything may take that should take no time. Only a failure ever waits for so long.
const LIMIT: Duration = Duration::from_mins(1);
