//! Supervisors of real processes: shell scripts and this test program stand in for loops.
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

/// Time limit of operations that should be immediate. Only a failing test reaches it.
const LIMIT: Duration = Duration::from_mins(1);
