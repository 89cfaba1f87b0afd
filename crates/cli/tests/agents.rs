//! `teamster supervise` and `teamster agents`, with real loops and stand-ins for their CLI.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "also in the helpers of tests")]

mod company;
mod migration;
mod orders;
mod output;
mod remote;
mod robust;
mod supervise;
mod updates;
mod zombies;

use std::time::Duration;

/// How long anything may take that should take no time. Only a failure ever waits for so long.
const LIMIT: Duration = Duration::from_mins(1);
