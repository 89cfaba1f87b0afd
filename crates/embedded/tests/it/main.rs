//! The runtime against the mock model, on loopback, with real processes.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod aborted;
mod answers;
mod failures;
mod permissions;
mod refused;
mod sessions;
mod stage;
mod tools;
