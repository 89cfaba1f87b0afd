//! `teamster supervise` and `teamster agents`, with real loops and a stand-in for the CLI.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "also in the helpers of tests")]

mod commands;
mod company;
mod hanging;
mod migration;
mod output;
mod remote;
mod robust;
mod supervise;
mod updates;
mod zombies;

use std::time::Duration;

/// Time limit of waits. Only a failing test waits this long.
const LIMIT: Duration = Duration::from_mins(1);
