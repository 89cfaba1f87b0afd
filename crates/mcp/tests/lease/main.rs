//! Leases, with real processes that are killed, disks that fail, and users who edit.
#![cfg(unix)]

mod agent;
mod rules;
mod support;
