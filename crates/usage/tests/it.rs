//! The tests of this crate that use it as others do, in one program.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;
mod opencode;
mod others;
mod truth;
