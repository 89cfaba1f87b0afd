//! Test tools for programs that drive coding-agent CLIs.
//!
//! - [`mock_runtime`]: a runtime without processes that plays scripts, for tests of code that runs agents.
//! - [`fake_agent`]: a program that poses as such a CLI and misbehaves as scripted: half lines, floods,
//!   ignored signals, children that outlive it and hold its pipes, lost output.
//! - [`fake_mcp_server`]: a small MCP server with tools that succeed, fail and wait, and with faults.
//! - [`stand_in`]: the same program as an agent in a loop, controlled by a plan and by chance.
//! - [`proc`]: checks for the end of processes, and waiting for conditions without fixed sleeps.
//! - [`events`]: the payloads of a run's events by type, for assertions.
//! - [`fixture`]: recorded runs of real CLIs, in folders.
//! - [`replay`]: playback of a recorded run through the code of live runs; [`turns`]: of any output, as a session.
//! - [`mutate`]: small changes of recorded output, for tests of what reads it.
//! - [`snapshot`]: the events of a run as text, for people to read and for tests to compare.
//! - [`soak`]: very many repetitions of one thing, and what a process holds before and after (Linux).
//! - `http` (feature `service`): a small HTTP client that sees every byte, for tests of servers.
//! - `run_service` (feature `service`): a service of runs in memory, and the checks that every such service must pass.
//! - `conformance` (feature `conformance`): the suite of checks that every provider must pass. It includes
//!   `snapshot_tests!` and re-exports `insta`, whose assertions it uses.
#![warn(missing_docs)]

#[cfg(feature = "conformance")]
pub mod conformance;
pub mod events;
pub mod fixture;
#[cfg(feature = "service")]
pub mod http;
pub mod mock_runtime;
pub mod mutate;
pub mod proc;
pub mod replay;
#[cfg(feature = "service")]
pub mod run_service;
pub mod snapshot;
#[cfg(target_os = "linux")]
pub mod soak;
pub mod turns;

#[cfg(feature = "conformance")]
pub use insta;
pub use teamster_fakes::{fake_agent, fake_mcp_server, stand_in};
