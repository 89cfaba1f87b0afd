//! Tests of services that carry out runs: a service in memory, and the checks that every service must pass.
//!
//! [`MemoryService`] is a [`RunService`](teamster_api::RunService) without processes and files, for tests of what stands
//! over one. [`contract`] has the checks: they hold for runs of this machine, of another one over HTTP, and in memory.

mod claude;
mod left;
mod memory;
mod play;
#[expect(
    clippy::expect_used,
    reason = "a check that fails panics, as an assertion does"
)]
mod suite;

pub use claude::{CLAUDE, ScriptedClaude, claude_that};
pub use memory::{MemoryService, Step};
pub use suite::{Behavior, Subject, contract};
