//! Runs of a fleet on a real server on loopback. Without `nats-server`, these tests are skipped.
#![expect(clippy::unwrap_used, reason = "also in the helpers of tests")]
#![expect(clippy::print_stderr, reason = "a skipped test names its reason")]

mod contract;
mod figures;
mod given_up;
mod large;
mod machine;
mod machines;
mod operator;
mod placement;
mod server;
