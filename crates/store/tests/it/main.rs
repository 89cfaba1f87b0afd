//! Tests of the store on SQLite and, if `TEAMSTER_TEST_POSTGRES` has the URL of a server, on PostgreSQL
//! (`.ci/postgres cargo test -p teamster-store`).

#![expect(
    clippy::unwrap_used,
    reason = "these are tests, and much of them is in functions that clippy does not take for such"
)]
#![expect(clippy::print_stdout, reason = "tests that fail show it")]

#[macro_use]
mod support;

mod existing;
mod holds;
mod open;
mod processes;
mod recorder;
mod runs;
mod session_locks;
mod sessions;
mod slow;
mod titles;
