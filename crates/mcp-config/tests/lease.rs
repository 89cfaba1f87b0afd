//! Tests of leases, with real processes that are killed, disks that fail, and users who edit.
// All of this is test code.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod agent;
mod crash;
mod edits;
mod faults;
mod interleaving;
mod ownership;
mod property;
mod rules;
mod support;

/// Returns whether all steps are tested, as in `.ci/soak leases`. That takes minutes.
fn soak() -> bool {
    std::env::var_os("TEAMSTER_LEASE_SOAK").is_some()
}
