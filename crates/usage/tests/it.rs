//! Tests of the crate's public interface, in one program.
#![allow(clippy::unwrap_used, reason = "tests")]

mod broken;
mod common;
mod opencode;
mod sessions;
mod truth;
