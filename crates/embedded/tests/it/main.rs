//! Integration tests with the mock model on loopback and real processes.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod aborted;
mod answers;
mod failures;
mod permissions;
mod refused;
mod sessions;
mod stage;
mod tools;
