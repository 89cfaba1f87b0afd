//! Tests of the engine with scripted runtimes on paused time, and with the real providers (`providers`).
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod abort;
mod broken_answers;
mod budgets;
mod common;
mod consumer;
mod estimates;
mod faults;
mod lifecycle;
mod limits;
mod observed;
mod outcome;
mod properties;
mod providers;
mod retry;
mod sessions;
mod shared_budget;
mod shared_holds;
mod side_effects;
