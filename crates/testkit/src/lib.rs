//! Test tools for programs that drive coding-agent CLIs.
//!
//! - [`mock_runtime`]: a runtime without any process, which plays scripts: for tests of code that runs
//!   agents.
//! - [`fake_agent`]: a program that pretends to be such a CLI and misbehaves on command: half
//!   lines, floods, ignored signals, children that outlive it and hold its pipes, lost output.
//! - [`stand_in`]: the same program in the place of an agent in a loop, by a plan and by chance.
//! - [`mcp_server`]: a small MCP server with tools that succeed, fail and wait, and with faults.
//! - [`proc`]: whether a process is gone, and waiting until something is so, without fixed sleeps.
//! - [`fixture`]: recorded runs of real CLIs, as folders.
//! - [`replay`]: such a run, taken through the code that a live run goes through.
//! - [`snapshot`]: its events as text, for people to read and for tests to compare.
//! - `conformance` (feature `conformance`): the suite of checks that every provider must pass. With it come
//!   `snapshot_tests!` and `insta`, the crate that it asserts with.
//!
//! Processes, signals and pipes are Unix here, so the fake agent, the stand-ins, [`proc`] and the
//! suite exist on Unix only.
#![warn(missing_docs)]

#[cfg(all(unix, feature = "conformance"))]
pub mod conformance;
#[cfg(unix)]
pub mod fake_agent;
pub mod fixture;
pub mod mcp_server;
pub mod mock_runtime;
#[cfg(unix)]
pub mod proc;
pub mod replay;
pub mod snapshot;
#[cfg(unix)]
pub mod stand_in;

#[cfg(feature = "conformance")]
pub use insta;
