//! The tests of this crate that use it as others do, in one program.
#![allow(clippy::unwrap_used, reason = "tests")]

mod agents;
mod common;
mod opencode;
mod others;
mod truth;
