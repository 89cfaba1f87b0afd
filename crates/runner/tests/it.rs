//! Integration tests, in one program.
#![expect(clippy::unwrap_used, reason = "also in the helpers of tests")]
#![expect(clippy::print_stderr, reason = "prints why a test was not run")]

mod accounts;
mod attached;
mod early_request;
#[cfg(target_os = "linux")]
mod hanging;
#[cfg(target_os = "linux")]
mod killed;
mod live;
mod log;
mod removed;
mod requests;
mod retention;
mod session_budget;
mod turns;
